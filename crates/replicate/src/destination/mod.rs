//! Receivers: a claim to write to, a place to be reached at, and an image of every copy that is whole.
//!
//! Woken by the receiver itself, its claim, volume, images and service, its group, the disks, and by what the stream tells.

pub mod decide;
mod effects;
mod make;
mod offer;
mod paused;
mod roll_back;
pub mod status;
mod swap;
pub mod world;

pub use effects::Receivers;
