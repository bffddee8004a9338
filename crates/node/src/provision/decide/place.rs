//! Where a volume goes: the nodes that a class allows, the bytes that each has free and has not promised yet, and the best of them.

use crate::provision::words::{
    COUNTED, DEFAULT_CLASS, DIRECTORY_CLASSES, annotation, current_size, device_class, made_at, name, uid,
    volume_id, wanted_size,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, TopologySelectorTerm};
use lifeboat_api::annotations::{CAPACITY_PREFIX, DEFAULT_DEVICE_CLASS};
use lifeboat_api::labels::TOPOLOGY_NODE;
use lifeboat_api::topolvm::LogicalVolume;
use std::cmp::Reverse;
use std::sync::Arc;

/// A volume older than this is in every report, whether or not the report still names it.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// A node and what is promised on it.
#[derive(Debug, Clone)]
pub struct Room {
    /// The node.
    pub node: Arc<Node>,
    /// Its LogicalVolumes.
    pub volumes: Vec<Arc<LogicalVolume>>,
    /// Bytes that this process is just promising to others: device class and bytes.
    pub held: Vec<(String, u64)>,
}

/// Why nothing can be put anywhere.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum NoPlace {
    /// No node is allowed that has the device class.
    NoNode,
    /// The allowed nodes have not enough room.
    NoRoom {
        /// The node that has most.
        best: String,
        /// Its free bytes.
        free: u64,
    },
}

/// The annotation that reports free bytes of a device class.
pub fn capacity_key(class: &str) -> String {
    format!("{CAPACITY_PREFIX}{}", if class.is_empty() { DEFAULT_DEVICE_CLASS } else { class })
}

impl Room {
    /// Its node's name.
    pub fn name(&self) -> &str {
        name(&*self.node)
    }

    /// Bytes that a new volume of a class may have: what is reported less what is promised; `None` where the node has no such class.
    pub fn free(&self, class: &str, now: Timestamp) -> Option<u64> {
        let reported: u64 = annotation(&self.node.metadata, &capacity_key(class))?.parse().ok()?;
        let counted = annotation(&self.node.metadata, COUNTED);
        let class = self.canonical(class);
        let of_class = self.volumes.iter().filter(|volume| self.canonical(device_class(volume)) == class);
        let promised = of_class.map(|volume| promised(volume, counted, now)).fold(0, u64::saturating_add);
        let held = self
            .held
            .iter()
            .filter(|(held, _)| self.canonical(held) == class)
            .fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
        Some(reported.saturating_sub(promised).saturating_sub(held))
    }

    /// Whether the volumes of a class are directories.
    pub fn is_directory(&self, class: &str) -> bool {
        let class = self.canonical(class);
        let listed = annotation(&self.node.metadata, DIRECTORY_CLASSES).unwrap_or_default();
        listed.split(',').any(|listed| !listed.is_empty() && self.canonical(listed) == class)
    }

    /// One name for a class: the default class can be named, or not.
    fn canonical<'a>(&self, class: &'a str) -> &'a str {
        if annotation(&self.node.metadata, DEFAULT_CLASS) == Some(class) { "" } else { class }
    }

    /// Whether pods can be expected to run there.
    fn is_fit(&self) -> bool {
        let conditions = self.node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
        ready.all(|condition| condition.status == "True")
    }

    fn is_cordoned(&self) -> bool {
        self.node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
    }

    /// Whether a class allows volumes here.
    pub fn is_allowed(&self, topologies: &[TopologySelectorTerm]) -> bool {
        let labels = self.node.metadata.labels.as_ref();
        let label = |key: &str| match labels.and_then(|labels| labels.get(key)) {
            // A node that nobody has labelled yet is still itself.
            None if key == TOPOLOGY_NODE => Some(self.name().to_owned()),
            found => found.cloned(),
        };
        let fits = |term: &TopologySelectorTerm| {
            let mut expressions = term.match_label_expressions.iter().flatten();
            expressions.all(|expression| {
                label(&expression.key).is_some_and(|value| expression.values.contains(&value))
            })
        };
        topologies.is_empty() || topologies.iter().any(fits)
    }
}

/// Whether a change of a node can change what is put there. Its kubelet writes its status every few minutes, and that alone says nothing new.
pub fn says_something_new(before: Option<&Node>, after: Option<&Node>) -> bool {
    let said = |node: &Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.filter(|condition| condition.type_ == "Ready");
        let ready: Vec<String> = ready.map(|condition| condition.status.clone()).collect();
        (node.metadata.labels.clone(), node.metadata.annotations.clone(), node.spec.clone(), ready)
    };
    before.map(said) != after.map(said)
}

/// Bytes that a report of free bytes does not know of yet.
fn promised(volume: &LogicalVolume, counted: Option<&str>, now: Timestamp) -> u64 {
    let wanted = wanted_size(volume);
    let named = counted.is_some_and(|counted| counted.split(',').any(|listed| listed.contains(uid(volume))));
    let young = now.duration_since(made_at(&volume.metadata)) < REPORTED_WITHIN;
    // A node that does not say what it has counted is believed to have counted what it has told of.
    let unsaid = young && counted.is_some();
    if !named && (volume_id(volume).is_none() || unsaid) {
        return wanted;
    }
    // A volume that is being grown has been promised the difference.
    current_size(volume).map_or(0, |current| wanted.saturating_sub(current))
}

/// The best node for an unbound volume: where pods run, and most is free.
pub fn choose<'a>(
    rooms: &'a [Room],
    topologies: &[TopologySelectorTerm],
    class: &str,
    size: u64,
    avoid: Option<&str>,
    now: Timestamp,
) -> Result<&'a Room, NoPlace> {
    let allowed = rooms.iter().filter(|room| room.is_fit() && room.is_allowed(topologies));
    let mut free: Vec<(&Room, u64)> =
        allowed.filter_map(|room| Some((room, room.free(class, now)?))).collect();
    free.sort_by_key(|(room, free)| {
        (avoid == Some(room.name()), room.is_cordoned(), Reverse(*free), room.name().to_owned())
    });
    match (
        free.iter().find(|(_, free)| *free >= size),
        free.iter().max_by_key(|(room, free)| (*free, Reverse(room.name()))),
    ) {
        (Some((room, _)), _) => Ok(room),
        (None, Some((room, free))) => Err(NoPlace::NoRoom { best: room.name().to_owned(), free: *free }),
        (None, None) => Err(NoPlace::NoNode),
    }
}

/// Whether a volume fits on the node that somebody else has chosen.
pub fn fits(
    room: Option<&Room>,
    topologies: &[TopologySelectorTerm],
    class: &str,
    size: u64,
    now: Timestamp,
) -> Result<(), NoPlace> {
    let room = room.filter(|room| room.is_allowed(topologies)).ok_or(NoPlace::NoNode)?;
    let free = room.free(class, now).ok_or(NoPlace::NoNode)?;
    if free < size { Err(NoPlace::NoRoom { best: room.name().to_owned(), free }) } else { Ok(()) }
}
