//! Stories of a fleet, one for each promise.

mod fleet;
