//! Answers the mirrors of the peer cluster: whether bytes may come, and what a volume is here.

use crate::calls::READY_WITHIN;
use crate::copies::{Copies, Seen};
use crate::desk::{Memory, Standing};
use crate::ground::Ground;
use crate::halt;
use crate::kinds::Kinds;
use crate::talk::{Answer, Ask, Offer, Refused, Request, Role, Shared, State};
use crate::words::{Words as _, is_secondary};
use kube::api::ObjectMeta;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::topolvm::{LogicalVolume, LogicalVolumeSpec};
use lifeboat_api::{finalizers, labels};
use lifeboat_engine::ObjectKey;
use lifeboat_node::provision::words::{device_class, quantity};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// What is known here of a volume that a peer speaks of.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its object.
    pub volume: Arc<LogicalVolume>,
    /// Its copies.
    pub copies: Option<Copies>,
    /// What is remembered of it.
    pub memory: Memory,
    /// Whether it is being made primary.
    pub promoting: bool,
}

/// What an offer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A place has to be made first.
    Make,
    /// Bytes may come.
    Accept,
    /// Not from this node, or not now, or not at all.
    Say(Answer),
}

/// Whether bytes may come for a volume.
#[must_use]
pub fn judge(known: Option<&Known>, offer: &Offer, node: &str) -> Verdict {
    let Some(known) = known else { return Verdict::Make };
    let (volume, say) = (&known.volume, |answer| Verdict::Say(answer));
    if volume.spec.node_name != node {
        return say(Answer::NotHere);
    }
    if let Some(other) = volume.note(annotations::MIRROR_PEER).filter(|peer| **peer != *offer.theirs) {
        let why = format!("{} is mirrored with another volume, {other}", volume.name());
        return say(Answer::Refused(Refused::Unfit(why)));
    }
    if volume.is_going() {
        return say(Answer::Later("an earlier copy of the volume is being deleted there".to_owned()));
    }
    let Some(copies) = &known.copies else {
        return say(Answer::Later("the disks there cannot be looked at".to_owned()));
    };
    let seen = copies.epoch();
    if seen > offer.epoch {
        return say(Answer::Refused(Refused::OldEpoch { offered: offer.epoch, seen }));
    }
    if !is_secondary(volume) || known.promoting {
        return say(Answer::Refused(Refused::Primary { epoch: seen }));
    }
    if copies.live.is_some() {
        return say(Answer::Later("the volume is being made secondary there".to_owned()));
    }
    Verdict::Accept
}

/// What a volume is here.
#[must_use]
pub fn state(known: Option<&Known>, node: &str) -> Answer {
    let Some(known) = known else {
        return Answer::State(State { role: Role::Absent, epoch: 0, newest: None });
    };
    if known.volume.spec.node_name != node {
        return Answer::NotHere;
    }
    let Some(copies) = &known.copies else {
        return Answer::Later("the disks there cannot be looked at".to_owned());
    };
    let received = is_secondary(&known.volume) && copies.live.is_none();
    if !received {
        return Answer::State(State { role: Role::Primary, epoch: copies.epoch(), newest: None });
    }
    let arrived = known.memory.completed.as_ref().map(|done| (done.epoch, done.cut));
    let sealed = State::newest_of(copies.filling.as_ref().and_then(|filling| filling.complete.as_ref()));
    let replica = State::newest_of(copies.replica.as_ref().map(|(image, _)| image));
    let newest = [arrived, sealed, replica].into_iter().flatten().max();
    let epoch = copies.epoch().max(newest.map_or(0, |(epoch, _)| epoch));
    Answer::State(State { role: Role::Secondary, epoch, newest })
}

/// The object that makes a place for a volume of the peer.
#[must_use]
pub fn place_for(offer: &Offer, node: &str) -> LogicalVolume {
    let notes = [
        (annotations::MIRROR_ROLE, Some(annotations::MIRROR_SECONDARY.to_owned())),
        (annotations::MIRROR_PEER, Some(offer.theirs.clone())),
        (annotations::CLAIM, Some(offer.claim.clone())),
        (annotations::VOLUME_MODE, Some(offer.mode.clone())),
        (parameters::FS_TYPE, offer.filesystem.clone()),
    ];
    let notes = notes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let metadata = ObjectMeta {
        name: Some(offer.name.clone()),
        annotations: Some(notes.collect()),
        labels: Some([(labels::CREATED_BY.to_owned(), labels::CREATED_BY_TOPOLVM.to_owned())].into()),
        finalizers: Some(vec![finalizers::LOGICAL_VOLUME.to_owned(), finalizers::MIRROR.to_owned()]),
        ..ObjectMeta::default()
    };
    let spec = LogicalVolumeSpec {
        name: offer.name.clone(),
        node_name: node.to_owned(),
        size: quantity(offer.size),
        device_class: (!offer.class.is_empty()).then(|| offer.class.clone()),
        ..LogicalVolumeSpec::default()
    };
    LogicalVolume { metadata, spec, status: None }
}

/// Answers for one node.
#[derive(Clone)]
pub struct Reception {
    pub(crate) ground: Ground,
    /// Wakes the controller of secondaries.
    pub(crate) wake: Arc<dyn Fn(ObjectKey) + Send + Sync>,
}

