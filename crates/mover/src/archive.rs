//! Making a snapshot.
//!
//! The engine's own way of doing it carries on after a file that it could not read, hands every blob from thread to thread and makes its
//! tables anew for every file. So content is cut, packed and stored here, in the same format.

mod chunks;
mod packs;
mod tree;

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustic_core::repofile::{Metadata, Node, NodeType, SnapshotFile, SnapshotSummary, StringList};

use crate::locks::{Lock, Mode};
use crate::repository::Opened;
use crate::source::{Files, device};
use packs::Packs;
use tree::{Bench, Keeper};

use crate::{BackedUp, Backup, Content, Error, Snapshot};

/// Marks snapshots that hold one device; people and other programs see it among the tags.
const DEVICE: (&str, &str) = ("lifeboat-content", "device");

/// Backs a volume up into an open repository.
pub(crate) fn backup(opened: Opened, backup: &Backup) -> Result<BackedUp, Error> {
    let operation = opened.objects.operation.clone();
    let shown = shown(&backup.path)?;
    let _lock = Lock::take(&opened, Mode::Shared)?;
    let fault = |doing: &str, error: &rustic_core::RusticError| operation.explain(doing, error);
    let mut tags = StringList::default();
    backup.tags.iter().for_each(|(key, value)| tags.add(format!("{key}={value}")));
    if let Content::Device { .. } = backup.content {
        tags.add(format!("{}={}", DEVICE.0, DEVICE.1));
    }
    let mut paths = StringList::default();
    paths.add(backup_path(&shown));
    // Defaults would tell the machine's name and how this program was called.
    let mut snapshot = SnapshotFile {
        hostname: backup.host.clone(),
        username: "lifeboat".to_owned(),
        tags,
        paths,
        program_version: concat!("lifeboat ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..SnapshotFile::default()
    };
    let mut summary = SnapshotSummary::default();
    let parent = parent(&opened, &snapshot).map_err(|error| fault("reading the snapshots", &error))?;
    let held = opened.objects.list("data/")?.iter().map(|pack| pack.size).sum();
    let engine = opened.engine.to_indexed().map_err(|error| fault("reading the index", &error))?;
    let polynomial = engine.config().poly().map_err(|error| fault("reading the configuration", &error))?;
    let packs = Packs::new(&opened.objects, &opened.seal, held);
    let keeper = Keeper::new(&engine, &packs, polynomial, &operation);
    let mut bench = Bench::new()?;
    let name = shown.file_name().unwrap_or_default();
    let node = match &backup.content {
        Content::Files(path) => {
            let files = Files::open(path, &shown, operation.clone())?;
            let (bytes, count) = files.measure()?;
            operation.expect(bytes, count);
            let parent = parent.as_ref().and_then(|parent| {
                snapshot.parent = Some(parent.id);
                let node = engine.node_from_snapshot_and_path(parent, &backup_path(&shown)).ok()?;
                node.subtree
            });
            let mut root = files.root()?;
            root.subtree = Some(keeper.keep_tree(&files, parent)?);
            root
        }
        Content::Device { path, size } => {
            operation.expect(*size, 1);
            operation.advance_files(1);
            keeper.counts.files.fetch_add(1, Ordering::Relaxed);
            // A device has no time of change: all of it is read.
            let (mut node, opener) = device(path, *size, name, operation.clone());
            node.content = Some(keeper.keep_file(opener, &mut bench)?.content);
            node
        }
    };
    let mut tree = keeper.keep_nodes(vec![node], &mut bench)?;
    for above in shown.ancestors().skip(1).filter_map(Path::file_name) {
        let metadata = Metadata { mode: Some(0o755 | crate::source::go::DIR), ..Metadata::default() };
        let mut node = Node::new_node(above, NodeType::Dir, metadata);
        node.subtree = Some(tree);
        tree = keeper.keep_nodes(vec![node], &mut bench)?;
    }
    let bytes_added = packs.finish()?;
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    summary.total_files_processed = count(&keeper.counts.files);
    summary.total_dirs_processed = count(&keeper.counts.folders);
    summary.total_bytes_processed = count(&keeper.counts.bytes);
    summary.files_new = count(&keeper.counts.read);
    summary.files_unmodified = summary.total_files_processed.saturating_sub(summary.files_new);
    summary.data_added_packed = bytes_added;
    summary.backup_end = jiff::Zoned::now();
    snapshot.tree = tree;
    snapshot.summary = Some(summary);
    // Nothing is published after a fault: this is the gate.
    operation.check()?;
    let id = packs.write_file("snapshots", &snapshot)?;
    packs.confirm()?;
    snapshot.id = id.parse().map_err(|_| Error::Invalid("a name of 64 digits is no name".into()))?;
    operation.tell();
    Ok(BackedUp { snapshot: describe(&snapshot), bytes_added })
}

/// The latest snapshot of the same path on the same host.
fn parent(opened: &Opened, snapshot: &SnapshotFile) -> rustic_core::RusticResult<Option<SnapshotFile>> {
    let same = |other: &SnapshotFile| other.hostname == snapshot.hostname && other.paths == snapshot.paths;
    Ok(opened.engine.get_matching_snapshots(same)?.into_iter().max_by_key(|other| other.time.timestamp()))
}

fn backup_path(shown: &Path) -> String {
    shown.to_string_lossy().into_owned()
}

/// The path that a snapshot shows: absolute, and nothing but names.
fn shown(path: &str) -> Result<PathBuf, Error> {
    let mut shown = PathBuf::from("/");
    for component in Path::new(path).components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => shown.push(name),
            _ => {
                return Err(Error::Invalid(format!(
                    "a snapshot cannot show the path {path:?}: use names only"
                )));
            }
        }
    }
    if shown.file_name().is_none() {
        return Err(Error::Invalid("a snapshot has to show a path with at least one name".into()));
    }
    Ok(shown)
}

/// What callers are told of a snapshot.
pub(crate) fn describe(snapshot: &SnapshotFile) -> Snapshot {
    let mut tags: std::collections::BTreeMap<_, _> = snapshot
        .tags
        .iter()
        .map(|tag| tag.split_once('=').unwrap_or((tag, "")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let device = tags.remove(DEVICE.0).is_some_and(|value| value == DEVICE.1);
    let summary = snapshot.summary.as_ref();
    Snapshot {
        id: snapshot.id.to_hex().as_str().to_owned(),
        tags,
        path: snapshot.paths.iter().next().cloned().unwrap_or_default(),
        bytes: summary.map_or(0, |summary| summary.total_bytes_processed),
        files: summary.map_or(0, |summary| summary.total_files_processed),
        device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_snapshots_show_are_names_only() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(shown(path).ok(), expected.map(PathBuf::from), "{path:?}");
        };
        check("/shop/data", Some("/shop/data"));
        check("shop/data", Some("/shop/data"));
        check("/shop//data/", Some("/shop/data"));
        check("/shop/../etc", None);
        check("/", None);
        check("", None);
    }
}
