//! The server from outside: its promises to clients, and its agreement with kube-apiserver.

#![allow(clippy::disallowed_methods, reason = "a test is the outside: it starts processes and tasks")]

mod access;
mod agree;
mod control;
mod durable;
mod faults;
mod hostile;
mod support;
mod watching;
