//! Stories of a fleet, one for each promise.

mod fleet;
mod many;
mod views;
mod works;
mod works_spared;
