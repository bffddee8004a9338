//! ManifestWorks: what the hub wants to exist on the cluster, made so, kept so, and taken away again.
//!
//! Woken by its work, by its record, by every object it names and by the cluster's kinds.
//!
//! An object is deleted only if the record says that it was made for this work: the record names it before it is made, the object
//! carries the record's uid from its first moment on, and the record then keeps its uid. Whatever was there before, or came back
//! under the same name by another hand, is updated as the work says and left where it is.

pub mod decide;
mod effects;
pub mod feedback;
pub mod manifest;
pub mod status;
pub mod world;

pub(crate) use effects::{Failures, Works};
