//! Node storage as typed operations: LVM2 ([`Lvm`] over real volume groups), and plain directories with the same semantics.
//!
//! Knows nothing of Kubernetes. What a volume is for is told by its tags, which the caller chooses.

mod model;

pub use model::{
    Access, AccessMode, Capacity, Change, ClassKind, Consistency, Create, DeviceClass, Error, Lvm, Snapped,
    Snapshot, ThinPool, Volume,
};
