//! What a receiver knows of the volumes that it writes to: which generation each is a copy of. Kept in files beside the stream's own
//! journal, by the UID of the volume, so that receivers that are made anew go on with it.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a volume is a copy of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    /// Grows whenever the volume becomes something else.
    pub count: u64,
    /// The generation that it is a copy of; nothing for an empty volume, and a name that no sender knows where nobody can tell.
    pub base: Option<String>,
}

impl Staging {
    /// The name of this very copy, for the journal.
    #[must_use]
    pub fn incarnation(&self) -> String {
        format!("copy-{}", self.count)
    }

    /// What an unknown content is called: the sender then compares with what is there.
    #[must_use]
    pub fn unknown(count: u64) -> Self {
        Self { count, base: Some(format!("unknown-{count}")) }
    }
}

/// What is known of all volumes; clones are the same.
#[derive(Clone)]
pub struct Memory {
    folder: PathBuf,
    known: Arc<Mutex<BTreeMap<String, Staging>>>,
}

const FILE: &str = "staging.json";

impl Memory {
    /// Reads what earlier processes have written. What cannot be read is not known: such a volume is compared as a whole.
    #[must_use]
    pub fn load(folder: PathBuf) -> Self {
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let read = fs::read(entry.path().join(FILE)).ok();
            let staging = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let (Some(staging), Ok(uid)) = (staging, entry.file_name().into_string()) {
                known.insert(uid, staging);
            }
        }
        Self { folder, known: Arc::new(Mutex::new(known)) }
    }

    /// The folder of a volume, where the stream keeps its journal too.
    #[must_use]
    pub fn folder(&self, uid: &str) -> PathBuf {
        self.folder.join(uid)
    }

    /// What is known of a volume.
    #[must_use]
    pub fn of(&self, uid: &str) -> Option<Staging> {
        self.known.lock().get(uid).cloned()
    }

    /// Notes what a volume is; safe on the disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember(&self, uid: &str, staging: Staging) -> io::Result<()> {
        let folder = self.folder(uid);
        fs::create_dir_all(&folder)?;
        let fresh = folder.join("staging.next");
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(&staging)?)?;
        file.sync_all()?;
        fs::rename(&fresh, folder.join(FILE))?;
        File::open(&folder)?.sync_all()?;
        self.known.lock().insert(uid.to_owned(), staging);
        Ok(())
    }

    /// Volumes that are known.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.known.lock().keys().cloned().collect()
    }

    /// Forgets a volume that is gone.
    pub fn forget(&self, uid: &str) {
        self.known.lock().remove(uid);
        // An old folder that stays behind does no harm: UIDs do not come again.
        let _ = fs::remove_dir_all(self.folder(uid));
    }
}

/// Whether a directory holds nothing but what a new filesystem has.
///
/// # Errors
/// When it cannot be read.
pub fn is_empty(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if entry?.file_name() != "lost+found" {
            return Ok(false);
        }
    }
    Ok(true)
}
