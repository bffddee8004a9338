//! What a receiver knows of the volumes that it writes to: which generation each is a copy of. Kept in files beside the stream's own
//! journal, by the UID of the volume, so that receivers that are made anew go on with it.

use lifeboat_stream::Completed;
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
    /// UID of the receiver that this was found out for. Between two receivers anybody may have written to the volume.
    #[serde(default)]
    pub receiver: Option<String>,
    /// The epoch that the volume had then. A volume of another epoch was used in another role since.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// The volume that the last complete copy in it descends from, where its sender said so.
    #[serde(default)]
    pub lineage: Option<String>,
}

/// Begins the name of a content that nobody can tell.
const UNKNOWN: &str = "unknown-";

impl Staging {
    /// The name of this very copy, for the journal.
    #[must_use]
    pub fn incarnation(&self) -> String {
        format!("copy-{}", self.count)
    }

    /// What an unknown content is called: the sender then compares with what is there.
    #[must_use]
    pub fn unknown(count: u64, receiver: &str) -> Self {
        let base = Some(format!("{UNKNOWN}{count}"));
        Self { count, base, receiver: Some(receiver.to_owned()), epoch: None, lineage: None }
    }

    /// Whether it is known what the volume holds.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.base.as_ref().is_none_or(|base| !base.starts_with(UNKNOWN))
    }
}

/// What is known of all volumes; clones are the same.
#[derive(Clone)]
pub struct Memory {
    folder: PathBuf,
    known: Arc<Mutex<BTreeMap<String, Staging>>>,
    /// What an earlier process received whole and may not have published.
    left: Arc<BTreeMap<String, Completed>>,
}

const FILE: &str = "staging.json";
const JOURNAL: &str = "stream";

impl Memory {
    /// Reads what earlier processes have written. What cannot be read is not known: such a volume is compared as a whole.
    #[must_use]
    pub fn load(folder: PathBuf) -> Self {
        let (mut known, mut left) = (BTreeMap::new(), BTreeMap::new());
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let read = fs::read(entry.path().join(FILE)).ok();
            let staging: Option<Staging> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let (Some(staging), Ok(uid)) = (staging, entry.file_name().into_string()) {
                let journal = Completed::left("", &staging.incarnation(), &entry.path().join(JOURNAL));
                if let Some(completed) = journal.ok().flatten() {
                    left.insert(uid.clone(), completed);
                }
                known.insert(uid, staging);
            }
        }
        Self { folder, known: Arc::new(Mutex::new(known)), left: Arc::new(left) }
    }

    /// Where the stream keeps how far the reception into a volume is.
    #[must_use]
    pub fn journal(&self, uid: &str) -> PathBuf {
        self.folder(uid).join(JOURNAL)
    }

    /// What an earlier process received whole into a volume and may not have published.
    #[must_use]
    pub fn left(&self, uid: &str) -> Option<Completed> {
        self.left.get(uid).cloned()
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
