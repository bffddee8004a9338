//! The tests of the mirror.
