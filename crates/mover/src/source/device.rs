//! The bytes of a block device as one file.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use rustic_core::repofile::{Metadata, Node, NodeType};
use rustic_core::{ReadSource, ReadSourceEntry, RusticResult};

use super::{Length, Opener};
use crate::Error;
use crate::operation::Operation;

/// A device, and the path under which the snapshot shows it.
pub(crate) struct Device {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) shown: PathBuf,
    pub(crate) operation: Arc<Operation>,
}

impl ReadSource for Device {
    type Open = Opener;
    type Iter = std::iter::Once<RusticResult<ReadSourceEntry<Opener>>>;

    fn size(&self) -> RusticResult<Option<u64>> {
        self.operation.expect(self.size, 1);
        Ok(Some(self.size))
    }

    fn entries(&self) -> Self::Iter {
        let name = self.shown.file_name().unwrap_or_default();
        let now = jiff::Timestamp::now();
        let metadata = Metadata {
            mode: Some(0o600),
            mtime: Some(now),
            atime: Some(now),
            ctime: Some(now),
            uid: Some(0),
            gid: Some(0),
            size: self.size,
            links: 1,
            ..Metadata::default()
        };
        let (path, what) = (self.path.clone(), self.path.display().to_string());
        let told = what.clone();
        let open = Opener {
            open: Box::new(move || {
                File::open(path).map_err(|error| Error::Invalid(format!("opening {told}: {error}")))
            }),
            length: Length::Exactly(self.size),
            what,
            operation: self.operation.clone(),
        };
        self.operation.advance_files(1);
        let node = Node::new_node(name, NodeType::File, metadata);
        std::iter::once(Ok(ReadSourceEntry { path: self.shown.clone(), node, open: Some(open) }))
    }
}
