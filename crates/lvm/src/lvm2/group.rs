//! One volume group: changes one after the other, reads from a report that is fetched once for all who ask.

use super::command::Common;
use super::host::{self, HostLock};
use super::report::{Report, read_errors, read_report};
use super::run::{Output, Patience, Run, unasked};
use crate::{Change, Error};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex as Turn, watch};
use tokio::time::Instant;

/// How the group is asked.
#[derive(Clone, Debug)]
pub struct Pace {
    /// How old a report may be; our own changes make a new one necessary at once.
    pub report_age: Duration,
    /// How long a report may take.
    pub report_deadline: Duration,
    /// After this long a change that still runs is told of; it is never stopped.
    pub wedged_after: Duration,
    /// Folder for the locks that all processes of this machine share; none where this is the only process.
    pub locks: Option<PathBuf>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            report_age: Duration::from_secs(10),
            report_deadline: Duration::from_secs(60),
            wedged_after: Duration::from_secs(120),
            locks: None,
        }
    }
}

/// Counts groups of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

pub(super) struct Group {
    pub(super) name: String,
    pub(super) run: Arc<dyn Run>,
    pub(super) common: Common,
    pub(super) pace: Pace,
    changes: watch::Sender<Change>,
    /// Held by the one change that runs.
    turn: Arc<Turn<()>>,
    /// Held while a report is fetched, so that all who ask meanwhile get the same one.
    cached: Turn<Option<Cached>>,
    /// Counts our own changes: a report from before the last one is not kept.
    writes: AtomicU64,
    /// The command that runs, and since when.
    running: Mutex<Option<(String, Instant)>>,
    /// Bytes promised to volumes that wait for their turn or are being made.
    reserved: AtomicU64,
    /// Names of volumes that this process is wiping or about to wipe.
    hidden: Mutex<BTreeSet<String>>,
    /// Tells this group of this process apart from every other.
    us: String,
}

struct Cached {
    report: Arc<Report>,
    at: Instant,
    writes: u64,
}

impl Group {
    pub(super) fn new(
        name: String,
        run: Arc<dyn Run>,
        common: Common,
        pace: Pace,
        changes: watch::Sender<Change>,
    ) -> Self {
        let us = format!("{} {}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        Self {
            us,
            name,
            run,
            common,
            pace,
            changes,
            turn: Arc::default(),
            cached: Turn::default(),
            writes: AtomicU64::new(0),
            running: Mutex::default(),
            reserved: AtomicU64::new(0),
            hidden: Mutex::default(),
        }
    }

    /// A report no older than the pace allows and not from before our last change.
    pub(super) async fn report(&self) -> Result<Arc<Report>, Error> {
        let mut cached = self.cached.lock().await;
        let writes = self.writes.load(Ordering::SeqCst);
        if let Some(kept) = cached.as_ref()
            && kept.writes == writes
            && kept.at.elapsed() < self.pace.report_age
        {
            return Ok(kept.report.clone());
        }
        let report = Arc::new(self.fetch().await?);
        let differs = cached.as_ref().is_some_and(|kept| kept.report != report);
        *cached = Some(Cached { report: report.clone(), at: Instant::now(), writes });
        drop(cached);
        if differs {
            // We, or somebody else, changed the group, or a pool filled up further.
            self.changes.send_modify(|change| *change += 1);
        }
        Ok(report)
    }

    /// A report of now.
    pub(super) async fn fresh(&self) -> Result<Arc<Report>, Error> {
        self.forget();
        self.report().await
    }

    async fn fetch(&self) -> Result<Report, Error> {
        let patience = Patience::Until(self.pace.report_deadline);
        let output =
            self.run.lvm(&self.common.report(&self.name), patience).await.map_err(|error| unasked(&error))?;
        // A failure with a report of the group is a failure about something else: LVM reports all it can.
        match read_report(&output.stdout, &self.name) {
            Ok(Some(report)) => Ok(report),
            Ok(None) => Err(self.missing(&output)),
            Err(error) => {
                Err(Error::Transient(format!("the report of volume group {:?}: {error}", self.name)))
            }
        }
    }

