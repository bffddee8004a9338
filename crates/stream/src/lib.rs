//! Carries a volume's changes to a peer: keyed, encrypted, resumable.
//!
//! A sender compares a snapshot with its memory of the last sync and sends the blocks that differ; a receiver applies them to a staging
//! volume and says when that holds the whole generation, or once its owner has published it. Both need the same pre-shared key; who does not hold it learns nothing.
//!
//! ```text
//!   snapshot ──▶ walk / blocks ──▶ plan ──▶ sink ──▶ frames ══ Noise over TCP ══▶ session ──▶ apply ──▶ staging volume
//!                  ▲    index of the last sync                                       journal, epoch        │ Event::Completed
//!                  └─────────────── kept once the receiver has all of it ◀──────────────────┘         ▼ published by the owner
//! ```
//!
//! It leaves to others: taking snapshots, publishing what arrived, deciding when to sync and who is primary. It does not know Kubernetes.

#![expect(
    clippy::disallowed_methods,
    reason = "sockets and disks live in real time, on threads of their own; a simulated fleet puts its own mover in place of this room"
)]

mod apply;
mod attributes;
mod blocks;
mod error;
mod index;
mod key;
mod receive;
mod send;
mod tree;
mod wire;

pub use apply::{Place, Policy};
pub use error::{Error, Refusal};
pub use key::Key;
pub use receive::{CHECKPOINT, Completed, Destination, Destinations, Event, Progress, Receiver, Terms};
pub use send::{Changed, Job, Limits, Sending, Sent, Source, send};
pub use tree::Trust;
pub use wire::link::Timing;

#[cfg(test)]
mod tests;
