//! The protector's tests: rules as tables, stories on both clusters, a death at every effect.

mod crash;
mod ledger;
mod player;
mod rules;
mod scene;
mod stories;
