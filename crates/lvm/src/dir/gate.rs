//! The gate between writers of a directory volume and its snapshots.
//!
//! A walk over many files is not one moment. It becomes one if nobody writes meanwhile, so whoever runs the volume's only
//! workload declares that its writes pass the gate: each holds it shared, a snapshot holds it alone. A volume that
//! nobody declared gets a snapshot that is called fuzzy, since silence does not prove that nobody writes.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Passed by every write to a volume; beside the volume's files, so that it moves with them.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Locked shared while a write runs.
    gate: PathBuf,
    /// Passed on the way to the gate. Who takes a snapshot closes it first, so that a stream of writes cannot starve it.
    turnstile: PathBuf,
}

/// A write that is under way.
#[derive(Debug)]
pub struct Writing(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Writers are held until this is dropped.
#[derive(Debug)]
pub struct Closed(#[expect(dead_code, reason = "the locks live as long as the files are open")] [File; 2]);

impl Gate {
    /// The gate of the volume whose files are in `data`, whether declared or not.
    #[must_use]
    pub fn of(data: &Path) -> Self {
        let volume = data.parent().unwrap_or(data);
        Self { gate: volume.join("gate"), turnstile: volume.join("turnstile") }
    }

    /// Promises that from now on every write to the volume passes this gate.
    pub fn declare(&self) -> io::Result<()> {
        for path in [&self.turnstile, &self.gate] {
            OpenOptions::new().create(true).append(true).open(path)?.sync_all()?;
        }
        Ok(())
    }

    /// Takes the promise back: from now on somebody may write past the gate.
    pub fn withdraw(&self) -> io::Result<()> {
        for path in [&self.gate, &self.turnstile] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether somebody promised that all writes pass here.
    #[must_use]
    pub fn is_declared(&self) -> bool {
        self.gate.is_file() && self.turnstile.is_file()
    }

    /// Waits while a snapshot is taken, then holds the next one off until the answer is dropped. Blocks the thread.
    pub fn write(&self) -> io::Result<Writing> {
        let turnstile = File::open(&self.turnstile)?;
        flock(&turnstile, FlockOperation::LockShared)?;
        // Opened anew for each write: a lock belongs to an open file, and two writes must not share one.
        let gate = File::open(&self.gate)?;
        flock(&gate, FlockOperation::LockShared)?;
        Ok(Writing(gate))
    }

    /// Holds new writers and waits until those under way are done; `None` when they are not done within `patience`.
    pub(crate) fn close(&self, patience: Duration) -> io::Result<Option<Closed>> {
        let turnstile = File::open(&self.turnstile)?;
        let gate = File::open(&self.gate)?;
        let step = Duration::from_millis(1);
        let mut waited = Duration::ZERO;
        for file in [&turnstile, &gate] {
            loop {
                match flock(file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => break,
                    Err(Errno::WOULDBLOCK) if waited < patience => {
                        pause(step);
                        waited += step;
                    }
                    Err(Errno::WOULDBLOCK) => return Ok(None),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(Some(Closed([turnstile, gate])))
    }
}

#[expect(clippy::disallowed_methods, reason = "waits for other processes on a thread made for blocking")]
fn pause(step: Duration) {
    std::thread::sleep(step);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> (tempfile::TempDir, Gate) {
        let folder = tempfile::tempdir().unwrap();
        let gate = Gate::of(&folder.path().join("data"));
        (folder, gate)
    }

    #[test]
    fn a_gate_exists_once_it_is_declared() {
        let (_folder, gate) = gate();
        assert!(!gate.is_declared());
        assert!(gate.write().is_err());
        gate.declare().unwrap();
        assert!(gate.is_declared());
        gate.withdraw().unwrap();
        gate.withdraw().unwrap();
        assert!(!gate.is_declared());
    }

    #[test]
    fn writers_share_and_a_snapshot_is_alone() {
        let (_folder, gate) = gate();
        gate.declare().unwrap();
        let (one, two) = (gate.write().unwrap(), gate.write().unwrap());
        assert!(gate.close(Duration::from_millis(2)).unwrap().is_none());
        drop(one);
        assert!(gate.close(Duration::from_millis(2)).unwrap().is_none());
        drop(two);
        let closed = gate.close(Duration::ZERO).unwrap();
        assert!(closed.is_some());
        assert!(gate.close(Duration::ZERO).unwrap().is_none());
        drop(closed);
        gate.write().unwrap();
    }

    #[test]
    fn a_stream_of_writes_does_not_starve_a_snapshot() {
        let (_folder, gate) = gate();
        gate.declare().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        let writing = gate.write().unwrap();
                        std::thread::yield_now();
                        drop(writing);
                    }
                });
            }
            let closed = (0..20).all(|_| gate.close(Duration::from_secs(20)).unwrap().is_some());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(closed);
        });
    }
}
