//! Act: the controllers of snapshots as the engine runs them.

use crate::central::Kinds;
use crate::handle::Handle;
use crate::provision::words::{claim_of, name, reference, uid, volume_of};
use crate::provision::world::Office;
use crate::snapshots::decide::content::{self, ContentDecision, ContentEffect};
use crate::snapshots::decide::snapshot::{self, SnapshotDecision, SnapshotEffect};
use crate::snapshots::decide::source::{self, SourceDecision, SourceEffect};
use crate::snapshots::desk::{Desk, Sighting};
use crate::snapshots::make::{content_name, logical_name};
use crate::snapshots::status::{ContentWhy, SnapshotWhy, SourceWhy};
use crate::snapshots::world::{ContentWorld, SnapshotWorld, SourceWorld};
use crate::stores::{Stores, place_of};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use lifeboat_api::annotations::IS_DEFAULT_SNAPSHOT_CLASS;
use lifeboat_api::snapshot::{
    VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotContentStatus, VolumeSnapshotStatus,
};
use lifeboat_engine::{Class, Clock, Controller, EffectError, Index, Level, ObjectKey, Trouble};

/// What the controllers of snapshots share.
#[derive(Clone)]
pub struct Studio {
    /// Claims, volumes and their storage.
    pub office: Office,
    /// The stores.
    pub stores: Stores,
    /// VolumeSnapshots by the claim they are of.
    pub of_claim: Index<ObjectKey, VolumeSnapshot>,
    /// Where stores are that a class does not say the namespace of.
    pub namespace: String,
    /// Whether nobody else guards contents.
    pub guards: bool,
    /// What was seen in stores.
    pub desk: Desk,
    /// When.
    pub clock: Clock,
}

impl Studio {
    fn kinds(&self) -> &Kinds {
        &self.office.kinds
    }
}

/// The controller of VolumeSnapshots.
pub struct Snapshots(pub Studio);

impl Controller for Snapshots {
    const NAME: &'static str = "snapshots";
    type Key = ObjectKey;
    type World = SnapshotWorld;
    type Effect = SnapshotEffect;
    type Why = SnapshotWhy;
    type Status = VolumeSnapshotStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<SnapshotWorld> {
        let kinds = self.0.kinds();
        let snapshot = kinds.snapshots.get(key)?;
        let source = &snapshot.spec.source;
        let content = source.volume_snapshot_content_name.clone().unwrap_or_else(|| content_name(&snapshot));
        let claim = source.persistent_volume_claim_name.as_ref();
        let claim = claim.and_then(|name| kinds.claims.get(&ObjectKey::new(key.namespace.clone(), name)));
        let volume = claim.as_deref().map(volume_of).filter(|name| !name.is_empty());
        let class = snapshot.spec.volume_snapshot_class_name.clone();
        let defaults = kinds.snapshot_classes.all().into_iter().filter(|class| {
            let marked =
                class.metadata.annotations.as_ref().and_then(|notes| notes.get(IS_DEFAULT_SNAPSHOT_CLASS));
            class.spec.driver == self.0.office.driver && marked.is_some_and(|marked| marked == "true")
        });
        let fills = self.0.office.by.filling_from.get(&("VolumeSnapshot".to_owned(), key.clone()));
        Some(SnapshotWorld {
            driver: self.0.office.driver.clone(),
            content: kinds.contents.get(&ObjectKey::cluster_wide(content)),
            class: class.and_then(|name| kinds.snapshot_classes.get(&ObjectKey::cluster_wide(name))),
            defaults: defaults.collect(),
            volume: volume.and_then(|name| kinds.volumes.get(&ObjectKey::cluster_wide(name))),
            fills: fills.iter().map(|claim| name(&**claim).to_owned()).collect(),
            trouble: trouble.cloned(),
            claim,
            snapshot,
        })
    }

    fn decide(world: &SnapshotWorld, now: Timestamp) -> SnapshotDecision {
        snapshot::decide(world, now)
    }

