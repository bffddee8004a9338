//! Gives a test a cluster, embedded or real, and kills it at every write

pub mod real;
