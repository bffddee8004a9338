//! Node storage, tried.

mod volume;
