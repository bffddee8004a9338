//! One record: a Kubernetes object with the bytes that stand for it in a store.

use std::collections::BTreeMap;

use bytes::Bytes;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::{VolumeGroupReplication, VolumeGroupReplicationContent};
use serde::Serialize;
use serde_json::Value;

use crate::codec::{pack, unpack};
use crate::{Digest, Error, Fault, Group, Listed, RecordId};

/// Fields of a group's status that only we know. Peers decode strictly where they can, and manifests carry epochs anyway.
const OURS: [&str; 3] = ["epoch", "primaryEpoch", "blockers"];

/// A Kubernetes object that a group consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The group itself.
    Group(Box<VolumeReplicationGroup>),
    /// A volume.
    Volume(Box<PersistentVolume>),
    /// A claim.
    Claim(Box<PersistentVolumeClaim>),
    /// The storage's side of a volume group.
    VolumeGroupContent(Box<VolumeGroupReplicationContent>),
    /// A volume group.
    VolumeGroup(Box<VolumeGroupReplication>),
}

/// A record, packed as Ramen packs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    id: RecordId,
    body: Body,
    packed: Bytes,
    listed: Listed,
}

/// All records of a group, by their keys.
pub type Records = BTreeMap<RecordId, Record>;

impl Record {
    /// The record of a group.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it cannot be packed.
    pub fn group(group: &VolumeReplicationGroup) -> Result<Self, Error> {
        let mut group = group.clone();
        trim(&mut group.metadata);
        let wrong =
            |error: serde_json::Error| Error::Invalid(format!("the group cannot be written: {error}"));
        let mut tree = serde_json::to_value(&group).map_err(wrong)?;
        if let Some(status) = tree.get_mut("status").and_then(Value::as_object_mut) {
            OURS.iter().for_each(|field| drop(status.remove(*field)));
        }
        let body = serde_json::from_value(tree.clone()).map_err(wrong)?;
        Self::make(RecordId::Group, &tree, Body::Group(body))
    }

    /// The record of a volume.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it has no name.
    pub fn volume(volume: &PersistentVolume) -> Result<Self, Error> {
        let mut volume = volume.clone();
        trim(&mut volume.metadata);
        let id = RecordId::Volume { name: text(volume.metadata.name.as_ref()) };
        Self::make(id, &volume.clone(), Body::Volume(Box::new(volume)))
    }

    /// The record of a claim.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it has no name or no namespace.
    pub fn claim(claim: &PersistentVolumeClaim) -> Result<Self, Error> {
        let mut claim = claim.clone();
        trim(&mut claim.metadata);
        let metadata = &claim.metadata;
        let id = RecordId::Claim {
            namespace: text(metadata.namespace.as_ref()),
            name: text(metadata.name.as_ref()),
        };
        Self::make(id, &claim.clone(), Body::Claim(Box::new(claim)))
    }

    /// The record of the storage's side of a volume group.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it has no name.
    pub fn volume_group_content(content: &VolumeGroupReplicationContent) -> Result<Self, Error> {
        let mut content = content.clone();
        trim(&mut content.metadata);
        let id = RecordId::VolumeGroupContent { name: text(content.metadata.name.as_ref()) };
        Self::make(id, &content.clone(), Body::VolumeGroupContent(Box::new(content)))
    }

    /// The record of a volume group.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it has no name or no namespace.
    pub fn volume_group(group: &VolumeGroupReplication) -> Result<Self, Error> {
        let mut group = group.clone();
        trim(&mut group.metadata);
        let metadata = &group.metadata;
        let id = RecordId::VolumeGroup {
            namespace: text(metadata.namespace.as_ref()),
            name: text(metadata.name.as_ref()),
        };
        Self::make(id, &group.clone(), Body::VolumeGroup(Box::new(group)))
    }

