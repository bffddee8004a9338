//! The words: every Kubernetes type Lifeboat reads or writes, and its CRDs.
//!
//! One module for each API group; a large kind has a file of its own. The names on the wire are those of
//! RamenDR, TopoLVM, VolSync, csi-addons, Open Cluster Management and CSI snapshots, so that Lifeboat can
//! stand in for them. Keys and words that are not fields are in [`annotations`], [`labels`],
//! [`finalizers`] and [`conditions`]. Nothing here runs: no client, no clock, no I/O.
//!
//! # Decoding never refuses a peer's object
//!
//! - **Unknown fields are ignored.** No type denies them. What is not typed is lost on a full
//!   replace, so change objects that peers also write by patch, never by writing back what was read.
//! - **Unknown words are kept.** Every enum is a [wire enum](ramen::DRState): known words are variants,
//!   any other word is `Other(word)` and is written back unchanged; an unset one is `Other("")`. Whether
//!   an API server refuses other words is a matter of the CRD (`closed` and `open` enums in the source).
//! - **Missing fields and nulls are defaults.** Every struct decodes from `{}`. What a CRD demands is
//!   declared to the API server (`required`), not to the decoder; Go's `null` for an empty list or map
//!   is an empty list or map.
//! - **Texts with a format stay texts** where a bad one could arrive: see [`Duration`].
//!
//! The envelope is stricter, as its derive wants it: an object needs `metadata`, and `spec` where its kind
//! has one. Our CRDs demand a `spec`, and every Go client writes one.
//!
//! # CRDs
//!
//! [`crds`] derives them from the types; `deploy/crds` holds the files, and a test keeps them current
//! (`UPDATE_CRDS=1` rewrites them). In the types, `#[serde(default)]` on a struct is for the decoder and
//! `#[schemars(!default)]` beside it hides that from the schema: there a plain field is required, and
//! an `Option` or a field with its own `default` is not. Defaults that an API server fills in are
//! spelled out by `extend("default" = ...)`.

#![allow(
    clippy::duplicated_attributes,
    reason = "each printer column names its own type; the lint takes them for repetitions"
)]
#![allow(
    unreachable_pub,
    reason = "the KubeSchema derive copies each struct, with its visibility, into a function body"
)]

pub mod annotations;
pub mod apps;
mod catalog;
pub mod cluster;
pub mod conditions;
pub mod csiaddons;
pub mod finalizers;
mod interval;
pub mod labels;
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

pub use catalog::{crd_file_name, crd_json, crd_yaml, crds, crds_json, crds_yaml};
pub use interval::{BadInterval, Interval};
pub use wire::Duration;
