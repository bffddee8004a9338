//! The syncthing mover: claims kept in step by peers that are always on.

use super::MoverConfig;
use crate::schema;
use crate::wire::or_default;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keeping a claim in step with peers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Syncthing {
    /// How the mover's pod is made.
    #[serde(flatten)]
    pub mover: MoverConfig,

    /// The peers.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<SyncthingPeer>,

    /// Type of the service for incoming connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_type: Option<String>,

    /// Size of the claim for syncthing's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Quantity>")]
    pub config_capacity: Option<Quantity>,

    /// Storage class of the claim for syncthing's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_storage_class_name: Option<String>,

    /// Access modes of the claim for syncthing's own data.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub config_access_modes: Vec<String>,
}

/// A peer to keep in step with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SyncthingPeer {
    /// Where it listens.
    pub address: String,

    /// Its identity.
    #[serde(rename = "ID")]
    pub id: String,

    /// Whether it may introduce further peers.
    pub introducer: bool,
}

/// How syncthing is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SyncthingStatus {
    /// The peers that it knows.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<SyncthingPeerStatus>,

    /// Its own identity.
    #[serde(rename = "ID", skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,

    /// Where it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// How the connection to a peer is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SyncthingPeerStatus {
    /// Where it listens.
    pub address: String,

    /// Its identity.
    #[serde(rename = "ID")]
    pub id: String,

    /// Whether it is connected.
    pub connected: bool,

    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// The peer that introduced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introduced_by: Option<String>,
}
