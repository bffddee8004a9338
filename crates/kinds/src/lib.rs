//! The built-in Kubernetes kinds as data and rules, as Kubernetes 1.36 has them.
//!
//! One row per kind (`table`) says how it is named and served. What Kubernetes does to an object of the kind on its
//! way into the store is in `defaults`, `strategy` and `validation`; how it is shown is in `columns`; which of its
//! fields can be selected is in `fields`. The shape of every type, field by field, is in `types`, which the schemas,
//! the protobuf reader and the OpenAPI documents share.
//!
//! Nothing here does I/O, reads a clock or knows who is asking: storing, admission, authorisation and the metadata that
//! the server owns (uid, resourceVersion, timestamps, managedFields) are the API server's.

mod autoscalers;
mod columns;
mod defaults;
mod empty;
mod events;
mod fields;
mod form;
mod inert;
mod json;
mod schemas;
mod stored;
mod strategy;
mod table;
mod types;
mod validation;

pub mod openapi;
pub mod protobuf;

pub use columns::{Column, age};
pub use events::{core_to_events_v1, events_v1_to_core};
pub use schemas::schema;
pub use table::{Kind, Storage, all, find, find_kind};
pub use validation::{validate_meta, validate_meta_update};
