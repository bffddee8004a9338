//! The group of each cluster, as the hub wants it: built anew from the DRPlacementControl and its policy with every decision, on top of what is
//! already asked of it, so that what only the cluster knew once is not forgotten.

use crate::drpc::commission::{Act, Commission, epoch_on};
use crate::drpc::decide::{carry, recover};
use crate::drpc::world::{GroupWords as _, Site, World};
use crate::words::{Words as _, pairs};
use crate::works;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ObjectMeta;
use lifeboat_api::ramen::{
    AsyncMode, DRState, NO_S3, PeerClass, ProtectedPvc, ReplicationState, SyncMode, VolSyncDestination,
    VolSyncSource, VolSyncSpec, VolumeReplicationGroup, VolumeReplicationGroupSpec,
};
use lifeboat_api::work::ManifestWork;
use lifeboat_api::{annotations, labels};
use std::collections::{BTreeMap, BTreeSet};

/// Annotations of the DRPlacementControl that its groups get as they are.
const CARRIED: &[&str] = &[
    annotations::IS_CG_ENABLED,
    annotations::IS_SUBMARINER_ENABLED,
    annotations::USE_VOLSYNC,
    annotations::ENABLE_DIFF,
];

/// How far the last copy of a planned move is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FinalSync {
    /// Not at all.
    #[default]
    None,
    /// Scheduled copies shall stop.
    Prepare,
    /// The last copy shall run.
    Run,
}

impl FinalSync {
    /// How far a group is asked to go.
    pub fn asked(group: Option<&VolumeReplicationGroup>) -> Self {
        match group {
            Some(group) if group.spec.run_final_sync => Self::Run,
            Some(group) if group.spec.prepare_for_final_sync => Self::Prepare,
            _ => Self::None,
        }
    }
}

/// Builds groups for one commission.
pub struct Builder<'a> {
    world: &'a World,
    commission: &'a Commission,
    now: Timestamp,
}

impl<'a> Builder<'a> {
    /// For this commission.
    pub fn new(world: &'a World, commission: &'a Commission, now: Timestamp) -> Self {
        Self { world, commission, now }
    }

    /// The primary, on the holder of the commission.
    pub fn primary(&self, site: &Site, last: FinalSync) -> VolumeReplicationGroup {
        let before = before(site);
        let mut group = self.base(site, before);
        group.spec.replication_state = ReplicationState::Primary;
        group.spec.action = match last {
            FinalSync::None => self.commission.act.action(),
            FinalSync::Prepare | FinalSync::Run => Act::Relocate.action(),
        };
        group.spec.prepare_for_final_sync = last == FinalSync::Prepare;
        group.spec.run_final_sync = last == FinalSync::Run;
        let peer = self.world.peer_of(&site.name);
        self.mode(&mut group, before, before.or_else(|| peer.and_then(before_of)));
        let mut volsync = self.volsync(before);
        let here = site.group_at(self.commission.epoch, self.now).filter(|seen| seen.is_primary());
        // What a primary received before has been taken over; until it says so, it must know what that was.
        if here.is_some_and(|seen| is_ready(seen)) {
            volsync.rd_spec.clear();
        }
        volsync.rs_spec = self.senders(peer, &volsync.rs_spec);
        group.spec.vol_sync = Some(volsync).filter(|volsync| *volsync != VolSyncSpec::default());
        let notes = group.metadata.annotations.get_or_insert_default();
        if self.is_first(site) {
            notes.insert(annotations::FIRST_DEPLOYMENT.to_owned(), "true".to_owned());
        }
        if let Some(epoch) = self.world.drpc.note(annotations::RESTORE_ORPHANS) {
            notes.insert(annotations::RESTORE_ORPHANS.to_owned(), epoch.to_owned());
        }
        if let Some(point) = self.point(site) {
            notes.insert(annotations::TO_POINT.to_owned(), point);
        }
        group
    }

    /// The point that a failover restores. It is the user's until the application has arrived; what is asked for after that is for the next failover.
    fn point(&self, site: &Site) -> Option<String> {
        let said = site.intent.as_ref().filter(|intent| epoch_on(*intent) == self.commission.epoch);
        let said =
            said.and_then(|intent| intent.note(annotations::TO_POINT)).filter(|point| !point.is_empty());
        let asked = self.world.drpc.note(annotations::TO_POINT).filter(|point| !point.is_empty());
        let point = match carry::has_arrived(self.world, self.commission) {
            true => said,
            false => asked,
        };
        point.filter(|_| self.commission.act == Act::Failover).map(str::to_owned)
    }

