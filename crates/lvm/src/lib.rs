//! Node storage as typed operations: LVM2 ([`Lvm`] over real volume groups), and plain directories with the same semantics.
//!
//! Knows nothing of Kubernetes. What a volume is for is told by its tags, which the caller chooses.

mod config;
mod dir;
mod locks;
mod lvm2;
mod lvmd;
mod model;
pub mod mount;
mod names;
mod storage;

pub use config::{Config, ConfigError, DEFAULT_SOCKET};
pub use dir::{Closed, Directories, DirectoryClass, Gate, Writing};
pub use lvm2::{Guard, Kind, Lvm2, LvmClass, LvmSettings, Output, Pace, Patience, Program, Run, Wipe};
pub use lvmd::{Listening, Remote, ServeError, pb as wire, serve};
pub use model::{
    Access, AccessMode, Capacity, Change, ClassKind, Consistency, Create, DeviceClass, Error, Lvm, Snapped,
    Snapshot, ThinPool, Trouble, TroubleKind, Volume,
};
pub use storage::Storage;
