//! What is kept about a directory volume beside its files, written so that a crash leaves the old text or the new one.

use crate::{AccessMode, Consistency};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Name of the file in a volume's folder.
const FILE: &str = "meta.json";

/// What is kept about one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// Given once; names may change.
    pub(crate) id: u64,
    /// Nominal bytes.
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) tags: BTreeSet<String>,
    /// Id of the volume that this is a snapshot of.
    pub(crate) origin: Option<u64>,
    pub(crate) mode: AccessMode,
    /// What the content was worth when the snapshot was taken; a copy of a read-only copy is worth no more.
    pub(crate) consistency: Consistency,
}

impl Meta {
    pub(crate) fn read(volume: &Path) -> io::Result<Self> {
        let text = std::fs::read(volume.join(FILE))?;
        serde_json::from_slice(&text).map_err(io::Error::other)
    }

    /// Replaces what is kept, durably.
    pub(crate) fn write(&self, volume: &Path) -> io::Result<()> {
        let fresh = volume.join("meta.json.new");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec_pretty(self).map_err(io::Error::other)?)?;
        file.sync_all()?;
        std::fs::rename(&fresh, volume.join(FILE))?;
        sync_folder(volume)
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