    /// A secondary.
    pub fn secondary(&self, site: &Site) -> VolumeReplicationGroup {
        let before = before(site);
        let mut group = self.base(site, before);
        group.spec.replication_state = ReplicationState::Secondary;
        // Says how its volumes became secondary, which stays true for as long as they are.
        group.spec.action = match before {
            Some(before) if before.is_primary() => self.commission.act.action(),
            Some(before) => before.spec.action.clone(),
            None => None,
        };
        let holder = self.world.site(&self.commission.holder);
        self.mode(&mut group, before, holder.filter(|holder| holder.name != site.name).and_then(before_of));
        let mut volsync = self.volsync(before);
        volsync.rs_spec.clear();
        volsync.rd_spec = self.receivers(site, volsync.rd_spec);
        group.spec.vol_sync = Some(volsync).filter(|volsync| *volsync != VolSyncSpec::default());
        group
    }

    /// Nobody has ever seen this group: stores without a record hide nothing. One that could not be read may hide everything.
    fn is_first(&self, site: &Site) -> bool {
        let reading = self.world.books.reading.as_ref();
        let empty =
            reading.is_some_and(|reading| reading.epoch == 0) && recover::unread(self.world).is_none();
        empty && self.may_be_first(site)
    }

    /// Nobody that the hub knows of has ever seen this group; what stores say is another matter.
    pub fn may_be_first(&self, site: &Site) -> bool {
        let young = matches!(self.world.phase(), None | Some(DRState::Initiating | DRState::Deploying));
        // One that is there and that we did not send as the first is somebody's memory.
        let sent = site
            .intent
            .as_ref()
            .is_some_and(|intent| intent.note(annotations::FIRST_DEPLOYMENT) == Some("true"));
        let taken_up = site.seen.found().is_some_and(|seen| !sent || seen.is_observed());
        self.commission.act == Act::Deploy && young && !taken_up
    }

