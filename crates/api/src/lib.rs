//! The words: every Kubernetes type Lifeboat reads or writes, and its CRDs
#![allow(
    unreachable_pub,
    reason = "the KubeSchema derive copies each struct, with its visibility, into a function body"
)]
pub mod apps;
mod catalog;
pub mod cluster;
pub mod csiaddons;
pub mod multicluster;
pub mod ramen;
pub mod replication;
mod schema;
pub mod snapshot;
pub mod topolvm;
pub mod view;
pub mod volsync;
mod wire;
pub mod work;

pub use catalog::{crd_file_name, crd_yaml, crds, crds_yaml};
pub use wire::Duration;
