//! The engine's view of a store: restic's layout of keys.

use bytes::Bytes;
use parking_lot::Mutex;
use rustic_core::{BytesList, FileType, Id, ReadBackend, RusticResult, WriteBackend};

use crate::Error;
use crate::objects::Objects;
use crate::operation::carry;

/// A repository's files in a store, for one operation.
#[derive(Debug)]
pub(crate) struct Backend {
    objects: Objects,
    /// What was written, to be looked for before anything relies on it.
    written: Mutex<Vec<(String, u64)>>,
}

impl Backend {
    pub(crate) fn new(objects: Objects) -> Self {
        Self { objects, written: Mutex::default() }
    }

    /// Makes sure that the store has kept what it took: neither an index nor a snapshot may name what is not there, since later
    /// backups would rely on it.
    fn look_back(&self) -> Result<(), Error> {
        for (key, size) in self.written.lock().drain(..) {
            let found = self.objects.size(&key)?;
            if found != Some(size) {
                return Err(self.objects.operation.fail(Error::Transient(format!(
                    "{} took {key} but does not hold it",
                    self.objects.name()
                ))));
            }
        }
        Ok(())
    }
}

/// The key of a file, as restic lays them out.
pub(crate) fn key(kind: FileType, id: &Id) -> String {
    let id = id.to_hex();
    let id = id.as_str();
    match kind {
        FileType::Config => "config".to_owned(),
        FileType::Pack => format!("data/{}/{id}", &id[..2]),
        kind => format!("{}/{id}", kind.dirname()),
    }
}

impl ReadBackend for Backend {
    fn location(&self) -> String {
        self.objects.name().to_owned()
    }

    fn list_with_size(&self, kind: FileType) -> RusticResult<Vec<(Id, u32)>> {
        let size = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
        if kind == FileType::Config {
            let config = self.objects.find("config").map_err(carry)?;
            return Ok(config.iter().map(|config| (Id::default(), size(config.len() as u64))).collect());
        }
        let entries = self.objects.list(&format!("{}/", kind.dirname())).map_err(carry)?;
        let named = |key: &str| key.rsplit('/').next().and_then(|name| name.parse().ok());
        // Whatever else lies there is not ours.
        Ok(entries.iter().filter_map(|entry| Some((named(&entry.key)?, size(entry.size)))).collect())
    }

    fn read_full(&self, kind: FileType, id: &Id) -> RusticResult<Bytes> {
        self.objects.get(&key(kind, id)).map_err(carry)
    }

    fn read_partial(
        &self,
        kind: FileType,
        id: &Id,
        _: bool,
        offset: u32,
        length: u32,
    ) -> RusticResult<Bytes> {
        self.objects.get_range(&key(kind, id), offset.into(), length as usize).map_err(carry)
    }

    fn warmup_path(&self, kind: FileType, id: &Id) -> String {
        key(kind, id)
    }
}

impl WriteBackend for Backend {
    fn write_bytes(&self, kind: FileType, id: &Id, _: bool, content: BytesList) -> RusticResult<()> {
        if kind == FileType::Config {
            // Two writers may make the repository at once; the second has to find that it is not the first.
            let content = Bytes::from(content.slice().concat());
            return match self.objects.put_if_absent("config", content).map_err(carry)? {
                true => Ok(()),
                false => Err(carry(Error::Transient(format!(
                    "somebody else made the repository at {} at the same time",
                    self.objects.name()
                )))),
            };
        }
        let key = key(kind, id);
        if matches!(kind, FileType::Index | FileType::Snapshot) {
            self.look_back().map_err(carry)?;
        }
        self.objects.put(&key, content.slice()).map_err(carry)?;
        self.written.lock().push((key, content.size() as u64));
        Ok(())
    }

    fn remove(&self, kind: FileType, id: &Id, _: bool) -> RusticResult<()> {
        self.objects.delete(&key(kind, id)).map_err(carry)
    }
}
