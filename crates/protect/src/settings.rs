//! The operator's configuration, as Ramen keeps it in a ConfigMap. Read anew with every decision, so that an edit counts at once. A profile that
//! cannot be read is one bad profile, and no reason to forget the others.

use k8s_openapi::api::core::v1::ConfigMap;
use lifeboat_api::ramen::config::StoreProfiles;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;

pub use lifeboat_api::ramen::config::{
    CLUSTER_CONFIG_MAP as CONFIG_MAP, CONFIG_KEY, StoreProfile as Profile, UnmarkedDeletion,
};

/// How destinations publish what they received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DestinationCopy {
    /// Into a snapshot, from which the claim is made at failover.
    #[default]
    Snapshot,
    /// Into the claim itself.
    Direct,
}

/// What the operator is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Stores by name.
    pub profiles: BTreeMap<String, Profile>,
    /// Entries of the list of stores that cannot be read, with the reason.
    pub bad_profiles: BTreeMap<String, String>,
    /// Whether movers are not used on this cluster.
    pub volsync_disabled: bool,
    /// How destinations publish.
    pub destination_copy: DestinationCopy,
    /// The CSI driver whose snapshots are mounted read-only by many.
    pub read_only_many_driver: String,
    /// Whether claims that are deselected or deleted keep their protection.
    pub keep_deselected: bool,
    /// What becomes of a group that is deleted without the order to end protection.
    pub unmarked_deletion: UnmarkedDeletion,
    /// Why the ConfigMap could not be read at all.
    pub problem: Option<String>,
    /// Whether it never could since this process began, so that nobody knows what is wanted.
    pub unread: bool,
}

const CEPHFS: &str = "openshift-storage.cephfs.csi.ceph.com";

impl Config {
    /// Reads the ConfigMap; without one, or with one that cannot be read, there are no stores, and nothing is given up.
    pub fn of(map: Option<&ConfigMap>) -> Self {
        let mut config = Self::read_from(map);
        if config.problem.is_some() {
            (config.unread, config.keep_deselected) = (true, true);
        }
        config
    }

    fn read_from(map: Option<&ConfigMap>) -> Self {
        let mut config = Self { read_only_many_driver: CEPHFS.to_owned(), ..Self::default() };
        let Some(map) = map else {
            config.problem = Some(format!("the ConfigMap {CONFIG_MAP} does not exist: no store is known"));
            return config;
        };
        let text = map.data.as_ref().and_then(|data| data.get(CONFIG_KEY));
        let Some(text) = text else {
            config.problem = Some(format!("the ConfigMap {CONFIG_MAP} has no key {CONFIG_KEY}"));
            return config;
        };
        match serde_saphyr::from_str::<Value>(text) {
            Ok(value) => config.read(&value),
            Err(error) => {
                config.problem = Some(format!("the ConfigMap {CONFIG_MAP} cannot be read: {error}"));
            }
        }
        config
    }

    fn read(&mut self, value: &Value) {
        let stores = StoreProfiles::of(value);
        (self.profiles, self.bad_profiles) = (stores.good, stores.bad);
        let volsync = value.get("volSync");
        let text = |key: &str| volsync.and_then(|volsync| volsync.get(key)).and_then(Value::as_str);
        self.volsync_disabled =
            volsync.and_then(|volsync| volsync.get("disabled")).and_then(Value::as_bool).unwrap_or(false);
        if let Some(driver) = text("cephFSCSIDriverName").filter(|driver| !driver.is_empty()) {
            self.read_only_many_driver = driver.to_owned();
        }
        if text("destinationCopyMethod") == Some("Direct") {
            self.destination_copy = DestinationCopy::Direct;
        }
        self.unmarked_deletion = UnmarkedDeletion::of(value);
        self.keep_deselected = value.get("volumeUnprotectionEnabled").and_then(Value::as_bool) == Some(false);
    }

    /// Why a store that a group names cannot be used, where it cannot.
    pub fn missing(&self, name: &str) -> Option<String> {
        if self.profiles.contains_key(name) {
            return None;
        }
        Some(match (self.bad_profiles.get(name), &self.problem) {
            (Some(why), _) => format!("the store profile {name} cannot be used: {why}"),
            (None, Some(problem)) => problem.clone(),
            (None, None) => format!("the configuration has no store profile {name}"),
        })
    }
}

/// The last configuration that could be read: a typing error must not turn into other wishes.
#[derive(Debug, Default)]
pub struct LastGood {
    config: Mutex<Option<Config>>,
}

impl LastGood {
    /// Reads the ConfigMap; where that fails, what it said before still counts, with the problem told.
    pub fn read(&self, map: Option<&ConfigMap>) -> Config {
        let read = Config::of(map);
        let mut last = self.config.lock();
        match (&read.problem, &*last) {
            (None, _) => {
                *last = Some(read.clone());
                read
            }
            (Some(problem), Some(good)) => Config { problem: Some(problem.clone()), ..good.clone() },
            (Some(_), None) => read,
        }
    }
}
