//! Benchmarks: Lifeboat side by side with what a user would run instead, in one run on one machine.
//!
//! Each benchmark is a program under `src/bin`, run by `cargo xtask bench NAME`; it writes ratios and figures as JSON.
//! Here is what they share: one client for both sides, the servers, the loads, and the arithmetic.

pub mod backup;
pub mod binds;
pub mod client;
pub mod creates;
pub mod findings;
mod kubeconfig;
pub mod server;
pub mod watchers;
