//! SnapshotBackupStorage: where the backups of snapshots go.

use crate::wire::{is_false, or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which store to use, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "topolvm.io",
    version = "v1",
    kind = "SnapshotBackupStorage",
    plural = "snapshotbackupstorages",
    namespaced,
    doc = "A store that snapshots are backed up to.",
    status = "SnapshotBackupStorageStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.storage.provider"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct SnapshotBackupStorageSpec {
    /// The backup engine.
    #[schemars(extend("default" = "restic"))]
    pub engine: BackupEngine,

    /// The store.
    pub storage: StorageBackend,

    /// Extra flags for every run of the engine.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub global_flags: Vec<String>,

    /// Extra flags for backups.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub backup_flags: Vec<String>,

    /// Extra flags for restores.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub restore_flags: Vec<String>,

    /// Try the store as soon as this object exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub validate_on_create: Option<bool>,
}

wire_enum! {
    /// A backup engine.
    closed BackupEngine {
        /// Repositories in restic's format.
        Restic = "restic",
        /// Repositories in kopia's format.
        Kopia = "kopia",
    }
}

/// A store for backups; the given sub-object decides, the provider names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct StorageBackend {
    /// Kind of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<StorageProvider>,

    /// An S3 bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Storage>,

    /// A Google Cloud Storage bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<GcsStorage>,

    /// An Azure blob container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureStorage>,

    /// A directory that every node can reach; not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalStorage>,
}

wire_enum! {
    /// Kind of a store.
    closed StorageProvider {
        /// S3 and what speaks like it.
        S3 = "s3",
        /// Google Cloud Storage.
        Gcs = "gcs",
        /// Azure Blob Storage.
        Azure = "azure",
        /// A local directory.
        Local = "local",
    }
}

/// An S3 bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct S3Storage {
    /// Address of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,

    /// Name of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,

    /// Put before the key of every object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,

    /// Region of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,

    /// Secret with the credentials and the repository's password, in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,

    /// Connections to hold at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,

    /// Do not check the server's certificate.
    #[serde(rename = "insecureTLS", default, skip_serializing_if = "is_false")]
    pub insecure_tls: bool,
}

/// A directory that every node can reach, such as a shared filesystem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct LocalStorage {
    /// Absolute path of the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// Secret with the repository's password, in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// A Google Cloud Storage bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct GcsStorage {
    /// Name of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,

    /// Put before the key of every object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,

    /// Connections to hold at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,

    /// Secret with the credentials and the repository's password, in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// An Azure blob container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct AzureStorage {
    /// Name of the storage account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_account: Option<String>,

    /// Name of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,

    /// Put before the key of every object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,

    /// Connections to hold at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,

    /// Secret with the credentials and the repository's password, in this namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

/// Whether the store can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SnapshotBackupStorageStatus {
    /// Whether the store can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<StoragePhase>,

    /// Details for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// When the store was last tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checked: Option<Time>,
}

wire_enum! {
    /// Whether a store can be used.
    closed StoragePhase {
        /// It answered.
        Ready = "Ready",
        /// Not tried yet.
        Pending = "Pending",
        /// It did not answer, or not as it should.
        Error = "Error",
    }
}

spec_or_default!(SnapshotBackupStorageSpec);
