//! The controller of DRPolicy.

mod peers;
mod rules;
