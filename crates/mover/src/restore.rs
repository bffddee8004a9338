//! Writing a snapshot into a volume.
//!
//! The repository is not trusted: whoever has its password may have written anything into it. Every name is one component below a
//! directory that is held open, no link is followed, every blob is hashed, and what leads outside is left out and counted.

mod blobs;
mod device;
mod files;
mod metadata;
mod target;

pub(crate) use files::LONGEST_PATH;

use rustic_core::repofile::{Node, NodeType, SnapshotFile};

use crate::archive::describe;
use crate::locks::{Lock, Mode};
use crate::repository::Opened;
use crate::{Content, Error, Restore, Restored};
use blobs::Blobs;

/// Restores a snapshot.
pub(crate) fn restore(opened: Opened, restore: &Restore) -> Result<Restored, Error> {
    let operation = opened.objects.operation.clone();
    let snapshot = find(&opened, &restore.snapshot)?;
    // Reading must go on where we may not write.
    let _lock = match Lock::take(&opened, Mode::Shared) {
        Err(Error::Denied(_)) => None,
        lock => Some(lock?),
    };
    let told = describe(&snapshot);
    operation.expect(told.bytes, told.files);
    let engine =
        opened.engine.to_indexed().map_err(|error| operation.explain("reading the index", &error))?;
    let blobs = Blobs { engine, seal: opened.seal, objects: opened.objects };
    let root = root(&blobs, &snapshot)?;
    let restored = match &restore.content {
        Content::Files(path) if root.is_dir() => files::restore(&blobs, &root, path, restore.special_files)?,
        Content::Device { path, size } if root.is_file() => device::restore(&blobs, &root, path, *size)?,
        Content::Files(_) => {
            return Err(Error::Invalid("the snapshot holds a device: restore it to a device".into()));
        }
        Content::Device { .. } => {
            return Err(Error::Invalid("the snapshot holds files: restore it to a directory".into()));
        }
    };
    operation.check()?;
    operation.tell();
    Ok(restored)
}

/// The snapshot of an id, which has to be whole: a prefix could mean another one tomorrow.
fn find(opened: &Opened, id: &str) -> Result<SnapshotFile, Error> {
    let parsed: rustic_core::Id = id.parse().map_err(|_| {
        Error::Invalid(format!("{id:?} is no id of a snapshot: it has 64 hexadecimal digits"))
    })?;
    if opened.objects.find(&format!("snapshots/{}", parsed.to_hex().as_str()))?.is_none() {
        return Err(Error::NoSnapshot(id.to_owned()));
    }
    opened
        .engine
        .get_snapshot_from_str(parsed.to_hex().as_str(), |_| true)
        .map_err(|error| opened.objects.operation.explain("reading the snapshot", &error))
}

/// What the snapshot's path shows; everything, where it shows several.
fn root(blobs: &Blobs, snapshot: &SnapshotFile) -> Result<Node, Error> {
    let mut node = Node { node_type: NodeType::Dir, subtree: Some(snapshot.tree), ..Node::default() };
    let mut paths = snapshot.paths.iter();
    let (Some(path), None) = (paths.next(), paths.next()) else { return Ok(node) };
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let missing = || Error::Damaged(format!("the snapshot shows {path} but does not hold it"));
        let tree = blobs.tree(&node.subtree.ok_or_else(missing)?)?;
        node = tree.nodes.into_iter().find(|node| *node.name() == *name).ok_or_else(missing)?;
    }
    Ok(node)
}
