//! Every rule of provisioning: which claims, how large, where, from what, how volumes grow and how they go.

pub mod claim;
pub mod expand;
pub mod leftover;
pub mod place;
pub mod reclaim;
pub mod size;
pub mod source;