impl Reception {
    /// Answers a request of a mirror that showed the key of these classes.
    pub(crate) async fn answer(
        &self,
        ip: IpAddr,
        classes: Vec<String>,
        key: Shared,
        request: Request,
    ) -> Answer {
        let from = match &request {
            Request::Offer(offer) => offer.from.ip(),
            Request::Ask(ask) => ask.from.ip(),
        };
        if !self.ground.kinds.logical.is_synced() {
            return Answer::Later("the mirror there has only just begun".to_owned());
        }
        let fence = halt::fenced(&self.ground.kinds, ip).or_else(|| halt::fenced(&self.ground.kinds, from));
        if let Some(fence) = fence {
            tracing::warn!(%ip, %from, fence, "a mirror that is cut off was turned away");
            return Answer::Refused(Refused::Fenced(fence));
        }
        match request {
            Request::Ask(ask) => self.state(&ask).await,
            Request::Offer(offer) => {
                let identities = identities(&self.ground.kinds, &classes);
                self.offered(ip, identities, key, &offer).await
            }
        }
    }

    async fn known(&self, yours: Option<&String>, theirs: &str) -> Option<Known> {
        let kinds = &self.ground.kinds;
        let named = yours.and_then(|uid| kinds.by_uid.first(uid));
        let volume = named.or_else(|| kinds.by_peer.first(&theirs.to_owned()))?;
        if let Seen::Unlisted = self.ground.copies(&volume) {
            // A failure is remembered by the listing itself.
            let _ = self.ground.disks.list(device_class(&volume)).await;
        }
        let copies = match self.ground.copies(&volume) {
            Seen::Listed(copies) => Some(*copies),
            _ => None,
        };
        let (memory, promoting) = (self.ground.desk.of(volume.uid()), self.ground.is_promoting(volume.uid()));
        Some(Known { volume, copies, memory, promoting })
    }

    async fn state(&self, ask: &Ask) -> Answer {
        state(self.known(ask.yours.as_ref(), &ask.theirs).await.as_ref(), &self.ground.config.node)
    }

    async fn offered(&self, ip: IpAddr, identities: BTreeSet<String>, key: Shared, offer: &Offer) -> Answer {
        if let Some(mode) = halt::frozen(&self.ground.kinds, &identities) {
            return Answer::Refused(Refused::Frozen(mode));
        }
        let node = &self.ground.config.node;
        let known = self.known(offer.yours.as_ref(), &offer.theirs).await;
        let volume = match (judge(known.as_ref(), offer, node), known) {
            (Verdict::Say(answer), _) => return answer,
            (Verdict::Accept, Some(known)) => known.volume,
            (Verdict::Accept | Verdict::Make, _) => match self.make(offer).await {
                Ok(volume) => volume,
                Err(answer) => return answer,
            },
        };
        let uid = volume.uid().to_owned();
        let mut changes = self.ground.desk.changes();
        let standing = Standing {
            epoch: offer.epoch,
            key,
            from: offer.from,
            came_from: ip,
            identities,
            size: offer.size,
        };
        self.ground.desk.note(&uid, |memory| memory.offer = Some(standing));
        (self.wake)(ObjectKey::of(&*volume));
        let ready = async {
            while !self.ground.desk.of(&uid).is_ready(offer.epoch) {
                if changes.changed().await.is_err() {
                    break;
                }
            }
        };
        match tokio::time::timeout(READY_WITHIN, ready).await {
            Ok(()) => Answer::Ready { volume: uid },
            Err(_) => Answer::Later("the place for the volume is not ready there yet".to_owned()),
        }
    }

    /// Makes a place. One of the same name that is not the peer's is left alone.
    async fn make(&self, offer: &Offer) -> Result<Arc<LogicalVolume>, Answer> {
        let unfit = |why: String| Answer::Refused(Refused::Unfit(why));
        let (kinds, node) = (&self.ground.kinds, &self.ground.config.node);
        if let Err(error) = self.ground.disks.list(&offer.class).await {
            return Err(unfit(error.to_string()));
        }
        let made = kinds.logical.create(&place_for(offer, node)).await;
        let found = match made {
            Ok(made) => Some(made),
            Err(_) => kinds.logical.get(&ObjectKey::cluster_wide(offer.name.clone())),
        };
        match found {
            Some(found) if found.note(annotations::MIRROR_PEER) == Some(&offer.theirs) => Ok(found),
            Some(found) => {
                let name = found.name();
                Err(unfit(format!(
                    "there is a LogicalVolume {name} that is no copy of this volume: it is left alone"
                )))
            }
            None => Err(Answer::Later("the place for the volume could not be made there yet".to_owned())),
        }
    }
}

/// What maintenance modes call the relations of some classes by.
fn identities(kinds: &Kinds, classes: &[String]) -> BTreeSet<String> {
    let classes = classes.iter().filter_map(|name| kinds.classes.get(&ObjectKey::cluster_wide(name.clone())));
    let labels = [labels::REPLICATION_ID, labels::STORAGE_ID];
    classes.flat_map(|class| labels.map(|label| class.label(label).map(str::to_owned))).flatten().collect()
}
