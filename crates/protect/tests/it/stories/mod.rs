//! Stories, on both clusters.

mod copied;
mod recovery;
mod replicated;
mod roles;
mod survey;
mod walk;
