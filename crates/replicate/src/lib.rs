//! Carries out ReplicationSource and ReplicationDestination (`volsync.backube`, their `rsyncTLS` sections) on the node that has the volume,
//! where no VolSync does.
//!
//! ```text
//!   ReplicationSource ──▶ cut (snapshot, tagged) ──▶ stream ══ Noise, psk.txt ══▶ stream ──▶ claim's volume ──▶ image (VolumeSnapshot)
//!          ▲                                            │                                                        │
//!          └── status: cut, echo, bytes ◀───────────────┘          status: address, latestImage ◀── ReplicationDestination
//! ```
//!
//! Each node runs one [`Agent`], which looks at the volumes of that node and at no others. It leaves to others: who is primary and
//! when a last copy is asked for (`protect`), making volumes and images (`node`), and the bytes on the wire (`stream`).

pub mod cron;
pub mod destination;
mod ground;
pub mod jobs;
pub mod kinds;
pub mod memory;
mod peer;
pub mod place;
pub mod resolve;
mod run;
mod secret;
pub mod source;
mod sweep;
pub mod why;
pub mod words;

pub use ground::{Config, Ground, Parts};
pub use resolve::{Clusters, Dns, Resolve, ResolveError};
pub use run::{Agent, NAME, controller};
