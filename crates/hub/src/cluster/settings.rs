//! The hub's configuration, as Ramen keeps it in a ConfigMap, and what a managed cluster is told of it. Read anew with every decision, so that an
//! edit counts at once. A profile that cannot be read is one bad profile, and no reason to forget the others.

use k8s_openapi::api::core::v1::ConfigMap;
use lifeboat_api::ramen::config::{StoreProfiles, store_entries};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub use lifeboat_api::ramen::config::{
    CLUSTER_CONFIG_MAP, CONFIG_KEY, HUB_CONFIG_MAP as CONFIG_MAP, StoreProfile as Profile,
};

/// Namespace of the operator on managed clusters, where nothing else is said.
pub const CLUSTER_NAMESPACE: &str = "ramen-system";

/// What the hub is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Stores by name.
    pub profiles: BTreeMap<String, Profile>,
    /// Entries of the list of stores that cannot be read, with the reason.
    pub bad_profiles: BTreeMap<String, String>,
    /// Namespace of applications that no placement deployed, where one is configured.
    pub ops_namespace: Option<String>,
    /// Namespace of the operator on managed clusters.
    pub cluster_namespace: String,
    /// Whether managed clusters get their configuration from here.
    pub carries_config: bool,
    /// Whether managed clusters get the stores' keys from here.
    pub carries_secrets: bool,
    whole: Value,
}

impl Config {
    /// Reads the ConfigMap; why it cannot be used, where it cannot.
    ///
    /// # Errors
    /// A sentence for status: there is no ConfigMap, it lacks its key, or the text is not YAML.
    pub fn of(map: Option<&ConfigMap>) -> Result<Self, String> {
        let Some(map) = map else {
            return Err(format!("the ConfigMap {CONFIG_MAP} does not exist: create it"));
        };
        let text = map.data.as_ref().and_then(|data| data.get(CONFIG_KEY));
        let Some(text) = text else {
            return Err(format!("the ConfigMap {CONFIG_MAP} has no key {CONFIG_KEY}"));
        };
        let whole = serde_saphyr::from_str::<Value>(text)
            .map_err(|error| format!("the ConfigMap {CONFIG_MAP} cannot be read: {error}"))?;
        Ok(Self::read(whole))
    }

    fn read(whole: Value) -> Self {
        let stores = StoreProfiles::of(&whole);
        let operator = whole.get("drClusterOperator");
        let enabled = |key: &str| {
            operator.and_then(|operator| operator.get(key)).and_then(Value::as_bool).unwrap_or(true)
        };
        let text = |value: Option<&Value>| {
            value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            profiles: stores.good,
            bad_profiles: stores.bad,
            ops_namespace: text(whole.get("ramenOpsNamespace")),
            cluster_namespace: text(operator.and_then(|operator| operator.get("namespaceName")))
                .unwrap_or_else(|| CLUSTER_NAMESPACE.to_owned()),
            carries_config: enabled("deploymentAutomationEnabled"),
            carries_secrets: enabled("s3SecretDistributionEnabled"),
            whole,
        }
    }

    /// A store by name.
    ///
    /// # Errors
    /// Why it cannot be used, as a sentence.
    pub fn profile(&self, name: &str) -> Result<&Profile, String> {
        self.profiles.get(name).ok_or_else(|| match self.bad_profiles.get(name) {
            Some(why) => format!("the store profile {name} cannot be used: {why}"),
            None => {
                format!("the ConfigMap {CONFIG_MAP} has no store profile {name}: add it to s3StoreProfiles")
            }
        })
    }

    /// What a managed cluster is told: the same, with only those stores that it needs, whose keys it finds in its own operator's namespace.
    pub fn for_cluster(&self, stores: &BTreeSet<String>) -> String {
        let mut told = self.whole.clone();
        let kept: Vec<Value> = store_entries(&self.whole)
            .filter(|entry| {
                let name = entry.get("s3ProfileName").and_then(Value::as_str);
                name.is_some_and(|name| stores.contains(name) && self.profiles.contains_key(name))
            })
            .cloned()
            .map(|mut entry| {
                entry["s3SecretRef"]["namespace"] = json!(self.cluster_namespace);
                entry
            })
            .collect();
        if let Some(fields) = told.as_object_mut() {
            fields.insert("s3StoreProfiles".to_owned(), Value::Array(kept));
            fields.insert("ramenControllerType".to_owned(), json!("dr-cluster"));
            if let Some(election) = fields.get_mut("leaderElection").and_then(Value::as_object_mut) {
                election.insert("resourceName".to_owned(), json!("dr-cluster.ramendr.openshift.io"));
            }
        }
        // JSON is YAML, and the same value is always the same text.
        told.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        let data = Some([(CONFIG_KEY.to_owned(), text.to_owned())].into());
        Config::of(Some(&ConfigMap { data, ..ConfigMap::default() }))
    }

    const TWO: &str = "
ramenControllerType: dr-hub
leaderElection: { leaderElect: true, resourceName: hub.ramendr.openshift.io }
s3StoreProfiles:
- { s3ProfileName: east, s3Bucket: a, s3SecretRef: { name: keys-east, namespace: hub-system } }
- { s3ProfileName: west, s3Bucket: b, s3SecretRef: { name: keys-west } }
- { s3ProfileName: bad }
";

    #[test]
    fn a_bad_profile_hides_no_other() {
        let config = config(TWO).unwrap();
        assert_eq!(config.profiles.keys().collect::<Vec<_>>(), ["east", "west"]);
        assert!(config.profile("bad").unwrap_err().contains("names no bucket"));
        assert!(config.profile("north").unwrap_err().contains("no store profile north"));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(Config::of(None).unwrap_err().contains("does not exist"));
        assert!(Config::of(Some(&ConfigMap::default())).unwrap_err().contains("has no key"));
        assert!(config("[").unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn a_cluster_is_told_of_its_own_stores_only() {
        let config = config(TWO).unwrap();
        let told: Value = serde_json::from_str(&config.for_cluster(&["west".to_owned()].into())).unwrap();
        assert_eq!(told["ramenControllerType"], "dr-cluster");
        assert_eq!(told["leaderElection"]["resourceName"], "dr-cluster.ramendr.openshift.io");
        let stores = told["s3StoreProfiles"].as_array().unwrap();
        assert_eq!(stores.len(), 1);
        assert_eq!(stores[0]["s3SecretRef"], json!({ "name": "keys-west", "namespace": "ramen-system" }));
    }

    #[test]
    fn carrying_can_be_switched_off() {
        let on = config("{}").unwrap();
        assert_eq!((on.carries_config, on.carries_secrets), (true, true));
        let off = config(
            "drClusterOperator: { deploymentAutomationEnabled: false, s3SecretDistributionEnabled: false, namespaceName: dr }",
        )
        .unwrap();
        assert_eq!((off.carries_config, off.carries_secrets), (false, false));
        assert_eq!(off.cluster_namespace, "dr");
    }
}
