//! The bytes of a block device as one file.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustic_core::repofile::{Metadata, Node, NodeType};

use super::{Length, Opener};
use crate::Error;
use crate::operation::Operation;

/// A device as a file of a snapshot, and how it is opened.
pub(crate) fn device(path: &Path, size: u64, name: &OsStr, operation: Arc<Operation>) -> (Node, Opener) {
    let now = jiff::Timestamp::now();
    let metadata = Metadata {
        mode: Some(0o600),
        mtime: Some(now),
        atime: Some(now),
        ctime: Some(now),
        uid: Some(0),
        gid: Some(0),
        size,
        links: 1,
        ..Metadata::default()
    };
    let (path, what) = (path.to_owned(), path.display().to_string());
    let told = what.clone();
    let open = Opener {
        open: Box::new(move || {
            File::open(path).map_err(|error| Error::Invalid(format!("opening {told}: {error}")))
        }),
        length: Length::Exactly(size),
        what,
        operation,
    };
    (Node::new_node(name, NodeType::File, metadata), open)
}