    async fn act(&self, _: &ObjectKey, effect: SnapshotEffect) -> Result<(), EffectError> {
        let kinds = self.0.kinds();
        match effect {
            SnapshotEffect::Guard(snapshot)
            | SnapshotEffect::ChooseClass(snapshot)
            | SnapshotEffect::Release(snapshot) => kinds.snapshots.replace(&snapshot).await.map(drop),
            SnapshotEffect::GuardClaim(claim) => kinds.claims.replace(&claim).await.map(drop),
            SnapshotEffect::CreateContent(content) => kinds.contents.create(&content).await.map(drop),
            SnapshotEffect::BindContent(content) | SnapshotEffect::MarkContent(content) => {
                kinds.contents.replace(&content).await.map(drop)
            }
            SnapshotEffect::DeleteContent(content) => kinds.contents.delete(&content).await,
        }
    }

    fn shown(world: &SnapshotWorld) -> Option<&VolumeSnapshotStatus> {
        world.snapshot.status.as_ref()
    }

    async fn show(&self, world: &SnapshotWorld, status: VolumeSnapshotStatus) -> Result<(), EffectError> {
        let before = world.snapshot.status.as_ref().and_then(|status| status.ready_to_use);
        let ready = status.ready_to_use == Some(true) && before != Some(true);
        let snapshot = VolumeSnapshot { status: Some(status), ..(*world.snapshot).clone() };
        self.0.kinds().snapshots.replace_status(&snapshot).await?;
        if ready {
            let note = format!("Snapshot {} is ready to use.", ObjectKey::of(&snapshot));
            self.0.kinds().recorder.record(reference(&snapshot), Level::Normal, "SnapshotReady", &note);
        }
        Ok(())
    }

    fn subject(world: &SnapshotWorld) -> Option<ObjectReference> {
        Some(reference(&*world.snapshot))
    }
}

/// The controller of contents.
pub struct Contents(pub Studio);

impl Controller for Contents {
    const NAME: &'static str = "contents";
    type Key = ObjectKey;
    type World = ContentWorld;
    type Effect = ContentEffect;
    type Why = ContentWhy;
    type Status = VolumeSnapshotContentStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<ContentWorld> {
        let (kinds, by) = (self.0.kinds(), &self.0.office.by);
        let content = kinds.contents.get(key)?;
        let back = &content.spec.volume_snapshot_ref;
        let snapshot =
            ObjectKey::new(back.namespace.clone().unwrap_or_default(), back.name.clone().unwrap_or_default());
        let source = &content.spec.source;
        let logical = match (&source.snapshot_handle, back.uid.as_deref()) {
            (Some(handle), _) => {
                handle.parse::<Handle>().ok().and_then(|handle| by.by_uid.first(&handle.volume().to_owned()))
            }
            (None, Some(uid)) => kinds.logical.get(&ObjectKey::cluster_wide(logical_name(uid))),
            (None, None) => None,
        };
        let mut copies =
            logical.as_deref().map(|logical| self.0.office.copies_of(logical)).unwrap_or_default();
        if logical.is_none()
            && let Some(handle) =
                source.snapshot_handle.as_ref().and_then(|handle| handle.parse::<Handle>().ok())
        {
            let fills = by.filled_from.get(&handle.volume().to_owned());
            copies.extend(fills.iter().map(|volume| name(&**volume).to_owned()));
        }
        let class = content.spec.volume_snapshot_class_name.clone();
        let volume = source.volume_handle.as_ref().and_then(|handle| by.by_handle.first(handle));
        Some(ContentWorld {
            driver: self.0.office.driver.clone(),
            namespace: self.0.namespace.clone(),
            guards: self.0.guards,
            snapshot: kinds.snapshots.get(&snapshot),
            class: class.and_then(|name| kinds.snapshot_classes.get(&ObjectKey::cluster_wide(name))),
            source: source.volume_handle.as_ref().and_then(|handle| by.by_uid.first(handle)),
            claim: volume.as_deref().and_then(|volume| claim_of(volume).map(|(key, _)| key)),
            logical,
            copies,
            sighting: self.0.desk.sighting(&key.name),
            forgotten: self.0.desk.has_forgotten(&key.name),
            failure: self.0.office.desk.failure(key),
            trouble: trouble.cloned(),
            content,
        })
    }

