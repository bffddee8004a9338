//! What the controller needs of the object stores, as a trait: the real one speaks to real buckets, tests bring stores
//! that fail. Beside it the digests that say whether a record is still true.

use crate::settings::Profile;
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg::TYPE_CLUSTER_DATA_PROTECTED;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::ObjectKey;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Keys to a bucket; never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The access key.
    pub access_key: String,
    /// The secret key.
    pub secret_key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// A store and the keys to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Where it is.
    pub profile: Profile,
    /// The keys to it.
    pub credentials: Credentials,
}

/// Everything that is recorded about a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// The epoch at which it is written.
    pub epoch: i64,
    /// The cluster that writes it.
    pub cluster: String,
    /// The fleet that the group belongs to, where its hub has said so.
    pub fleet: Option<String>,
    /// The volumes of the group.
    pub volumes: Vec<PersistentVolume>,
    /// The claims of the group.
    pub claims: Vec<PersistentVolumeClaim>,
    /// The group itself.
    pub group: VolumeReplicationGroup,
    /// Names of all claims that belong to the group, also of those that cannot be recorded at this moment: what is recorded of them stays.
    pub members: BTreeSet<String>,
}

/// The newest complete record over all stores that could be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The newest complete record; `None` where no store that could be read has any.
    pub newest: Option<Record>,
    /// The highest epoch that any store has seen.
    pub epoch: i64,
    /// The mark of the group where it was deleted without the order to end protection and nobody has been primary since.
    pub orphan: Option<Orphan>,
    /// What each store said: how many groups' worth of records it has for this group, or why it could not be read.
    pub stores: BTreeMap<String, Result<Seen, String>>,
    /// Stores that have another fleet's records of a group of this name, with what to do about it: nothing was read there.
    pub foreign: BTreeMap<String, String>,
}

/// Says beside the records of a group that it was deleted without the order to end protection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orphan {
    /// The epoch at which it was primary.
    pub epoch: i64,
    /// The cluster that it was on.
    pub cluster: String,
    /// UID of the group that was deleted.
    pub uid: String,
    /// Volumes that were left there.
    pub volumes: BTreeSet<String>,
}

/// What a store that could be read has for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Nothing at all: no manifest, no record of the group, no volume.
    Empty,
    /// Something.
    Something,
}

/// Why a record was not written or erased.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// A higher epoch has written there.
    #[error(
        "the store has records of epoch {0}, which is later than ours: this cluster must not write any more"
    )]
    Superseded(i64),
    /// Our own epoch is not ours there: another cluster holds it, or the group was deleted in it.
    #[error(
        "epoch {epoch} of this group belongs to {by} there: nothing is written; a new epoch, by a failover or relocation to this cluster, makes it this cluster's"
    )]
    Taken {
        /// The epoch.
        epoch: i64,
        /// Who holds it, as far as that can be told.
        by: String,
    },
    /// Another fleet has records of a group of this name there.
    #[error("{why}")]
    OtherFleet {
        /// The other fleet.
        fleet: String,
        /// What to do about it.
        why: String,
    },
    /// The store answers, and does not have what it was given, or not whole.
    #[error("{0}")]
    Gone(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// The stores, as a controller uses them. Every call is idempotent.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Writes all that is recorded of a group to stores, side by side; what is there already is not written again, what no longer belongs
    /// to the group is removed. Where a higher epoch has written, everything is refused. It counts only when what was written was read back;
    /// with `verify`, when everything was.
    async fn keep(
        &self,
        stores: &[Store],
        group: &ObjectKey,
        record: &Record,
        verify: bool,
    ) -> BTreeMap<String, Result<(), LedgerError>>;

    /// Reads the newest complete record of a group, as one of this fleet, over all stores that can be reached.
    async fn read(&self, stores: &[Store], group: &ObjectKey, fleet: Option<&str>) -> Reading;

    /// Removes all records of a group from one store, as the cluster that is its primary at this epoch.
    async fn erase(
        &self,
        store: &Store,
        group: &ObjectKey,
        cluster: &str,
        fleet: Option<&str>,
        epoch: i64,
    ) -> Result<(), LedgerError>;

    /// Says in one store that the group was deleted without the order to end protection; its records stay.
    async fn orphan(
        &self,
        store: &Store,
        group: &ObjectKey,
        _fleet: Option<&str>,
        _orphan: &Orphan,
    ) -> Result<(), LedgerError> {
        Err(LedgerError::Failed(format!("{} cannot be told that {group} was orphaned", store.profile.name)))
    }

    /// The groups that a store has records of.
    async fn groups(&self, store: &Store) -> Result<Vec<VolumeReplicationGroup>, LedgerError>;
}

