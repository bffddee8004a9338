//! Locks of a repository, as restic keeps them, so that nobody removes data while somebody else writes.
//!
//! A lock is a sealed file in `locks/`. Whoever reads or writes holds a shared one; whoever removes data holds the only one.
//! A lock that its owner has not renewed for half an hour is dead. The engine itself knows no locks.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::crypto::{Seal, hex, sha256};
use crate::objects::Objects;
use crate::repository::Opened;

/// How a repository is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Beside other readers and writers.
    Shared,
    /// Alone.
    Exclusive,
}

/// A lock file, as restic writes it.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    time: Timestamp,
    exclusive: bool,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    pid: u32,
}

/// restic takes a lock for dead after this time.
const DEAD: SignedDuration = SignedDuration::from_mins(30);
const RENEW: Duration = Duration::from_secs(5 * 60);

/// A lock that is held, and renewed until it is dropped.
pub(crate) struct Lock {
    ends: Option<Sender<()>>,
    renewer: Option<JoinHandle<()>>,
}

impl Lock {
    /// Takes a lock, or says who is in the way.
    pub(crate) fn take(opened: &Opened, mode: Mode) -> Result<Self, Error> {
        let holder = Holder { objects: opened.objects.clone(), seal: opened.seal.clone(), mode };
        holder.look_around(None)?;
        let key = holder.write()?;
        // Both of two that come at once may have seen nobody; now at least one of them sees the other.
        if let Err(error) = holder.look_around(Some(&key)) {
            let _ = holder.objects.delete(&key);
            return Err(error);
        }
        let (ends, ended) = channel();
        let renewer = std::thread::Builder::new()
            .name("repository-lock".into())
            .spawn(move || {
                let mut key = key;
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(RENEW) {
                    // One that cannot be renewed ends the operation long before others take it for dead.
                    match holder.write() {
                        Ok(renewed) => {
                            let old = std::mem::replace(&mut key, renewed);
                            let _ = holder.objects.delete(&old);
                        }
                        Err(error) => {
                            holder.objects.operation.fail(error);
                            break;
                        }
                    }
                }
                holder.release(&key);
            })
            .map_err(|error| Error::Transient(format!("starting a thread: {error}")))?;
        Ok(Self { ends: Some(ends), renewer: Some(renewer) })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(renewer) = self.renewer.take() {
            let _ = renewer.join();
        }
    }
}

struct Holder {
    objects: Objects,
    seal: Seal,
    mode: Mode,
}

impl Holder {
    fn write(&self) -> Result<String, Error> {
        let file = File {
            time: Timestamp::now(),
            exclusive: self.mode == Mode::Exclusive,
            hostname: host(),
            username: "lifeboat".to_owned(),
            pid: std::process::id(),
        };
        let plain = serde_json::to_vec(&file).map_err(|error| Error::Invalid(error.to_string()))?;
        let sealed = self.seal.seal(&plain)?;
        let key = format!("locks/{}", hex(&sha256(&sealed)));
        self.objects.put(&key, &[Bytes::from(sealed)])?;
        Ok(key)
    }

    /// Refuses to go on where somebody else's lock stands against ours; clears dead ones away.
    fn look_around(&self, own: Option<&str>) -> Result<(), Error> {
        for entry in self.objects.list("locks/")? {
            // What has no whole name yet is no lock yet.
            let named =
                entry.key.strip_prefix("locks/").is_some_and(|name| name.parse::<rustic_core::Id>().is_ok());
            if own == Some(entry.key.as_str()) || !named {
                continue;
            }
            let Some(sealed) = self.objects.find(&entry.key)? else { continue };
            let file = self.seal.open(&sealed).and_then(|plain| read(&plain));
            let Some(file) = file else {
                // Half a lock of a store without whole writes, or damage; it says nothing, so it stands in nobody's way but a remover's.
                if self.mode == Mode::Exclusive {
                    return Err(Error::Transient(format!(
                        "{} has a lock that cannot be read",
                        self.objects.name()
                    )));
                }
                continue;
            };
            if Timestamp::now().duration_since(file.time) > DEAD {
                self.objects.delete(&entry.key)?;
            } else if file.exclusive || self.mode == Mode::Exclusive {
                return Err(Error::Transient(format!(
                    "the repository at {} is in use by {} on {:?} (process {}, {}) since {}: wait until that has ended",
                    self.objects.name(),
                    file.username,
                    file.hostname,
                    file.pid,
                    if file.exclusive { "alone" } else { "shared" },
                    file.time,
                )));
            }
        }
        Ok(())
    }

    /// Gives the lock back even where the operation has failed or was stopped.
    fn release(&self, key: &str) {
        let objects = self.objects.apart();
        if let Err(error) = objects.delete(key) {
            tracing::warn!(store = objects.name(), key, %error, "a lock stays until it is dead");
        }
    }
}

fn read(plain: &[u8]) -> Option<File> {
    // 2 says that zstd follows; plain JSON starts with a brace.
    match plain.split_first()? {
        (2, packed) => serde_json::from_slice(&zstd::bulk::decompress(packed, 1 << 16).ok()?).ok(),
        _ => serde_json::from_slice(plain).ok(),
    }
}

/// This machine's name, for people who look at locks.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