    fn decide(world: &ContentWorld, now: Timestamp) -> ContentDecision {
        content::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: ContentEffect) -> Result<(), EffectError> {
        let kinds = self.0.kinds();
        match effect {
            ContentEffect::Guard(content) | ContentEffect::Release(content) => {
                kinds.contents.replace(&content).await.map(drop)
            }
            ContentEffect::Make(logical) => kinds.logical.create(&logical).await.map(drop),
            ContentEffect::Discard { volume, code, message } => {
                kinds.logical.delete(&volume).await?;
                let (node, now) = (&volume.spec.node_name, self.0.clock.now());
                self.0.office.desk.fail(key, code, &message, node, now);
                if let Some(content) = kinds.contents.get(key) {
                    let note = format!("failed to take snapshot on node {node}: {message} (code {code})");
                    kinds.recorder.record(
                        reference(&*content),
                        Level::Warning,
                        "SnapshotCreationFailed",
                        &note,
                    );
                }
                Ok(())
            }
            ContentEffect::Find { handle } => {
                let (place, volume) = remote(&handle)?;
                let found = self.0.stores.find(&place, &volume).await?;
                // The newest one, as a restore takes it. Its bytes are the least that a volume must hold.
                let found = found.last().map(|snapshot| snapshot.bytes);
                self.0.desk.saw(&key.name, Sighting { handle, at: self.0.clock.now(), found });
                Ok(())
            }
            ContentEffect::DeleteLogical(logical) => kinds.logical.delete(&logical).await,
            ContentEffect::Forget { handle } => {
                let (place, volume) = remote(&handle)?;
                self.0.stores.forget(&place, &volume).await?;
                self.0.desk.forgot(&key.name);
                Ok(())
            }
        }
    }

    fn shown(world: &ContentWorld) -> Option<&VolumeSnapshotContentStatus> {
        world.content.status.as_ref()
    }

    async fn show(
        &self,
        world: &ContentWorld,
        status: VolumeSnapshotContentStatus,
    ) -> Result<(), EffectError> {
        if status.ready_to_use == Some(true) {
            self.0.office.desk.forget(&ObjectKey::of(&*world.content));
        }
        let content = VolumeSnapshotContent { status: Some(status), ..(*world.content).clone() };
        self.0.kinds().contents.replace_status(&content).await.map(drop)
    }

    fn subject(world: &ContentWorld) -> Option<ObjectReference> {
        Some(reference(&*world.content))
    }

    fn forget(&self, key: &ObjectKey) {
        self.0.desk.drop_all(&key.name);
        self.0.office.desk.forget(key);
    }
}

fn remote(handle: &str) -> Result<(ObjectKey, String), EffectError> {
    let no_backup = || EffectError::new(Class::BadInput, format!("{handle:?} names no backup"));
    let handle: Handle = handle.parse().map_err(|_| no_backup())?;
    let place = place_of(&handle).ok_or_else(no_backup)?;
    Ok((place, handle.volume().to_owned()))
}

/// The controller of claims that snapshots are taken of.
pub struct Sources(pub Studio);

impl Controller for Sources {
    const NAME: &'static str = "sources";
    type Key = ObjectKey;
    type World = SourceWorld;
    type Effect = SourceEffect;
    type Why = SourceWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<SourceWorld> {
        let claim = self.0.kinds().claims.get(key)?;
        let snapshots = self.0.of_claim.get(key);
        let unfinished = snapshots.iter().filter(|snapshot| {
            let ready = snapshot.status.as_ref().and_then(|status| status.ready_to_use);
            snapshot.metadata.deletion_timestamp.is_none()
                && ready != Some(true)
                && !uid(&***snapshot).is_empty()
        });
        Some(SourceWorld {
            unfinished: unfinished.map(|snapshot| name(&**snapshot).to_owned()).collect(),
            claim,
        })
    }

    fn decide(world: &SourceWorld, _: Timestamp) -> SourceDecision {
        source::decide(world)
    }

    async fn act(&self, _: &ObjectKey, effect: SourceEffect) -> Result<(), EffectError> {
        let SourceEffect::Release(claim) = effect;
        self.0.kinds().claims.replace(&claim).await.map(drop)
    }

    fn shown(_: &SourceWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &SourceWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}
