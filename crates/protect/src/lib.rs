//! Protects one application's volumes on one cluster: the controller of VolumeReplicationGroup.
//!
//! A group selects claims and has a role. As primary it keeps their volumes, has them replicated (by their storage through VolumeReplication, or by
//! a mover through ReplicationSource) and records in object stores what a peer needs to take over. As secondary it receives. When it becomes
//! primary it brings back what was recorded or received first.
//!
//! ```text
//!   watches ─▶ view ─▶ World ─▶ decide ─▶ effects ─▶ claims, volumes, VolumeReplications, senders, receivers
//!                        ▲         │                └─▶ desk ─▶ clerk ─▶ object stores
//!                        └─ books ◀┼──────────────────────────────┘
//!                                  └─▶ status
//! ```
//!
//! Woken by groups (not their status), claims (by the rules in [`triggers`]), volumes, pods, attachments, classes, the configuration, and
//! everything that carries its labels. Bytes are moved by others: a storage driver or a mover.

pub mod books;
pub mod decide;
mod effects;
pub mod keys;
pub mod ledger;
pub mod listing;
pub mod mishaps;
pub mod pods;
pub mod restored;
pub mod run;
pub mod serve;
pub mod settings;
pub mod status;
pub mod stores;
pub mod survey;
pub mod triggers;
pub mod view;
pub mod why;
pub mod words;
pub mod world;
