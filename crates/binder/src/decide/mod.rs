//! Every rule, one file for each flow. Nothing here reads a clock, a cache or a network; what a decision writes is the whole
//! object, made from the version that was observed, so that the server refuses it where somebody was faster.

pub mod claim;
pub mod matching;
pub mod near;
pub mod provision;
pub mod reclaim;
pub mod volume;
