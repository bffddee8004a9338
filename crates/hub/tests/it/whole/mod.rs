//! The whole: a hub with all of its controllers, real agents and real protectors, three API servers.

mod fleet;
mod rights;
mod stories;
