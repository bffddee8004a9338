//! Claims and volumes as the binder keeps them: the fields that it reads, and all others as they came. The generated type has
//! room in every volume for each of two dozen kinds of storage, 3 kB before anything is in it, and a map with room for eleven
//! sizes in every claim; a binder knows all claims and volumes of its cluster.

mod fields;

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::api::core::v1::{self as generated, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};

use fields::{Name, fields, object};
pub use fields::{Others, Quantities};

object! {
    /// A PersistentVolume of Kubernetes.
    PersistentVolume, "persistentvolumes", ClusterResourceScope, PersistentVolumeSpec, PersistentVolumeStatus
}

fields! {
    /// What a volume is.
    PersistentVolumeSpec {
        /// Modes it can be mounted in.
        "accessModes" access_modes: Box<[String]>,
        /// How large it is.
        "capacity" capacity: Quantities,
        /// Whose it is.
        "claimRef" claim_ref: ObjectReference,
        /// What happens when its claim is gone.
        "persistentVolumeReclaimPolicy" persistent_volume_reclaim_policy: String,
        /// Its class.
        "storageClassName" storage_class_name: String,
        /// The class of its attributes.
        "volumeAttributesClassName" volume_attributes_class_name: String,
        /// Filesystem or Block.
        "volumeMode" volume_mode: String,
    }
}

fields! {
    /// How a volume is.
    PersistentVolumeStatus {
        /// What is the matter, where something is.
        "message" message: String,
        /// Available, Bound, Released or Failed.
        "phase" phase: String,
    }
}

object! {
    /// A PersistentVolumeClaim of Kubernetes.
    PersistentVolumeClaim, "persistentvolumeclaims", NamespaceResourceScope, PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus
}

fields! {
    /// What a claim wants.
    PersistentVolumeClaimSpec {
        /// Modes it is to be mounted in.
        "accessModes" access_modes: Box<[String]>,
        /// How large it is to be.
        "resources" resources: Resources,
        /// Labels of the volumes that it takes.
        "selector" selector: Box<LabelSelector>,
        /// Its class.
        "storageClassName" storage_class_name: String,
        /// The class of its attributes.
        "volumeAttributesClassName" volume_attributes_class_name: String,
        /// Filesystem or Block.
        "volumeMode" volume_mode: String,
        /// Its volume.
        "volumeName" volume_name: String,
    }
}

impl From<generated::PersistentVolumeClaimSpec> for PersistentVolumeClaimSpec {
    fn from(spec: generated::PersistentVolumeClaimSpec) -> Self {
        let json = serde_json::to_value(spec).expect("invariant: a spec is JSON");
        serde_json::from_value(json).expect("invariant: every spec can be kept")
    }
}

fields! {
    /// How much a claim wants.
    Resources {
        /// At least.
        "requests" requests: Quantities,
    }
}

fields! {
    /// What a claim has.
    PersistentVolumeClaimStatus {
        /// Modes its volume can be mounted in.
        "accessModes" access_modes: Box<[String]>,
        /// How large its volume is.
        "capacity" capacity: Quantities,
        /// The class of its volume's attributes.
        "currentVolumeAttributesClassName" current_volume_attributes_class_name: String,
        /// Pending, Bound or Lost.
        "phase" phase: String,
    }
}

impl PersistentVolumeSpec {
    /// Whether the volume has this kind of storage, by the name of its field.
    pub fn has(&self, source: &str) -> bool {
        self.others.get(source).is_some()
    }

    /// The CSI driver of the storage.
    pub fn driver(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Csi {
            driver: String,
        }
        let csi: Csi = serde_json::from_str(self.others.get("csi")?).ok()?;
        Some(csi.driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn volume() -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "v", "labels": {"a": "b"}, "resourceVersion": "7"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Block",
                "storageClassName": "fast", "volumeAttributesClassName": "gold",
                "persistentVolumeReclaimPolicy": "Delete", "mountOptions": ["ro"],
                "claimRef": {"namespace": "ns", "name": "c", "uid": "u"},
                "csi": {"driver": "d.example", "volumeHandle": "h", "volumeAttributes": {"x": "\u{e9}\n"}},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["n"]}]}]}},
            },
            "status": {"phase": "Bound", "message": "m", "reason": "r", "lastPhaseTransitionTime": "2030-01-01T00:00:00Z"},
        })
    }

    fn claim() -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "ns", "annotations": {"a": "b"}, "resourceVersion": "7"},
            "spec": {
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "volumeMode": "Filesystem", "volumeName": "v",
                "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
                "selector": {"matchLabels": {"k": "v"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]},
                "storageClassName": "", "volumeAttributesClassName": "gold",
                "dataSource": {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"},
                "dataSourceRef": {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"},
            },
            "status": {
                "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                "currentVolumeAttributesClassName": "silver", "allocatedResources": {"storage": "2Gi"},
                "allocatedResourceStatuses": {"storage": "NodeResizePending"},
                "conditions": [{"type": "Resizing", "status": "True"}],
                "modifyVolumeStatus": {"status": "Pending", "targetVolumeAttributesClassName": "gold"},
            },
        })
    }

    fn keeps<Kept, Full>(json: &Value)
    where
        Kept: Serialize + for<'de> Deserialize<'de> + PartialEq + fmt::Debug,
        Full: Serialize + for<'de> Deserialize<'de>,
    {
        let text = json.to_string();
        let kept: Kept = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&kept).unwrap(), *json);
        let generated: Full = serde_json::from_str(&text).unwrap();
        let generated = serde_json::to_value(generated).unwrap();
        assert_eq!(generated, *json, "the generated type knows all of it");
        assert_eq!(serde_json::from_value::<Kept>(generated).unwrap(), kept);
    }

    #[test]
    fn nothing_is_lost_on_the_way() {
        keeps::<PersistentVolume, generated::PersistentVolume>(&volume());
        keeps::<PersistentVolumeClaim, generated::PersistentVolumeClaim>(&claim());
    }

    #[test]
    fn a_template_is_kept_whole() {
        let full: generated::PersistentVolumeClaim = serde_json::from_value(claim()).unwrap();
        let kept = PersistentVolumeClaimSpec::from(full.spec.unwrap());
        assert_eq!(serde_json::to_value(kept).unwrap(), claim()["spec"]);
    }

    #[test]
    fn storage_is_found_by_its_field() {
        let spec = serde_json::from_value::<PersistentVolume>(volume()).unwrap().spec.unwrap();
        assert_eq!(
            (spec.driver().as_deref(), spec.has("csi"), spec.has("nfs")),
            (Some("d.example"), true, false)
        );
        let mut other = spec.clone();
        other.others.put("csi", serde_json::from_str("null").unwrap());
        assert!(!other.has("csi") && other != spec);
        other.others.put("csi", serde_json::from_str(spec.others.get("csi").unwrap()).unwrap());
        assert_eq!(other, spec, "in any order");
    }

    #[test]
    fn less_room_is_taken_than_by_the_generated_types() {
        assert!(size_of::<PersistentVolume>() * 3 < size_of::<generated::PersistentVolume>());
        assert!(size_of::<PersistentVolumeClaim>() * 6 < size_of::<generated::PersistentVolumeClaim>() * 5);
    }
}
