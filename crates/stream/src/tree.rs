//! Directory trees as a source: walked, compared with the last sync, and sent.

mod plan;
mod run;
pub(crate) mod walk;

pub(crate) use run::{Run, census};

/// What proves that a file has not changed since the last sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The same inode with the same change time, which no program can set back. For volumes whose snapshots keep both; of others
    /// everything is read, and only changed blocks are sent.
    #[default]
    Stamps,
    /// The same size and modification time. For snapshots that are copies made by a program that keeps times; misses a change that
    /// somebody hid by setting the time back.
    Modified,
    /// Nothing: everything is read.
    Nothing,
}
