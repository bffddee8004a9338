//! How objects are kept small: fields that are read, each with its name on the wire, and all others as they came.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The name of a field, borrowed where the text has it as it is.
#[derive(Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// A part of an object: the fields that are read, and the others.
macro_rules! fields {
    ($(#[$doc:meta])* $part:ident { $($(#[$field_doc:meta])* $name:literal $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $part {
            $($(#[$field_doc])* pub $field: Option<$type>,)*
            /// The other fields.
            pub others: Others,
        }

        impl Serialize for $part {
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

        impl<'de> Deserialize<'de> for $part {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $part;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a ", stringify!($part)))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$part, A::Error> {
                        let mut part = $part::default();
                        while let Some(name) = map.next_key::<Name<'de>>()? {
                            match &*name.0 {
                                $($name => part.$field = map.next_value()?,)*
                                name => part.others.put(name, map.next_value()?),
                            }
                        }
                        part.others.0.shrink_to_fit();
                        Ok(part)
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }
    };
}

/// An object of Kubernetes' core group.
macro_rules! object {
    ($(#[$doc:meta])* $object:ident, $plural:literal, $scope:ty, $spec:ty, $status:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        pub struct $object {
            /// Metadata.
            #[serde(default)]
            pub metadata: ObjectMeta,
            /// What it is to be.
            pub spec: Option<$spec>,
            /// How it is.
            pub status: Option<$status>,
        }

        impl Serialize for $object {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("apiVersion", "v1")?;
                map.serialize_entry("kind", stringify!($object))?;
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

        impl kube::Resource for $object {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($object).into()
            }
            fn group((): &()) -> Cow<'_, str> {
                "".into()
            }
            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(super) use {fields, object};

/// Quantities by name. There is hardly ever more than one, and a map has room for eleven.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quantities(Vec<(String, Quantity)>);

impl Quantities {
    /// The quantity of a name.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, quantity)| quantity)
    }

    /// Sets the quantity of a name.
    pub fn put(&mut self, name: &str, quantity: Quantity) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = quantity,
            None => self.0.push((name.to_owned(), quantity)),
        }
    }
}

impl Serialize for Quantities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, quantity)| (name, quantity)))
    }
}

impl<'de> Deserialize<'de> for Quantities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::deserialize(deserializer)?;
        Ok(Self(map.into_iter().collect()))
    }
}

/// Fields that nobody here reads, in the order and form they came in.
#[derive(Clone, Default)]
pub struct Others(pub(super) Vec<(Box<str>, Box<RawValue>)>);

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
