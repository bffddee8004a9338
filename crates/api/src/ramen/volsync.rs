//! The wish lists for copying bytes with a mover, as the hub hands them to a group.

use super::ProtectedPvc;
use crate::schema;
use crate::wire::{is_false, or_default};
use k8s_openapi::api::core::v1::{LocalObjectReference, PodSecurityContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to copy with a mover, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolSyncSpec {
    /// Claims to receive here. An empty list is not a request to delete what was received.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub rd_spec: Vec<VolSyncDestination>,

    /// Claims to send from here, with the address of the receiver where names alone do not reach it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub rs_spec: Vec<VolSyncSource>,

    /// Do not copy with a mover at all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,

    /// Settings of mover pods, per claim.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub mover_config: Vec<MoverConfig>,
}

/// A claim to receive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolSyncDestination {
    /// The claim as it is on the sending cluster.
    #[serde(rename = "protectedPVC", skip_serializing_if = "Option::is_none")]
    pub protected_pvc: Option<ProtectedPvc>,

    /// Settings of the mover pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover_config: Option<MoverConfig>,
}

/// A claim to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolSyncSource {
    /// The claim to send.
    #[serde(rename = "protectedPVC", skip_serializing_if = "Option::is_none")]
    pub protected_pvc: Option<ProtectedPvc>,

    /// Where the receiver listens.
    #[serde(rename = "rsyncTLS", skip_serializing_if = "Option::is_none")]
    pub rsync_tls: Option<RsyncTls>,

    /// Settings of the mover pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover_config: Option<MoverConfig>,
}

/// Where a receiver listens and which key it shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncTls {
    /// Host name or IP address of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Secret with the key that both sides share.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub tls_secret_ref: Option<LocalObjectReference>,
}

/// A receiver that is ready, as reported back to the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolSyncDestinationInfo {
    /// The claim it receives.
    #[serde(rename = "protectedPVC", skip_serializing_if = "Option::is_none")]
    pub protected_pvc: Option<ProtectedPvc>,

    /// Where it listens.
    #[serde(rename = "rsyncTLS", skip_serializing_if = "Option::is_none")]
    pub rsync_tls: Option<RsyncTls>,
}

/// Settings of the mover pod of one claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MoverConfig {
    /// Security context of the mover pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::PodSecurityContext>")]
    pub mover_security_context: Option<PodSecurityContext>,

    /// Service account of the mover pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover_service_account: Option<String>,

    /// Name of the claim these settings are for.
    #[schemars(length(min = 1))]
    pub pvc_name: String,

    /// Namespace of the claim these settings are for.
    #[schemars(length(min = 1))]
    pub pvc_namespace: String,
}
