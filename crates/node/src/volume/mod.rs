//! The LogicalVolumes of one node: made, copied, restored, backed up, grown and removed.
//!
//! Woken by its object, by the object it is a copy of, by the PersistentVolume that stands for it, by the storage of its backup, by what
//! changes on disk, by a change of the node's device classes, and by its own jobs. Not here: who asks for a volume, and the removal of backups from the store.

pub mod decide;
mod effects;
mod move_bytes;
mod run;
pub mod status;
mod view;
pub mod words;
pub mod world;

pub use move_bytes::VOLUME_TAG;
pub use run::{Agent, Config, NAME, Parts, agent};
pub use words::may_publish;
