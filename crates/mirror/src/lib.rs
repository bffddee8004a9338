//! The storage driver of node storage behind VolumeReplication: it mirrors volumes between two clusters.
//!
//! ```text
//!      PRIMARY                                                         SECONDARY
//!   UID ──▶ cut-UID ──▶ stream ═══ Noise, psk.txt ═══▶ door ──▶ filling-UID ──▶ replica-UID
//!    ▲       at every interval                          │                           │
//!    └────────────────────────── made primary: renamed, a higher epoch ◀────────────┘
//! ```
//!
//! Each node runs one [`Mirror`], which looks at the volumes of that node and at no others. `role` carries VolumeReplications out, `replica` what a
//! secondary receives, `maintenance` and `fence` answer MaintenanceMode and NetworkFence. `talk` is the words of two mirrors, `door` the port they
//! come in by. It leaves to others: who shall be primary (`protect`), making and mounting volumes (`node`), the bytes on the wire (`stream`).

pub mod calls;
pub mod copies;
pub mod desk;
mod door;
pub mod failure;
pub mod fence;
mod ground;
pub mod halt;
pub mod kinds;
pub mod maintenance;
pub mod reception;
pub mod replica;
pub mod role;
mod run;
pub mod talk;
pub mod words;

pub use ground::{Config, Ground, Parts};
pub use run::{Mirror, NAME, controller};
