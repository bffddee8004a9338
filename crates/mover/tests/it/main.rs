//! Backup and restore with real files, real repositories and the real restic.

mod corpus;
mod local;
