//! Stories, on both clusters.

mod replicated;
