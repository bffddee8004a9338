//! What a Node should say about its disks, and what has to be written for that.

use crate::provision::decide::place::capacity_key;
use crate::provision::words::{COUNTED, DEFAULT_CLASS, DIRECTORY_CLASSES, annotation, name};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use lifeboat_api::annotations::CAPACITY_PREFIX;
use lifeboat_api::labels::TOPOLOGY_NODE;
use lifeboat_engine::{Decision, Level, Why};
use lifeboat_lvm::{Capacity, ClassKind, DeviceClass, Error};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// How long figures are believed though nobody tells of a change.
pub const MEASURE_AGAIN: SignedDuration = SignedDuration::from_mins(10);
/// Volumes named as taken into account, at most.
const NAMED: usize = 200;
/// A thin pool that is this full, in percent, is worth a warning.
const NEARLY_FULL: f64 = 80.0;

/// What the disks said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The change that it includes.
    pub change: u64,
    /// When.
    pub at: Timestamp,
    /// Each class.
    pub classes: Vec<ClassReading>,
    /// Names of all volumes.
    pub volumes: BTreeSet<String>,
    /// Names that were there at the reading before; `None` for the first one of this process.
    pub known: Option<BTreeSet<String>>,
}

/// What the disks said of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassReading {
    /// The class.
    pub class: DeviceClass,
    /// Its room.
    pub capacity: Result<Capacity, Error>,
}

/// What a decision needs.
#[derive(Debug, Clone)]
pub struct NodeWorld {
    /// The Node.
    pub node: Arc<Node>,
    /// The last reading.
    pub reading: Option<Reading>,
    /// The last change that the back end told of.
    pub change: u64,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum NodeEffect {
    /// Asks the disks.
    Measure,
    /// Writes what has changed: a merge patch.
    Publish(Value),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum NodeWhy {
    /// Something changes on disk.
    NextChange,
    /// The same, while a thin pool is nearly full.
    PoolNearlyFull {
        /// The device class.
        class: String,
        /// Used data, in whole steps of five percent.
        data: u64,
        /// Used metadata, in whole steps of five percent.
        metadata: u64,
    },
}

impl fmt::Display for NodeWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NextChange => f.write_str("the figures are written; the next change on disk changes them"),
            Self::PoolNearlyFull { class, data, metadata } => write!(
                f,
                "the thin pool of device class {class:?} is nearly full: more than {data} % of its data and {metadata} % of its metadata are used; extend it before writes fail"
            ),
        }
    }
}

impl Why for NodeWhy {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::PoolNearlyFull { .. }).then_some(Level::Warning)
    }
}

/// What is decided.
pub type NodeDecision = Decision<NodeEffect, NodeWhy, ()>;

/// Every rule about figures on a Node.
pub fn decide(world: &NodeWorld, now: Timestamp) -> NodeDecision {
    let Some(reading) = &world.reading else { return Decision::act([NodeEffect::Measure]) };
    if reading.change != world.change || now >= reading.at + MEASURE_AGAIN {
        return Decision::act([NodeEffect::Measure]);
    }
    if let Some(patch) = patch(&world.node, reading) {
        return Decision::act([NodeEffect::Publish(patch)]);
    }
    Decision::wait_until(warning(reading).unwrap_or(NodeWhy::NextChange), reading.at + MEASURE_AGAIN)
}

fn warning(reading: &Reading) -> Option<NodeWhy> {
    reading.classes.iter().find_map(|class| {
        let pool = class.capacity.as_ref().ok()?.pool?;
        if pool.data_percent < NEARLY_FULL && pool.metadata_percent < NEARLY_FULL {
            return None;
        }
        // In steps, so that a pool that fills slowly is told of now and then, not at every write.
        let step = |percent: f64| {
            (0..=20_u64).map(|step| step * 5).take_while(|step| *step as f64 <= percent).last()
        };
        Some(NodeWhy::PoolNearlyFull {
            class: class.class.name.clone(),
            data: step(pool.data_percent).unwrap_or_default(),
            metadata: step(pool.metadata_percent).unwrap_or_default(),
        })
    })
}

