//! The managed cluster as the agent sees it: which kinds it has, and the objects that somebody wants to see.

pub mod ground;
pub mod kinds;
pub mod sight;
