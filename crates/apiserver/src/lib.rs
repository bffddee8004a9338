//! A Kubernetes API server that fits in a process.
//!
//! [`ApiServer`] holds one cluster; [`ApiServer::service`] gives a [`tower::Service`] over it, which a `kube::Client` can use
//! without any socket, and [`serve::Front`] serves the same over HTTPS to `kubectl`. It is generic over JSON and a table of
//! resources: built-in kinds come from `lifeboat-kinds`, custom ones from definitions installed at run time. It
//! does what a bare control plane does by itself (garbage collection, namespaces, service accounts) and knows no
//! controller of Lifeboat's.
//!
//! ```text
//!   HTTPS ──▶ serve ──▶ service ──▶ auth ──▶ create/update/patch/delete/list/watch ──▶ store ──▶ disk
//!                          ▲   fault                      │ schema, kinds                │
//!   kube::Client ──────────┘                              └── registry ◀── crd           └──▶ control (gc, namespaces)
//! ```
//!
//! The core is synchronous: a verb is a function of the store, the request, the time and a source of chance. Only the
//! shell waits: for the body, for the disk, for the next event.

pub mod admission;
pub mod auth;
pub mod cluster;
mod control;
mod crd;
mod delete;
mod discovery;
pub mod error;
pub mod fault;
mod list;
mod negotiate;
mod object;
mod openapi;
mod order;
mod patch;
pub mod path;
mod query;
mod registry;
mod resources;
mod scale;
pub mod serve;
mod service;
pub mod store;
mod watch;
mod write;

pub use auth::User;
pub use cluster::Sources;
pub use discovery::KUBERNETES_VERSION;
pub use service::{ApiServer, Body, Config, ConfigError, Service};