    fn missing(&self, output: &Output) -> Error {
        let said = read_errors(&output.stdout, &output.stderr).join("; ");
        Error::Transient(format!(
            "volume group {:?} is not there (lvm exit code {}: {said}): create it, bring its disks back, or correct lvmd's configuration",
            self.name, output.code
        ))
    }

    /// Waits for the changes before, then runs `work` to its end, whether or not the caller still waits.
    pub(super) async fn change<T, F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let turn = self.turn.clone().lock_owned().await;
        let group = self.clone();
        let work = async move {
            let done = match group.alone().await {
                Ok(host) => {
                    let done = work(group.clone()).await;
                    drop(host);
                    done
                }
                Err(error) => Err(error),
            };
            group.changes.send_modify(|change| *change += 1);
            drop(turn);
            done
        };
        self.detached(work).await
    }

    /// Waits until no other process of this machine changes the group. What one of them may have changed is asked for anew.
    async fn alone(&self) -> Result<Option<HostLock>, Error> {
        let Some(folder) = &self.pace.locks else { return Ok(None) };
        let path = host::path(folder, &self.name, &*self.report().await?);
        let (shown, us) = (path.display().to_string(), self.us.clone());
        let taken = tokio::task::spawn_blocking(move || host::take(&path, &us)).await;
        let taken = taken.map_err(std::io::Error::other).flatten();
        let lock = taken.map_err(|error| {
            Error::Transient(format!(
                "the lock {shown} of volume group {:?} cannot be taken: {error}; make its folder writable",
                self.name
            ))
        })?;
        if lock.was_away {
            self.forget();
        }
        Ok(Some(lock))
    }

    /// Runs something to its end, whether or not the caller still waits.
    #[expect(clippy::disallowed_methods, reason = "a change must outlive a caller who goes away half-way")]
    pub(super) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        tokio::spawn(work).await.unwrap_or_else(|error| {
            Err(Error::Transient(format!("a change to volume group {:?} stopped: {error}", self.name)))
        })
    }

    /// Starts something that nobody waits for; a failure is told in the log.
    #[expect(clippy::disallowed_methods, reason = "a change must outlive whoever started it")]
    pub(super) fn go_on(&self, work: impl Future<Output = Result<(), Error>> + Send + 'static) {
        let group = self.name.clone();
        tokio::spawn(async move {
            if let Err(error) = work.await {
                tracing::warn!(group, %error, "finishing what was left over");
            }
        });
    }

    /// Runs one changing command; only from within [`Self::change`].
    pub(super) async fn mutate(&self, arguments: Vec<String>) -> Result<Output, Error> {
        let what = arguments.first().cloned().unwrap_or_default();
        *self.running.lock() = Some((what, Instant::now()));
        let output = self.run.lvm(&arguments, Patience::Endless).await;
        *self.running.lock() = None;
        self.forget();
        output.map_err(|error| unasked(&error))
    }

    fn forget(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
    }

    /// The change that has been running for too long, if one has.
    pub(super) fn wedged(&self) -> Option<(String, Duration)> {
        let running = self.running.lock();
        let (what, since) = running.as_ref()?;
        let elapsed = since.elapsed();
        (elapsed >= self.pace.wedged_after).then(|| (what.clone(), elapsed))
    }

    /// Takes bytes off what others see until the answer is dropped.
    pub(super) fn reserve(self: &Arc<Self>, bytes: u64) -> Reserved {
        self.reserved.fetch_add(bytes, Ordering::SeqCst);
        Reserved { group: self.clone(), bytes }
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::SeqCst)
    }

    /// Marks a hidden volume as this process's own work, so that recovery leaves it alone.
    pub(super) fn hide(self: &Arc<Self>, name: &str) -> Option<Hidden> {
        let taken = self.hidden.lock().insert(name.to_owned());
        taken.then(|| Hidden { group: self.clone(), name: name.to_owned() })
    }
}

impl Group {
    /// Whether this process works on a hidden volume.
    pub(super) fn hides(&self, name: &str) -> bool {
        self.hidden.lock().contains(name)
    }
}

/// A hidden volume that this process works on.
pub(super) struct Hidden {
    group: Arc<Group>,
    pub(super) name: String,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.group.hidden.lock().remove(&self.name);
    }
}

/// Bytes that nobody else may count on.
pub(super) struct Reserved {
    group: Arc<Group>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.group.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}
