//! Protects one application's volumes on one cluster: the controller of VolumeReplicationGroup.

pub mod books;
pub mod decide;
pub mod ledger;
pub mod mishaps;
pub mod restored;
pub mod settings;
pub mod status;
pub mod why;
pub mod words;
pub mod world;
