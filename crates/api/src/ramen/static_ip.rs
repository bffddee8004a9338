//! Static addresses of virtual machines: what was found, and what to rewrite on the other side.

use crate::wire::or_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Addresses to rewrite when resources are restored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct StaticIpTranslation {
    /// One entry for each resource.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub ip_translations: Vec<ResourceTranslation>,
}

/// Addresses to rewrite on one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResourceTranslation {
    /// The resource.
    pub resource_ref: ResourceRef,

    /// Its networks.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkTranslation>,
}

/// Addresses to give a resource on one network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct NetworkTranslation {
    /// The network, by the name the resource knows it by.
    pub network_name: String,

    /// The addresses, in the order of the network's interfaces.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<TargetAddress>,
}

/// One address on the other side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct TargetAddress {
    /// The address to use there.
    #[serde(rename = "targetIP")]
    pub target_ip: String,
}

/// Static addresses found on the resources of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct StaticIpDiscovery {
    /// One entry for each resource that has static addresses.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStaticIps>,
}

/// Static addresses of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResourceStaticIps {
    /// The resource.
    pub resource_ref: ResourceRef,

    /// Its networks.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<DiscoveredNetwork>,
}

/// Static addresses on one network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DiscoveredNetwork {
    /// The network.
    pub network_name: String,

    /// The addresses found.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// Names a resource, such as a virtual machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResourceRef {
    /// API version of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// Namespace of the resource.
    pub namespace: String,

    /// Name of the resource.
    pub name: String,
}