    fn base(&self, site: &Site, before: Option<&VolumeReplicationGroup>) -> VolumeReplicationGroup {
        let drpc = &self.world.drpc;
        let key = self.world.group_key();
        let mut notes = self.commission.notes();
        notes.extend(pairs([
            (annotations::DRPC_UID, drpc.uid()),
            (annotations::DESTINATION_CLUSTER, &site.name),
            // Said aloud: agents add annotations and never take one away.
            (annotations::FIRST_DEPLOYMENT, "false"),
        ]));
        if let Some(fleet) = self.fleet(site) {
            notes.insert(annotations::FLEET.to_owned(), fleet);
        }
        // An agent takes no annotation away: an order or a point of an earlier day is unsaid aloud.
        for (key, unsaid) in [
            (annotations::END_PROTECTION, "false"),
            (annotations::TO_POINT, ""),
            (annotations::RESTORE_ORPHANS, ""),
        ] {
            let said = [site.intent.as_ref(), site.seen.found().map(AsRef::as_ref)];
            if said.into_iter().flatten().any(|group| group.note(key).is_some()) {
                notes.insert(key.to_owned(), unsaid.to_owned());
            }
        }
        let carried = CARRIED.iter().filter_map(|key| Some(((*key).to_owned(), drpc.note(key)?.to_owned())));
        notes.extend(carried);
        let spec = VolumeReplicationGroupSpec {
            pvc_selector: drpc.spec.pvc_selector.clone(),
            s3_profiles: profiles(self.world),
            static_ip_translation_spec: before
                .and_then(|before| before.spec.static_ip_translation_spec.clone()),
            ..VolumeReplicationGroupSpec::default()
        };
        VolumeReplicationGroup {
            metadata: ObjectMeta {
                name: Some(key.name),
                namespace: Some(key.namespace),
                labels: Some(pairs([(labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE)])),
                annotations: Some(notes),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }

    /// The fleet that the user named, or that the application's groups were given first: a hub that lost its key must find their records again.
    fn fleet(&self, site: &Site) -> Option<String> {
        let others = [Some(site), self.world.site(&self.commission.holder), self.world.peer_of(&site.name)];
        let groups = others
            .into_iter()
            .flatten()
            .flat_map(|site| [site.seen.found().map(AsRef::as_ref), site.intent.as_ref()]);
        let known = groups.flatten().find_map(|group| group.note(annotations::FLEET)).map(str::to_owned);
        let named = self.world.drpc.note(annotations::FLEET).map(str::to_owned);
        named.or(known).or_else(|| self.world.fleet.clone())
    }

    /// How data flows. Classes are added as claims use them and never taken away; a secondary has what its primary has.
    fn mode(
        &self,
        group: &mut VolumeReplicationGroup,
        before: Option<&VolumeReplicationGroup>,
        model: Option<&VolumeReplicationGroup>,
    ) {
        let Some(policy) = &self.world.policy else { return };
        let known = model.or(before).map(|group| {
            let asynchronous = group.spec.async_.iter().flat_map(|mode| &mode.peer_classes);
            asynchronous.chain(group.spec.sync.iter().flat_map(|mode| &mode.peer_classes)).cloned().collect()
        });
        let status = policy.status.as_ref();
        if self.world.is_metro() {
            let offered = status.and_then(|status| status.sync.as_ref()).map(|sync| &sync.peer_classes);
            let classes = classes(known, offered.map_or(&[][..], Vec::as_slice), &self.used());
            group.spec.sync = Some(SyncMode { peer_classes: classes });
            return;
        }
        let offered = status.and_then(|status| status.async_.as_ref()).map(|mode| &mode.peer_classes);
        group.spec.async_ = Some(AsyncMode {
            replication_class_selector: policy.spec.replication_class_selector.clone(),
            volume_snapshot_class_selector: policy.spec.volume_snapshot_class_selector.clone(),
            volume_group_snapshot_class_selector: policy.spec.volume_group_snapshot_class_selector.clone(),
            scheduling_interval: policy.spec.scheduling_interval.clone(),
            peer_classes: classes(known, offered.map_or(&[][..], Vec::as_slice), &self.used()),
        });
    }

    /// Storage classes of the claims that the primary protects.
    fn used(&self) -> BTreeSet<String> {
        let holder = self.world.site(&self.commission.holder).and_then(|site| site.seen.found());
        let claims = holder.iter().filter_map(|group| group.status.as_ref());
        let claims = claims.flat_map(|status| &status.protected_pvcs);
        claims.filter_map(|claim| claim.storage_class_name.clone()).collect()
    }

    fn volsync(&self, before: Option<&VolumeReplicationGroup>) -> VolSyncSpec {
        let mut volsync = before.and_then(|before| before.spec.vol_sync.clone()).unwrap_or_default();
        volsync.disabled = self.world.is_metro();
        let asked = self.world.drpc.spec.vol_sync_spec.as_ref();
        volsync.mover_config = asked.map(|asked| asked.mover_config.clone()).unwrap_or_default();
        volsync
    }

    /// What a secondary receives: what the primary says it copies. Where the primary is silent, not yet primary or says nothing, what was named before:
    /// an empty list is no request to forget.
    fn receivers(&self, site: &Site, before: Vec<VolSyncDestination>) -> Vec<VolSyncDestination> {
        let holder = self.world.site(&self.commission.holder).filter(|holder| holder.name != site.name);
        let told = holder.and_then(|holder| holder.group_at(self.commission.epoch, self.now));
        let Some(told) = told.filter(|group| group.is_primary() && group.is_observed()) else {
            return before;
        };
        let named: Vec<VolSyncDestination> = told
            .copied()
            .filter(|claim| self.is_ours(claim))
            .map(|claim| VolSyncDestination { protected_pvc: Some(bare(claim)), mover_config: None })
            .collect();
        if named.is_empty() { before } else { named }
    }

    /// Whether a claim is in the application's namespace. A cluster does not get to name others to its peer.
    fn is_ours(&self, claim: &ProtectedPvc) -> bool {
        claim.namespace.as_deref().is_none_or(|space| space.is_empty() || space == self.world.space())
    }

    /// Where a primary sends to, for clusters whose names do not reach each other.
    fn senders(&self, peer: Option<&Site>, before: &[VolSyncSource]) -> Vec<VolSyncSource> {
        if self.world.drpc.note(annotations::IS_SUBMARINER_ENABLED) != Some("false") {
            return Vec::new();
        }
        let told = peer.and_then(|peer| peer.group(self.now)).filter(|group| group.is_secondary());
        let listed = told.iter().filter_map(|group| group.status.as_ref()).flat_map(|status| &status.rd_info);
        let named: Vec<VolSyncSource> = listed
            .filter(|info| info.rsync_tls.is_some())
            .filter(|info| info.protected_pvc.as_ref().is_some_and(|claim| self.is_ours(claim)))
            .map(|info| VolSyncSource {
                protected_pvc: info.protected_pvc.as_ref().map(bare),
                rsync_tls: info.rsync_tls.clone(),
                mover_config: None,
            })
            .collect();
        if named.is_empty() { before.to_vec() } else { named }
    }
}

/// What is asked of a cluster already, or what is there where the hub does not remember having asked.
fn before(site: &Site) -> Option<&VolumeReplicationGroup> {
    site.intent.as_ref().or_else(|| site.seen.found().map(AsRef::as_ref))
}

fn before_of(site: &Site) -> Option<&VolumeReplicationGroup> {
    before(site)
}

/// Whether a primary's data can be used.
pub fn is_ready(group: &VolumeReplicationGroup) -> bool {
    use lifeboat_api::conditions::vrg as words;
    group.is_primary()
        && group.state() == Some(&lifeboat_api::ramen::VrgState::Primary)
        && group.says(words::TYPE_DATA_READY)
        && group.says(words::TYPE_CLUSTER_DATA_READY)
}

/// A claim without how far its copies are: that would change with every copy.
pub fn bare(claim: &ProtectedPvc) -> ProtectedPvc {
    ProtectedPvc {
        conditions: Vec::new(),
        last_sync_time: None,
        last_sync_duration: None,
        last_sync_bytes: None,
        restored_until: None,
        ..claim.clone()
    }
}

/// Object stores of the policy's clusters, sorted; those of clusters that are being removed are left out.
pub fn profiles(world: &World) -> Vec<String> {
    let sites = world.members().into_iter().filter_map(|name| world.site(name)?.drcluster.as_ref());
    let named =
        sites.filter(|cluster| !cluster.is_going()).map(|cluster| cluster.spec.s3_profile_name.clone());
    let all: BTreeSet<String> = named.filter(|name| !name.is_empty()).collect();
    if all.is_empty() { vec![NO_S3.to_owned()] } else { all.into_iter().collect() }
}

/// Classes for a group: all that the policy offers at first; later those it has, refreshed where that does not change what they are, and those
/// that claims have come to use.
fn classes(known: Option<Vec<PeerClass>>, offered: &[PeerClass], used: &BTreeSet<String>) -> Vec<PeerClass> {
    let Some(known) = known.filter(|known| !known.is_empty()) else { return offered.to_vec() };
    let alike = |one: &PeerClass, other: &PeerClass| {
        one.replication_id.is_some() == other.replication_id.is_some()
            && one.grouping == other.grouping
            && one.offloaded == other.offloaded
            && one.global == other.global
    };
    let same =
        |class: &PeerClass| offered.iter().find(|offer| offer.storage_class_name == class.storage_class_name);
    let mut all: Vec<PeerClass> = known
        .iter()
        .map(|class| same(class).filter(|offer| alike(offer, class)).unwrap_or(class).clone())
        .collect();
    let names: BTreeSet<Option<String>> = all.iter().map(|class| class.storage_class_name.clone()).collect();
    let new = offered.iter().filter(|offer| {
        !names.contains(&offer.storage_class_name)
            && offer.storage_class_name.as_ref().is_some_and(|name| used.contains(name))
    });
    all.extend(new.cloned());
    all
}

fn back_reference(world: &World) -> BTreeMap<String, String> {
    pairs([(annotations::DRPC_NAME, world.drpc.name()), (annotations::DRPC_NAMESPACE, world.drpc.space())])
}

/// The work that carries a group to a cluster.
pub fn work(world: &World, cluster: &str, group: &VolumeReplicationGroup) -> ManifestWork {
    works::work(cluster, world.group_work(), back_reference(world), [works::manifest(group)])
}

/// The work that makes the application's namespace on a cluster, and leaves it there.
pub fn space_work(world: &World, cluster: &str) -> ManifestWork {
    let space = Namespace {
        metadata: ObjectMeta { name: Some(world.space().to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let name = works::name(world.drpc.name(), world.space(), works::types::NAMESPACE);
    works::leaving_objects(works::work(cluster, name, back_reference(world), [works::manifest(&space)]))
}

/// The view of the group on a cluster.
pub fn view(world: &World, cluster: &str) -> lifeboat_api::view::ManagedClusterView {
    let key = world.group_key();
    let name = crate::views::name(&key.name, &key.namespace, works::types::GROUP);
    crate::views::view::<VolumeReplicationGroup>(cluster, name, &key, back_reference(world))
}