    fn make<T: Serialize>(id: RecordId, object: &T, body: Body) -> Result<Self, Error> {
        // A key that does not read back would lie where nobody finds it.
        if id.to_string().parse::<RecordId>().as_ref() != Ok(&id) {
            return Err(Error::Invalid(format!("{id:?} has no name that could be part of a key")));
        }
        let packed =
            pack(object).map_err(|fault| Error::Invalid(format!("{id} cannot be written: {fault}")))?;
        let listed = Listed { sha256: Digest::of(&packed), size: packed.len() as u64 };
        Ok(Self { id, body, packed, listed })
    }

    /// Reads what lies under a record's key. It must tell of the object that the key names.
    pub(crate) fn read(group: &Group, id: RecordId, packed: Bytes) -> Result<Self, Fault> {
        let body = match &id {
            RecordId::Group => Body::Group(unpack(&packed)?),
            RecordId::Volume { .. } => Body::Volume(unpack(&packed)?),
            RecordId::Claim { .. } => Body::Claim(unpack(&packed)?),
            RecordId::VolumeGroupContent { .. } => Body::VolumeGroupContent(unpack(&packed)?),
            RecordId::VolumeGroup { .. } => Body::VolumeGroup(unpack(&packed)?),
        };
        let metadata = body.metadata();
        let (namespace, name) = (text(metadata.namespace.as_ref()), text(metadata.name.as_ref()));
        let (wanted_namespace, wanted_name) = match &id {
            RecordId::Group => (group.namespace(), group.name()),
            RecordId::Volume { name } | RecordId::VolumeGroupContent { name } => ("", name.as_str()),
            RecordId::Claim { namespace, name } | RecordId::VolumeGroup { namespace, name } => {
                (namespace.as_str(), name.as_str())
            }
        };
        if (namespace.as_str(), name.as_str()) != (wanted_namespace, wanted_name) {
            return Err(Fault::Other(format!("{namespace:?}/{name:?}")));
        }
        let listed = Listed { sha256: Digest::of(&packed), size: packed.len() as u64 };
        Ok(Self { id, body, packed, listed })
    }

    /// Which record it is.
    #[must_use]
    pub fn id(&self) -> &RecordId {
        &self.id
    }

    /// The object.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Checksum and length of the packed record.
    #[must_use]
    pub fn listed(&self) -> Listed {
        self.listed
    }

    /// The packed record, as it lies in a store.
    #[must_use]
    pub fn packed(&self) -> &Bytes {
        &self.packed
    }
}

impl Body {
    fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Group(object) => &object.metadata,
            Self::Volume(object) => &object.metadata,
            Self::Claim(object) => &object.metadata,
            Self::VolumeGroupContent(object) => &object.metadata,
            Self::VolumeGroup(object) => &object.metadata,
        }
    }
}

/// The volumes among the records.
pub fn volumes(records: &Records) -> impl Iterator<Item = &PersistentVolume> {
    records.values().filter_map(|record| match record.body() {
        Body::Volume(volume) => Some(&**volume),
        _ => None,
    })
}

/// The claims among the records.
pub fn claims(records: &Records) -> impl Iterator<Item = &PersistentVolumeClaim> {
    records.values().filter_map(|record| match record.body() {
        Body::Claim(claim) => Some(&**claim),
        _ => None,
    })
}

/// The group among its records.
#[must_use]
pub fn group(records: &Records) -> Option<&VolumeReplicationGroup> {
    records.values().find_map(|record| match record.body() {
        Body::Group(group) => Some(&**group),
        _ => None,
    })
}

/// Takes off what changes without the object changing, or a store would be written to for nothing.
fn trim(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.resource_version = None;
}

