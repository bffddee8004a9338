//! The controller of DRPolicy.

mod peers;
mod rules;
mod stories;