/// The patch that makes a Node say what was read; `None` where it says so already.
fn patch(node: &Node, reading: &Reading) -> Option<Value> {
    let mut wanted: BTreeMap<String, Option<String>> = BTreeMap::new();
    let shown = node.metadata.annotations.clone().unwrap_or_default();
    for key in shown.keys().filter(|key| key.starts_with(CAPACITY_PREFIX)) {
        wanted.insert(key.clone(), None);
    }
    for class in &reading.classes {
        let keys = [Some(capacity_key(&class.class.name)), class.class.default.then(|| capacity_key(""))];
        for key in keys.into_iter().flatten() {
            match &class.capacity {
                Ok(capacity) => drop(wanted.insert(key, Some(capacity.free.to_string()))),
                // A figure that cannot be had now stays as it was: the class itself is there.
                Err(error) if error.is_transient() => drop(wanted.remove(&key)),
                Err(_) => {}
            }
        }
    }
    let default =
        reading.classes.iter().find(|class| class.class.default).map(|class| class.class.name.clone());
    wanted.insert(DEFAULT_CLASS.to_owned(), default);
    let directories = reading.classes.iter().filter(|class| class.class.kind == ClassKind::Directory);
    let directories: Vec<&str> = directories.map(|class| class.class.name.as_str()).collect();
    wanted.insert(DIRECTORY_CLASSES.to_owned(), (!directories.is_empty()).then(|| directories.join(",")));
    let differs = |(key, value): &(&String, &Option<String>)| shown.get(*key) != value.as_ref();
    let changed: Map<String, Value> =
        wanted.iter().filter(differs).map(|(key, value)| (key.clone(), json!(value))).collect();
    let counted = counted(node, reading);
    let news = counted.as_deref() != annotation(&node.metadata, COUNTED);
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(TOPOLOGY_NODE));
    let labelled = label.is_some_and(|label| label == name(node));
    if changed.is_empty() && !news && labelled {
        return None;
    }
    let mut annotations = changed;
    if news {
        annotations.insert(COUNTED.to_owned(), json!(counted));
    }
    let mut metadata = json!({ "uid": node.metadata.uid, "annotations": annotations });
    if !labelled {
        metadata["labels"] = json!({ TOPOLOGY_NODE: name(node) });
    }
    Some(json!({ "metadata": metadata }))
}

