//! Which storage classes of two clusters belong together, and how their volumes reach the other side. Pure: facts about classes in,
//! peer classes out.

use lifeboat_api::annotations::parameters;
use lifeboat_api::labels;
use lifeboat_api::ramen::PeerClass;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is known about one class of a cluster, of whichever kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassFacts {
    /// Its name.
    pub name: String,
    /// The CSI driver behind it.
    pub driver: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub notes: BTreeMap<String, String>,
    /// Its parameters.
    pub parameters: BTreeMap<String, String>,
}

impl ClassFacts {
    /// Reads a class as the cluster shows it: storage, snapshot, replication and fence classes keep the driver in different places.
    pub fn of(class: &Value) -> Self {
        let texts = |value: Option<&Value>| -> BTreeMap<String, String> {
            let pairs = value.and_then(Value::as_object).into_iter().flatten();
            pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let text = |pointer: &str| class.pointer(pointer).and_then(Value::as_str);
        let driver = text("/provisioner").or_else(|| text("/driver")).or_else(|| text("/spec/provisioner"));
        Self {
            name: text("/metadata/name").unwrap_or_default().to_owned(),
            driver: driver.unwrap_or_default().to_owned(),
            labels: texts(class.pointer("/metadata/labels")),
            notes: texts(class.pointer("/metadata/annotations")),
            parameters: texts(class.pointer("/spec/parameters").or_else(|| class.get("parameters"))),
        }
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn storage(&self) -> Option<&str> {
        self.label(labels::STORAGE_ID)
    }
}

/// The classes of one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes {
    /// Identity of the cluster: the UID of its kube-system namespace.
    pub cluster_id: String,
    /// Storage classes.
    pub storage: Vec<ClassFacts>,
    /// Snapshot classes.
    pub snapshots: Vec<ClassFacts>,
    /// Group snapshot classes.
    pub group_snapshots: Vec<ClassFacts>,
    /// Replication classes.
    pub replication: Vec<ClassFacts>,
    /// Group replication classes.
    pub group_replication: Vec<ClassFacts>,
    /// Network fence classes.
    pub fences: Vec<ClassFacts>,
}

/// What two clusters share: synchronously, and asynchronously.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Peers {
    /// Classes on shared storage.
    pub sync: Vec<PeerClass>,
    /// Classes that are copied.
    pub copied: Vec<PeerClass>,
}

/// One storage class on both sides.
struct Pair<'a> {
    one: (&'a ClassFacts, &'a Classes),
    other: (&'a ClassFacts, &'a Classes),
    schedule: &'a str,
}

/// What two clusters share under a schedule, by name of the storage class.
pub fn peers(one: &Classes, other: &Classes, schedule: &str) -> Peers {
    let mut found = Peers::default();
    for class in &one.storage {
        let Some(twin) = other.storage.iter().find(|twin| twin.name == class.name) else { continue };
        let (Some(here), Some(there)) = (class.storage(), twin.storage()) else { continue };
        let mut peer = PeerClass {
            storage_class_name: Some(class.name.clone()),
            cluster_ids: vec![one.cluster_id.clone(), other.cluster_id.clone()],
            ..PeerClass::default()
        };
        if here == there {
            peer.storage_id = vec![here.to_owned()];
            found.sync.push(peer);
            continue;
        }
        peer.storage_id = vec![here.to_owned(), there.to_owned()];
        let pair = Pair { one: (class, one), other: (twin, other), schedule };
        found.copied.extend(pair.copied(peer));
    }
    let by_name = |peer: &PeerClass| peer.storage_class_name.clone();
    found.sync.sort_by_key(by_name);
    found.copied.sort_by_key(by_name);
    found
}

impl Pair<'_> {
    /// How volumes of a class reach the other side; nothing where they do not.
    fn copied(&self, mut peer: PeerClass) -> Option<PeerClass> {
        if self.schedule.is_empty() {
            return None;
        }
        let offloaded = |class: &ClassFacts| class.labels.contains_key(labels::OFFLOADED);
        if offloaded(self.one.0) != offloaded(self.other.0) {
            return None;
        }
        let groups = self.relation(labels::GROUP_REPLICATION_ID, |classes| &classes.group_replication);
        if offloaded(self.one.0) {
            let (id, global) = groups?;
            peer.group_replication_id = Some(id);
            (peer.offloaded, peer.grouping, peer.global) = (true, true, global);
            return Some(peer);
        }
        if let Some((id, _)) = self.relation(labels::REPLICATION_ID, |classes| &classes.replication) {
            peer.replication_id = Some(id);
            peer.grouping = groups.is_some();
            peer.group_replication_id = groups.map(|(id, _)| id);
            return Some(peer);
        }
        if self.images(|classes| &classes.group_snapshots) {
            peer.grouping = true;
            return Some(peer);
        }
        self.images(|classes| &classes.snapshots).then_some(peer)
    }

    /// The relation that a replication class of either side agrees on, and whether both call it global.
    fn relation(&self, id: &str, kind: impl Fn(&Classes) -> &Vec<ClassFacts>) -> Option<(String, bool)> {
        let fits = |class: &ClassFacts, (storage, _): (&ClassFacts, &Classes)| {
            let relation = class.label(id)?;
            let named = storage.label(id);
            let agrees = class.storage() == storage.storage()
                && class.driver == storage.driver
                && class.parameters.get(parameters::SCHEDULING_INTERVAL).map(String::as_str)
                    == Some(self.schedule)
                && named.is_none_or(|named| named == relation);
            agrees.then(|| (relation.to_owned(), class.label(labels::GLOBAL) == Some("true")))
        };
        let here = kind(self.one.1).iter().filter_map(|class| fits(class, self.one));
        for (relation, global) in here {
            let there = kind(self.other.1).iter().filter_map(|class| fits(class, self.other));
            if let Some((_, too)) = there.into_iter().find(|(twin, _)| *twin == relation) {
                return Some((relation, global && too));
            }
        }
        None
    }

    /// Whether images can be taken of the class on both sides.
    fn images(&self, kind: impl Fn(&Classes) -> &Vec<ClassFacts>) -> bool {
        let fits = |(storage, classes): (&ClassFacts, &Classes)| {
            kind(classes)
                .iter()
                .any(|class| class.storage() == storage.storage() && class.driver == storage.driver)
        };
        fits(self.one) && fits(self.other)
    }
}
