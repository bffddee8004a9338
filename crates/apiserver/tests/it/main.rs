//! The server from outside: its promises to clients, and its agreement with kube-apiserver.

mod agree;
mod support;