fn text(field: Option<&String>) -> String {
    field.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shop() -> Group {
        Group::new("shop", "orders").unwrap()
    }

    fn read(id: &str, value: &Value) -> Result<Record, Fault> {
        Record::read(&shop(), id.parse().unwrap(), pack(value).unwrap())
    }

    #[test]
    fn what_go_writes_is_read() {
        // No apiVersion, nulls for times and lists, empty objects, fields of a later release.
        let volume = json!({
            "metadata": {"name": "pv-1", "creationTimestamp": null, "futureField": {"x": [1]}},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": null, "futureMode": "Odd",
                "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": null, "futureRef": {}},
                "claimRef": {"namespace": "shop", "name": "data", "uid": "u"},
            },
            "status": {},
        });
        let record = read("v1.PersistentVolume/pv-1", &volume).unwrap();
        let Body::Volume(volume) = record.body() else { panic!("{record:?}") };
        assert_eq!(volume.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle, "h");
        let claim = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": "data", "namespace": "shop"}, "spec": {"resources": {}}, "status": {}});
        read("v1.PersistentVolumeClaim/shop/data", &claim).unwrap();
        let group = json!({"metadata": {"name": "orders", "namespace": "shop"},
            "spec": {"pvcSelector": {}, "replicationState": "primary", "s3Profiles": null, "futureMode": {}},
            "status": {"protectedPVCs": null, "lastUpdateTime": null, "kubeObjectProtection": {}}});
        read("v1alpha1.VolumeReplicationGroup/a", &group).unwrap();
        let content = json!({"metadata": {"name": "c"}, "spec": {"provisioner": "p", "source": {}}});
        read("v1alpha1.VolumeGroupReplicationContent/c", &content).unwrap();
        let replication = json!({"metadata": {"name": "g", "namespace": "n"}, "spec": {"source": {}}});
        read("v1alpha1.VolumeGroupReplication/n/g", &replication).unwrap();
    }

    #[test]
    fn a_record_that_tells_of_another_object_is_refused() {
        let check = |id: &str, metadata: Value| {
            let fault = read(id, &json!({"metadata": metadata, "spec": {}})).unwrap_err();
            assert!(matches!(fault, Fault::Other(_)), "{id}: {fault:?}");
        };
        check("v1.PersistentVolume/pv-1", json!({"name": "pv-2"}));
        check("v1.PersistentVolume/pv-1", json!({}));
        check("v1.PersistentVolumeClaim/shop/data", json!({"name": "data", "namespace": "kube-system"}));
        check("v1.PersistentVolumeClaim/shop/data", json!({"name": "data"}));
        check("v1alpha1.VolumeReplicationGroup/a", json!({"name": "other", "namespace": "shop"}));
    }

    #[test]
    fn a_version_without_a_change_is_the_same_record() {
        let mut claim: PersistentVolumeClaim =
            serde_json::from_value(json!({"metadata": {"name": "data", "namespace": "shop"}})).unwrap();
        let first = Record::claim(&claim).unwrap();
        claim.metadata.resource_version = Some("77".into());
        claim.metadata.managed_fields = Some(vec![]);
        assert_eq!(Record::claim(&claim).unwrap(), first);
        claim.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        assert_ne!(Record::claim(&claim).unwrap().listed(), first.listed());
    }

    #[test]
    fn a_group_is_stored_without_what_only_we_know() {
        let group = json!({"metadata": {"name": "orders", "namespace": "shop"}, "spec": {},
            "status": {"state": "Primary", "epoch": 7, "primaryEpoch": 7, "blockers": [{"reason": "R"}]}});
        let record = Record::group(&serde_json::from_value(group).unwrap()).unwrap();
        let stored: Value = unpack(record.packed()).unwrap();
        assert_eq!(stored["status"], json!({"state": "Primary"}));
        assert_eq!(stored["kind"], "VolumeReplicationGroup");
    }

    #[test]
    fn an_object_without_a_name_makes_no_record() {
        assert!(matches!(Record::volume(&PersistentVolume::default()), Err(Error::Invalid(_))));
        let claim: PersistentVolumeClaim =
            serde_json::from_value(json!({"metadata": {"name": "data"}})).unwrap();
        assert!(matches!(Record::claim(&claim), Err(Error::Invalid(_))));
    }
}
