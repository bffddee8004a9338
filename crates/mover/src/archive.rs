//! Making a snapshot.

use std::path::{Component, Path, PathBuf};

use rustic_core::repofile::{SnapshotFile, SnapshotSummary, StringList};
use rustic_core::{BackupOptions, ParentOptions};

use crate::locks::{Lock, Mode};
use crate::repository::Opened;
use crate::source::{Device, Files};
use crate::{BackedUp, Backup, Content, Error, Snapshot};

/// Marks snapshots that hold one device; people and other programs see it among the tags.
const DEVICE: (&str, &str) = ("lifeboat-content", "device");

/// Backs a volume up into an open repository.
pub(crate) fn backup(opened: Opened, backup: &Backup) -> Result<BackedUp, Error> {
    let operation = opened.objects.operation.clone();
    let shown = shown(&backup.path)?;
    let _lock = Lock::take(&opened, Mode::Shared)?;
    let mut tags = StringList::default();
    backup.tags.iter().for_each(|(key, value)| tags.add(format!("{key}={value}")));
    let mut parents = ParentOptions::default();
    if let Content::Device { .. } = backup.content {
        tags.add(format!("{}={}", DEVICE.0, DEVICE.1));
        // A device has no time of change: all of it is read.
        parents = parents.force(true);
    }
    // Defaults would tell the machine's name and how this program was called.
    let snapshot = SnapshotFile {
        hostname: backup.host.clone(),
        username: "lifeboat".to_owned(),
        tags,
        program_version: concat!("lifeboat ", env!("CARGO_PKG_VERSION")).to_owned(),
        summary: Some(SnapshotSummary::default()),
        ..SnapshotFile::default()
    };
    let options = BackupOptions::default().parent_opts(parents);
    let fault = |doing: &str, error: &rustic_core::RusticError| operation.explain(doing, error);
    let engine = opened.engine.to_indexed_ids().map_err(|error| fault("reading the index", &error))?;
    let paths = [shown.clone()];
    let made = match &backup.content {
        Content::Files(path) => {
            let files = Files::open(path, &shown, operation.clone())?;
            engine.archive(&options, &files, snapshot, &paths)
        }
        Content::Device { path, size } => {
            let device = Device { path: path.clone(), size: *size, shown, operation: operation.clone() };
            engine.archive(&options, &device, snapshot, &paths)
        }
    };
    let made = made.map_err(|error| fault("backing up", &error))?;
    // The gate before the snapshot's write has been passed, so there is no fault; this is the same rule said once more.
    operation.check()?;
    let bytes_added = made.summary.as_ref().map_or(0, |summary| summary.data_added_packed);
    Ok(BackedUp { snapshot: describe(&made), bytes_added })
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
