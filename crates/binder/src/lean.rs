//! A PersistentVolume as the binder keeps it: the fields that it reads, and all others as they came. The generated type has
//! room in every volume for each of two dozen kinds of storage, 3 kB before anything is in it, and a binder knows every volume
//! of its cluster.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolumeStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::{ClusterResourceScope, ObjectMeta};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A PersistentVolume of Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct PersistentVolume {
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What it is.
    pub spec: Option<PersistentVolumeSpec>,
    /// How it is.
    pub status: Option<PersistentVolumeStatus>,
}

impl Serialize for PersistentVolume {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("kind", "PersistentVolume")?;
        map.serialize_entry("metadata", &self.metadata)?;
        if let Some(spec) = &self.spec {
            map.serialize_entry("spec", spec)?;
        }
        if let Some(status) = &self.status {
            map.serialize_entry("status", status)?;
        }
        map.end()
    }
}

impl kube::Resource for PersistentVolume {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "PersistentVolume".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "persistentvolumes".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

macro_rules! spec {
    ($($(#[$doc:meta])* $name:literal $field:ident: $type:ty,)*) => {
        /// What a volume is.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct PersistentVolumeSpec {
            $($(#[$doc])* pub $field: Option<$type>,)*
            /// The other fields, its storage among them.
            pub others: Others,
        }

        impl Serialize for PersistentVolumeSpec {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(if let Some(value) = &self.$field {
                    map.serialize_entry($name, value)?;
                })*
                for (name, value) in &self.others.0 {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }

        impl<'de> Visitor<'de> for SpecVisitor {
            type Value = PersistentVolumeSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the spec of a PersistentVolume")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut spec = PersistentVolumeSpec::default();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    match &*name {
                        $($name => spec.$field = map.next_value()?,)*
                        name => spec.others.put(name, map.next_value()?),
                    }
                }
                spec.others.0.shrink_to_fit();
                spec.access_modes.iter_mut().for_each(Vec::shrink_to_fit);
                Ok(spec)
            }
        }
    };
}

spec! {
    /// Modes it can be mounted in.
    "accessModes" access_modes: Vec<String>,
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

struct SpecVisitor;

impl<'de> Deserialize<'de> for PersistentVolumeSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SpecVisitor)
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

/// Quantities by name. There is hardly ever more than one, and a map has room for eleven.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quantities(Vec<(String, Quantity)>);

impl Quantities {
    /// The quantity of a name.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, quantity)| quantity)
    }

    /// As everybody else has them.
    pub fn to_map(&self) -> BTreeMap<String, Quantity> {
        self.0.iter().cloned().collect()
    }
}

impl From<BTreeMap<String, Quantity>> for Quantities {
    fn from(map: BTreeMap<String, Quantity>) -> Self {
        Self(map.into_iter().collect())
    }
}

impl Serialize for Quantities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, quantity)| (name, quantity)))
    }
}

impl<'de> Deserialize<'de> for Quantities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

/// Fields that nobody here reads, in the order and form they came in.
#[derive(Clone, Default)]
pub struct Others(Vec<(Box<str>, Box<RawValue>)>);

impl Others {
    /// The JSON of a field; one that is null is not there.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.get())
    }

    /// Sets a field, or takes it away with null.
    pub fn put(&mut self, name: &str, value: Box<RawValue>) {
        self.0.retain(|(known, _)| **known != *name);
        if value.get() != "null" {
            self.0.push((name.into(), value));
        }
    }
}

impl fmt::Debug for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, value)| (name, value.get()))).finish()
    }
}

/// In any order: the server sorts, people do not.
impl PartialEq for Others {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |others: &Self| -> BTreeMap<Box<str>, String> {
            others.0.iter().map(|(name, value)| (name.clone(), value.get().to_owned())).collect()
        };
        sorted(self) == sorted(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::PersistentVolume as Full;
    use serde_json::{Value, json};

    fn full() -> Value {
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
            "status": {"phase": "Bound", "message": "m"},
        })
    }

    #[test]
    fn nothing_is_lost_on_the_way() {
        let text = full().to_string();
        let kept: PersistentVolume = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&kept).unwrap(), full());
        let generated: Full = serde_json::from_str(&text).unwrap();
        assert_eq!(
            serde_json::to_value(&generated).unwrap(),
            serde_json::to_value(&kept).unwrap(),
            "as the generated type has it"
        );
        assert_eq!(serde_json::from_value::<PersistentVolume>(full()).unwrap(), kept);
    }

    #[test]
    fn storage_is_found_by_its_field() {
        let spec = serde_json::from_value::<PersistentVolume>(full()).unwrap().spec.unwrap();
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
    fn it_is_a_third_of_the_generated_type() {
        assert!(size_of::<PersistentVolume>() * 3 < size_of::<Full>());
    }
}