/// What must be in a store for the group to be recoverable: volumes, claims, the group's own words, the epoch.
pub fn substance(record: &Record) -> String {
    let group = &record.group;
    let said = json!({
        "epoch": record.epoch,
        "volumes": record.volumes.iter().map(volume_substance).collect::<Vec<_>>(),
        "claims": record.claims.iter().map(claim_substance).collect::<Vec<_>>(),
        "group": { "name": group.metadata.name, "namespace": group.metadata.namespace, "spec": group.spec },
    });
    digest(&said)
}

/// The same and how the group stands, without times that pass by themselves: a store that lags behind this is written again, but what it
/// has is enough to recover from.
pub fn shape(record: &Record) -> String {
    let mut group = record.group.clone();
    let status = group.status.get_or_insert_default();
    status.last_update_time = None;
    status.last_group_sync_time = None;
    status.last_group_sync_duration = None;
    status.last_group_sync_bytes = None;
    status.blockers.clear();
    let conditions = |all: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition]| {
        // That it is recorded goes without saying in a record; to say so it would have to be written twice.
        let said = all.iter().filter(|one| one.type_ != TYPE_CLUSTER_DATA_PROTECTED);
        said.map(|one| json!([one.type_, one.status, one.reason])).collect::<Vec<_>>()
    };
    let claims = status.protected_pvcs.iter().map(|claim| {
        let mut bare = claim.clone();
        bare.conditions.clear();
        bare.last_sync_time = None;
        bare.last_sync_duration = None;
        bare.last_sync_bytes = None;
        json!([bare, conditions(&claim.conditions)])
    });
    let claims: Vec<Value> = claims.collect();
    digest(&json!([
        substance(record),
        status.state,
        conditions(&status.conditions),
        claims,
        group.metadata.annotations,
        group.metadata.labels
    ]))
}

/// Annotations that say how far a record is, which therefore are no part of it.
const OURS: &[&str] = &[annotations::VR_ARCHIVED, annotations::VR_PROTECTED];

fn metadata(meta: &kube::api::ObjectMeta) -> Value {
    let kept = |key: &&String| !OURS.contains(&key.as_str());
    let notes: BTreeMap<&String, &String> =
        meta.annotations.iter().flatten().filter(|(key, _)| kept(key)).collect();
    json!([meta.namespace, meta.name, meta.labels, notes])
}

fn volume_substance(volume: &PersistentVolume) -> Value {
    let mut spec = volume.spec.clone().unwrap_or_default();
    if let Some(claim) = &mut spec.claim_ref {
        claim.resource_version = None;
    }
    json!([metadata(&volume.metadata), spec])
}

fn claim_substance(claim: &PersistentVolumeClaim) -> Value {
    json!([metadata(&claim.metadata), claim.spec])
}

/// SHA-256 of what a value looks like as JSON, in hex.
pub fn digest(value: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is remembered of one try at one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The substance that was tried.
    pub substance: String,
    /// Why it failed.
    pub why: LedgerError,
    /// Since when it fails.
    pub since: Timestamp,
    /// When it is tried again.
    pub retry_at: Timestamp,
    /// How often it failed.
    pub tries: u32,
}
