//! Starts the real programs, where they are built.

mod plane;
