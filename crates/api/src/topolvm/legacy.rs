//! `topolvm.cybozu.com/v1`: the LogicalVolume of clusters that were set up before the group was renamed.
//!
//! Spec and status are those of the new group; only the envelope differs.

use super::logical_volume::{LogicalVolumeSpec as Spec, LogicalVolumeStatus};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The API group of this kind.
pub const GROUP: &str = "topolvm.cybozu.com";

/// Which volume to make, on which node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource)]
#[kube(
    group = "topolvm.cybozu.com",
    version = "v1",
    kind = "LogicalVolume",
    plural = "logicalvolumes",
    doc = "An LVM volume or snapshot on one node, under the group's former name.",
    status = "LogicalVolumeStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.snapshot.phase"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.snapshot.progress.percentDone")
)]
#[serde(transparent)]
pub struct LogicalVolumeSpec(pub Spec);

impl JsonSchema for LogicalVolumeSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Spec::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Spec::json_schema(generator)
    }
}

impl From<LogicalVolume> for super::LogicalVolume {
    fn from(old: LogicalVolume) -> Self {
        Self { metadata: old.metadata, spec: old.spec.0, status: old.status }
    }
}
