//! What a receiver remembers of a destination: how far a sync has come, and the highest epoch.
//!
//! Each is one small file, replaced as a whole and on the disk before anybody is told. The epoch has a file of its own, because it outlives every
//! sync and must never be lost with one.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::errno;
use crate::wire::record::{More, Record, decode, encode};

/// How far a sync has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// The staging volume that it is applied to.
    pub(crate) incarnation: String,
    pub(crate) base: Option<String>,
    pub(crate) generation: String,
    pub(crate) epoch: u64,
    pub(crate) records: u64,
    pub(crate) digest: [u8; 32],
    /// What was open.
    pub(crate) open: Option<Record>,
    /// Set when what is there is known to be wrong.
    pub(crate) damaged: bool,
    /// Set once all of it was applied, verified and synced.
    pub(crate) complete: Option<Complete>,
    /// What the sender said besides; it stands behind the rest, and an older process wrote none.
    #[serde(skip)]
    pub(crate) more: More,
}

/// A sync that came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Complete {
    pub(crate) token: Option<String>,
    pub(crate) cut: (i64, i32),
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    pub(crate) skipped: u64,
    pub(crate) verified: bool,
}

const JOURNAL: &str = "journal";
const EPOCH: &str = "epoch";

impl Journal {
    /// Reads the journal of a destination.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let damaged = || Error::Damaged(format!("{} is not what was written there", folder.display()));
        let Some(content) = content(folder, JOURNAL)? else { return Ok(None) };
        let (mut journal, rest) = decode::<Self>(&content).map_err(|_| damaged())?;
        if !rest.is_empty() {
            journal.more = decode(rest).map_err(|_| damaged())?.0;
        }
        Ok(Some(journal))
    }

    /// Writes it.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut content = Vec::new();
        encode(self, &mut content)?;
        encode(&self.more, &mut content)?;
        write(folder, JOURNAL, &content)
    }
}

/// The highest epoch that a destination has seen.
pub(crate) fn epoch(folder: &Path) -> Result<u64, Error> {
    Ok(read(folder, EPOCH)?.unwrap_or(0))
}

/// Notes an epoch, if it is higher than those before.
pub(crate) fn raise_epoch(folder: &Path, to: u64) -> Result<(), Error> {
    if epoch(folder)? >= to {
        return Ok(());
    }
    let mut content = Vec::new();
    encode(&to, &mut content)?;
    write(folder, EPOCH, &content)
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, Error> {
    let damaged =
        |_| Error::Damaged(format!("{} is not what was written there", folder.join(name).display()));
    let Some(content) = content(folder, name)? else { return Ok(None) };
    Ok(Some(decode(&content).map_err(damaged)?.0))
}

fn content(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = folder.join(name);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(|error| Error::target("reading", &path, errno(&error)))?,
    };
    let damaged = || Error::Damaged(format!("{} is not what was written there", path.display()));
    let (digest, content) = bytes.split_at_checked(32).ok_or_else(damaged)?;
    if blake3::hash(content).as_bytes() != digest {
        return Err(damaged());
    }
    Ok(Some(content.to_vec()))
}

fn write(folder: &Path, name: &str, content: &[u8]) -> Result<(), Error> {
    let path = folder.join(name);
    let fault = |error: std::io::Error| Error::target("writing", &path, errno(&error));
    let next = folder.join(format!("{name}.next"));
    let mut file = File::create(&next).map_err(fault)?;
    file.write_all(blake3::hash(content).as_bytes()).map_err(fault)?;
    file.write_all(content).map_err(fault)?;
    file.sync_all().map_err(fault)?;
    std::fs::rename(&next, &path).map_err(fault)?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_only_grows_and_damage_is_no_zero() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(epoch(folder.path()).unwrap(), 0);
        raise_epoch(folder.path(), 7).unwrap();
        raise_epoch(folder.path(), 3).unwrap();
        assert_eq!(epoch(folder.path()).unwrap(), 7);
        let path = folder.path().join(EPOCH);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(epoch(folder.path()).is_err());
    }
}
