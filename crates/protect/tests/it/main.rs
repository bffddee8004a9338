//! The protector's tests: rules as tables, stories on both clusters, a death at every effect.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod crash;
mod ledger;
mod pair;
mod player;
mod rules;
mod scene;
mod stories;
