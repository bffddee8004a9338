//! The binary as a person uses it: started, used with a kubeconfig, killed, started again.

#![allow(clippy::disallowed_methods, reason = "a test is the outside: it starts processes and tasks")]

mod agent;
mod binder;
mod demo;
mod explain;
mod fleet;
mod peers;
mod process;
mod up;
