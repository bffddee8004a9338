//! The server from outside: its promises to clients, and its agreement with kube-apiserver.

mod access;
mod agree;
mod control;
mod durable;
mod faults;
mod support;
mod watching;
