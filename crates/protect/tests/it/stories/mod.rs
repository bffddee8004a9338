//! Stories, on both clusters.

mod copied;
mod many;
mod recovery;
mod replicated;
mod roles;
mod survey;
mod walk;
