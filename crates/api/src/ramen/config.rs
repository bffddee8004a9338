//! The operator's configuration, as Ramen keeps it in a ConfigMap on the hub and on each managed cluster: where it is, and the stores it lists.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Name of the hub's ConfigMap.
pub const HUB_CONFIG_MAP: &str = "ramen-hub-operator-config";
/// Name of the ConfigMap of a managed cluster.
pub const CLUSTER_CONFIG_MAP: &str = "ramen-dr-cluster-operator-config";
/// The key of both.
pub const CONFIG_KEY: &str = "ramen_manager_config.yaml";

/// Where a store is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StoreProfile {
    /// The name that groups and clusters use.
    #[serde(rename = "s3ProfileName")]
    pub name: String,
    /// The bucket.
    #[serde(rename = "s3Bucket")]
    pub bucket: String,
    /// The end point.
    #[serde(rename = "s3CompatibleEndpoint")]
    pub endpoint: String,
    /// The region.
    #[serde(rename = "s3Region")]
    pub region: String,
    /// The Secret with the keys.
    #[serde(rename = "s3SecretRef")]
    pub secret: StoreSecret,
    /// Certificates to trust, as base64 of PEM.
    #[serde(rename = "caCertificates")]
    pub ca_certificates: Option<String>,
}

/// Names a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StoreSecret {
    /// Its name.
    pub name: String,
    /// Its namespace; the operator's where absent.
    pub namespace: String,
}

/// The stores that a configuration lists. One entry that cannot be read is one bad entry, and no reason to forget the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreProfiles {
    /// Stores by name.
    pub good: BTreeMap<String, StoreProfile>,
    /// Entries that cannot be used, with the reason; one without a name by its place.
    pub bad: BTreeMap<String, String>,
}

impl StoreProfiles {
    /// Reads `s3StoreProfiles` of a whole configuration.
    #[must_use]
    pub fn of(config: &Value) -> Self {
        let mut read = Self::default();
        for (place, entry) in store_entries(config).enumerate() {
            let named = entry.get("s3ProfileName").and_then(Value::as_str).filter(|name| !name.is_empty());
            let name = named.map_or_else(|| format!("entry {}", place + 1), str::to_owned);
            match StoreProfile::deserialize(entry) {
                Ok(profile) if profile.bucket.is_empty() => {
                    read.bad.insert(name, "it names no bucket".to_owned());
                }
                Ok(profile) if profile.name.is_empty() => {
                    read.bad.insert(name, "it has no s3ProfileName".to_owned());
                }
                Ok(profile) => drop(read.good.insert(name, profile)),
                Err(error) => drop(read.bad.insert(name, error.to_string())),
            }
        }
        read
    }
}

/// What becomes of a VolumeReplicationGroup that is deleted without the annotation
/// [`END_PROTECTION`](crate::annotations::END_PROTECTION): key `unmarkedDeletion`. Ours, not known to peers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnmarkedDeletion {
    /// It is orphaned: its volumes and records are kept.
    #[default]
    Orphan,
    /// Its protection ends, as with the annotation: for clusters whose hub does not know it.
    End,
}

impl UnmarkedDeletion {
    /// Reads `unmarkedDeletion` of a whole configuration. What is not `End` keeps data.
    #[must_use]
    pub fn of(config: &Value) -> Self {
        match config.get("unmarkedDeletion").and_then(Value::as_str) {
            Some("End") => Self::End,
            _ => Self::Orphan,
        }
    }
}

/// The entries of `s3StoreProfiles` as they stand.
pub fn store_entries(config: &Value) -> impl Iterator<Item = &Value> {
    config.get("s3StoreProfiles").and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bad_entry_hides_no_other() {
        let check = |entry: Value, why: &str| {
            let good = json!({ "s3ProfileName": "west", "s3Bucket": "b" });
            let read = StoreProfiles::of(&json!({ "s3StoreProfiles": [entry, good] }));
            assert_eq!(read.good.keys().collect::<Vec<_>>(), ["west"]);
            let said: Vec<String> = read.bad.iter().map(|(name, why)| format!("{name}: {why}")).collect();
            assert!(said.iter().any(|said| said.starts_with(why)), "{said:?}");
        };
        check(json!({ "s3ProfileName": "east" }), "east: it names no bucket");
        check(json!({ "s3Bucket": "a" }), "entry 1: it has no s3ProfileName");
        check(json!({ "s3ProfileName": "", "s3Bucket": "a" }), "entry 1: it has no s3ProfileName");
        check(json!({ "s3ProfileName": "east", "s3Bucket": ["a"] }), "east: invalid type");
        check(json!("east"), "entry 1: ");
        assert_eq!(StoreProfiles::of(&json!({})), StoreProfiles::default());
    }

    #[test]
    fn only_the_word_end_ends_protection() {
        for (config, expected) in [
            (json!({}), UnmarkedDeletion::Orphan),
            (json!({ "unmarkedDeletion": "Orphan" }), UnmarkedDeletion::Orphan),
            (json!({ "unmarkedDeletion": "end" }), UnmarkedDeletion::Orphan),
            (json!({ "unmarkedDeletion": "End" }), UnmarkedDeletion::End),
        ] {
            assert_eq!(UnmarkedDeletion::of(&config), expected, "{config}");
        }
    }
}
