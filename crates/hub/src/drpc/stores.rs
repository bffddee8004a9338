//! What the hub asks of object stores: who was primary last, and at which epoch. Only where its own memory and the clusters do not tell. A store that
//! is out of reach is named and delays nothing else.

use crate::cluster::settings::{CONFIG_MAP, Config, Profile};
use crate::words::Words as _;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::Api;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{DRAction, VolumeReplicationGroup};
use lifeboat_engine::ObjectKey;
use lifeboat_records as records;
use lifeboat_records::{FleetId, Found, Group};
use lifeboat_store::{Objects, Opened, S3Store, Store, certificates};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Questions to one store in flight: a hub without memory asks about every application at once.
const CONNECTIONS: usize = 32;

/// What is known of the stores about one application.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Books {
    /// What they said when they were last asked in the life of this process.
    pub reading: Option<Reading>,
    /// When that was.
    pub read_at: Option<Timestamp>,
}

/// How soon stores that could not be read are asked again.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

impl Books {
    /// Whether the stores shall be asked: nobody has in the life of this process, or one could not be read and may be by now.
    pub fn is_wanting(&self, now: Timestamp) -> bool {
        match &self.reading {
            None => true,
            Some(reading) => !reading.is_whole() && self.again().is_some_and(|again| again <= now),
        }
    }

    /// When stores that could not be read are asked again.
    pub fn again(&self) -> Option<Timestamp> {
        self.read_at?.checked_add(AGAIN).ok()
    }
}

/// What the stores said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The highest epoch that any of them has seen; 0 for none.
    pub epoch: i64,
    /// The newest group recorded as primary.
    pub primary: Option<Recorded>,
    /// Stores that could not be read, and why.
    pub unread: BTreeMap<String, String>,
    /// Stores that have another fleet's records of a group of this name, with what to do about it: nothing was taken from there.
    pub foreign: BTreeMap<String, String>,
}

impl Reading {
    /// Whether every store has said what it has of the application.
    pub fn is_whole(&self) -> bool {
        self.unread.is_empty() && self.foreign.is_empty()
    }
}

/// A group that was recorded as primary.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The cluster it was written for, where that was noted.
    pub cluster: Option<String>,
    /// The action that its role followed from.
    pub action: Option<DRAction>,
}

/// Object stores, as the hub asks them.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// What the stores of these profiles hold about a group of this fleet.
    async fn read(&self, profiles: &[String], group: &ObjectKey, fleet: Option<&str>) -> Reading;
}

/// The stores of the hub's configuration.
pub struct Shelves {
    /// The hub.
    pub client: kube::Client,
    /// Namespace of the configuration and of the keys.
    pub namespace: String,
    opened: Opened<S3Store>,
}

impl Shelves {
    /// The stores of the configuration in a namespace.
    pub fn new(client: kube::Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned(), opened: Opened::default() }
    }

    async fn open(&self, config: &Result<Config, String>, name: &str) -> Result<Objects, String> {
        let config = config.as_ref().map_err(Clone::clone)?;
        let profile = config.profiles.get(name);
        let profile = profile.ok_or_else(|| format!("the configuration has no store profile {name}"))?;
        if let Some(folder) = profile.endpoint.strip_prefix("file://") {
            let place = Store::Local(PathBuf::from(folder).join(&profile.bucket));
            return Objects::open(&place).map_err(|error| error.to_string());
        }
        let space = Some(profile.secret.namespace.as_str()).filter(|space| !space.is_empty());
        let secrets: Api<Secret> =
            Api::namespaced(self.client.clone(), space.unwrap_or(self.namespace.as_str()));
        let missing = || format!("the secret {} of store profile {name} does not exist", profile.secret.name);
        let secret = secrets.get_opt(&profile.secret.name).await.ok().flatten().ok_or_else(missing)?;
        let open =
            |bucket: &S3Store| Objects::open(&Store::S3(bucket.clone())).map_err(|error| error.to_string());
        self.opened.get(name, &bucket(profile, &secret)?, open)
    }
}

fn bucket(profile: &Profile, secret: &Secret) -> Result<S3Store, String> {
    let key = |name: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(name)).map(|value| value.0.clone());
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| format!("the secret {} has no {name}", profile.secret.name))
    };
    let ca_bundle = certificates(profile.ca_certificates.as_deref())?;
    Ok(S3Store {
        endpoint: profile.endpoint.clone(),
        bucket: profile.bucket.clone(),
        region: profile.region.clone(),
        access_key: lifeboat_store::Secret::new(&key("AWS_ACCESS_KEY_ID")?),
        secret_key: lifeboat_store::Secret::new(&key("AWS_SECRET_ACCESS_KEY")?),
        ca_bundle,
        max_connections: CONNECTIONS,
        ..S3Store::default()
    })
}

#[async_trait]
impl Ledger for Shelves {
    async fn read(&self, profiles: &[String], key: &ObjectKey, fleet: Option<&str>) -> Reading {
        let Ok(group) = Group::new(&key.namespace, &key.name) else { return Reading::default() };
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let config = match maps.get_opt(CONFIG_MAP).await {
            Ok(map) => Config::of(map.as_ref()),
            Err(error) => Err(format!("the ConfigMap {CONFIG_MAP} cannot be read: {error}")),
        };
        let mut opened = Vec::new();
        for name in profiles {
            opened.push(match self.open(&config, name).await {
                Ok(objects) => records::Profile::new(name, objects),
                Err(why) => records::Profile::unavailable(name, why),
            });
        }
        let fleet = fleet.map(|fleet| FleetId(fleet.to_owned()));
        let stores = records::Stores::new(opened, records::Settings::default()).of_fleet(fleet);
        let search = stores.newest(&group).await;
        let (mut unread, mut foreign) = (BTreeMap::new(), BTreeMap::new());
        for seen in &search.stores {
            match &seen.answer {
                Ok(_) => {}
                Err(error @ records::Error::OtherFleet { .. }) => {
                    foreign.insert(seen.store.clone(), error.to_string());
                }
                Err(error) => drop(unread.insert(seen.store.clone(), error.to_string())),
            }
        }
        let primary = match &search.found {
            Found::Manifest { records, .. } | Found::Ramen { records, .. } => {
                records::group(records).map(recorded)
            }
            Found::Deleted { .. } | Found::Empty | Found::Unreadable => None,
        };
        let held = search.held.as_ref().map_or(0, |held| held.epoch.0);
        Reading { epoch: i64::try_from(held).unwrap_or(i64::MAX), unread, foreign, primary }
    }
}

fn recorded(group: &VolumeReplicationGroup) -> Recorded {
    let action = group.spec.action.clone().filter(|action| !action.as_str().is_empty());
    Recorded { cluster: group.note(annotations::DESTINATION_CLUSTER).map(str::to_owned), action }
}