/// The volumes to name as taken into account: those that are named and still there, and those that are new.
fn counted(node: &Node, reading: &Reading) -> Option<String> {
    let named: Vec<&str> = annotation(&node.metadata, COUNTED).unwrap_or_default().split(',').collect();
    let mut names: Vec<&str> = named.iter().copied().filter(|name| reading.volumes.contains(*name)).collect();
    let new = reading.volumes.iter().map(String::as_str).filter(|volume| !named.contains(volume));
    match &reading.known {
        Some(known) => names.extend(new.filter(|volume| !known.contains(*volume))),
        // Nobody knows which are new. Where they are few, naming all of them says most.
        None if reading.volumes.len() <= NAMED => names.extend(new),
        None => {}
    }
    let fresh = names.len().saturating_sub(NAMED);
    let text = names[fresh..].join(",");
    // An empty list still says that this node names what it counts.
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifeboat_engine::Next;
    use lifeboat_lvm::ThinPool;

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000).expect("a time")
    }

    fn class(name: &str, default: bool, capacity: Result<Capacity, Error>) -> ClassReading {
        let kind = if name == "dir" { ClassKind::Directory } else { ClassKind::Thick };
        let class = DeviceClass { name: name.to_owned(), default, kind, storage: String::new() };
        ClassReading { class, capacity }
    }

    fn free(free: u64) -> Result<Capacity, Error> {
        Ok(Capacity { size: 100, free, pool: None })
    }

    /// A Node that says what these classes have, and names no volume.
    fn world(classes: Vec<ClassReading>) -> NodeWorld {
        let mut node = Node::default();
        node.metadata.name = Some("n1".to_owned());
        let reading =
            Reading { change: 7, at: now(), classes, volumes: BTreeSet::new(), known: Some(BTreeSet::new()) };
        let mut world = NodeWorld { node: Arc::new(node), reading: Some(reading), change: 7 };
        if let Next::Do(effects) = decide(&world, now()).next {
            for effect in effects {
                publish(&mut world, &effect);
            }
        }
        world
    }

    fn publish(world: &mut NodeWorld, effect: &NodeEffect) {
        let NodeEffect::Publish(patch) = effect else { return };
        let meta = &mut Arc::make_mut(&mut world.node).metadata;
        for (into, field) in [
            (meta.annotations.get_or_insert_default(), "annotations"),
            (meta.labels.get_or_insert_default(), "labels"),
        ] {
            for (key, value) in patch["metadata"][field].as_object().into_iter().flatten() {
                match value.as_str() {
                    Some(value) => drop(into.insert(key.clone(), value.to_owned())),
                    None => drop(into.remove(key)),
                }
            }
        }
    }

    fn told(change: impl FnOnce(&mut NodeWorld), later: i64) -> String {
        let mut world = world(vec![class("a", true, free(50)), class("dir", false, free(9))]);
        change(&mut world);
        match decide(&world, now() + SignedDuration::from_secs(later)).next {
            Next::Do(effects) => match &effects[..] {
                [NodeEffect::Publish(patch)] => {
                    let written = patch["metadata"]["annotations"].as_object().expect("annotations");
                    written.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
                }
                other => format!("{other:?}"),
            },
            Next::Wait { why, .. } => format!("wait {}", lifeboat_engine::variant(&why)),
            Next::Settled => "settled".to_owned(),
        }
    }

    /// A reading with volumes, of which some were there at the one before.
    fn named(volumes: &[&str], known: Option<&[&str]>, shown: &str) -> String {
        fn all(names: &[&str]) -> BTreeSet<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        }
        told(
            |world| {
                reading(world).volumes = all(volumes);
                reading(world).known = known.map(all);
                let notes = Arc::make_mut(&mut world.node).metadata.annotations.get_or_insert_default();
                notes.insert(COUNTED.to_owned(), shown.to_owned());
            },
            0,
        )
    }

    fn reading(world: &mut NodeWorld) -> &mut Reading {
        world.reading.as_mut().expect("read")
    }

    #[test]
    fn what_a_node_says_of_its_disks() {
        let row = |rule: &str, told: String, expected: &str| assert_eq!(told, expected, "{rule}");
        row("nobody has asked the disks", told(|w| w.reading = None, 0), "[Measure]");
        row("something changed since", told(|w| w.change = 8, 0), "[Measure]");
        row("asked again after a while", told(|_| {}, 600), "[Measure]");
        row("the Node says it all", told(|_| {}, 599), "wait NextChange");
        row(
            "less room, for the default class too",
            told(|w| reading(w).classes[0].capacity = free(40), 0),
            "capacity.topolvm.io/00default=\"40\" capacity.topolvm.io/a=\"40\"",
        );
        row(
            "a figure that cannot be had now stays",
            told(|w| reading(w).classes[0].capacity = Err(Error::Transient("busy".into())), 0),
            "wait NextChange",
        );
        row(
            "a class that is gone goes",
            told(|w| reading(w).classes[1].capacity = Err(Error::NoClass("dir".into())), 0),
            "capacity.topolvm.io/dir=null",
        );
        let full = Capacity {
            pool: Some(ThinPool { data_percent: 83.0, ..ThinPool::default() }),
            ..free(50).expect("room")
        };
        row(
            "a pool that is nearly full is told of",
            told(|w| reading(w).classes[0].capacity = Ok(full), 0),
            "wait PoolNearlyFull",
        );
        let metadata = Capacity {
            pool: Some(ThinPool { metadata_percent: 80.0, ..ThinPool::default() }),
            ..free(50).expect("room")
        };
        row(
            "and one whose metadata is",
            told(|w| reading(w).classes[0].capacity = Ok(metadata), 0),
            "wait PoolNearlyFull",
        );
        row(
            "another class is the default one",
            told(
                |w| {
                    reading(w).classes[0].class.default = false;
                    reading(w).classes[1].class.default = true;
                },
                0,
            ),
            "capacity.topolvm.io/00default=\"9\" topolvm.io/default-device-class=\"dir\"",
        );
        row(
            "no class is of directories any more",
            told(|w| reading(w).classes[1].class.kind = ClassKind::Thick, 0),
            "topolvm.io/directory-classes=null",
        );
        let unlabelled = |w: &mut NodeWorld| Arc::make_mut(&mut w.node).metadata.labels = None;
        row("the Node lacks its label only", told(unlabelled, 0), "");
    }

    #[test]
    fn which_volumes_a_report_says_it_counts() {
        let row = |rule: &str, told: String, expected: &str| assert_eq!(told, expected, "{rule}");
        let counted = |names: &str| format!("topolvm.io/capacity-counted={names:?}");
        row("a new one", named(&["u1", "u2"], Some(&["u1"]), "u1"), &counted("u1,u2"));
        row(
            "one that is gone is named no more",
            named(&["u2"], Some(&["u1", "u2"]), "u1,u2"),
            &counted("u2"),
        );
        row("an old one need not be named", named(&["u1"], Some(&["u1"]), ""), "wait NextChange");
        row("the first report of a process names all", named(&["u1", "u2"], None, ""), &counted("u1,u2"));
        let many: Vec<String> = (0..=NAMED).map(|number| format!("u{number:03}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        row("unless they are too many", named(&many, None, ""), "wait NextChange");
        row("no more than so many are named", named(&many, Some(&[]), ""), &counted(&many[1..].join(",")));
    }
}
