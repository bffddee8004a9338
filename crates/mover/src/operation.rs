//! One running operation: whether it was asked to stop, what went wrong first, and how far it is.
//!
//! The engine below works in threads and knows no cancellation; it also carries on after a file that it could not read. So every
//! reader and every access to the store asks here first, and nothing is published after a fault.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustic_core::{ErrorKind, RusticError};
use tokio::sync::watch;

use crate::{Error, Progress};

/// What the threads of one operation share.
#[derive(Debug, Default)]
pub(crate) struct Operation {
    stopped: AtomicBool,
    fault: Mutex<Option<Error>>,
    bytes_total: AtomicU64,
    bytes_done: AtomicU64,
    files_total: AtomicU64,
    files_done: AtomicU64,
    told: Option<watch::Sender<Progress>>,
}

impl Operation {
    /// An operation that nobody watches.
    pub(crate) fn silent() -> Arc<Self> {
        Arc::default()
    }

    /// An operation that reports how far it is.
    pub(crate) fn watched(told: watch::Sender<Progress>) -> Arc<Self> {
        Arc::new(Self { told: Some(told), ..Self::default() })
    }

    /// Asks every thread to stop at its next step.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Keeps the first fault: the ones after it mostly follow from it.
    pub(crate) fn fail(&self, error: Error) -> Error {
        self.fault.lock().get_or_insert(error).clone()
    }

    /// Whether to go on.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(fault) = &*self.fault.lock() {
            return Err(fault.clone());
        }
        if self.stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// What an error of the engine means: the fault that led to it where there is one, damage where there is none.
    pub(crate) fn explain(&self, doing: &str, error: &RusticError) -> Error {
        match self.check() {
            Err(fault) => fault,
            Ok(()) => Error::Damaged(format!("{doing}: {}", one_line(error))),
        }
    }

    /// Sets what is to be done.
    pub(crate) fn expect(&self, bytes: u64, files: u64) {
        self.bytes_total.store(bytes, Ordering::Relaxed);
        self.files_total.store(files, Ordering::Relaxed);
        self.tell();
    }

    /// Counts bytes that were handled.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
        self.tell();
    }

    /// Counts files that were handled.
    pub(crate) fn advance_files(&self, files: u64) {
        self.files_done.fetch_add(files, Ordering::Relaxed);
    }

    /// How far it is. Totals that were guessed too low follow what was done.
    pub(crate) fn progress(&self) -> Progress {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (bytes_done, files_done) = (read(&self.bytes_done), read(&self.files_done));
        Progress {
            bytes_total: read(&self.bytes_total).max(bytes_done),
            bytes_done,
            files_total: read(&self.files_total).max(files_done),
            files_done,
        }
    }

    pub(crate) fn tell(&self) {
        if let Some(told) = &self.told {
            let progress = self.progress();
            told.send_if_modified(|last| {
                let changed = *last != progress;
                *last = progress;
                changed
            });
        }
    }
}

/// Stops an operation when its future is dropped.
pub(crate) struct StopOnDrop(pub(crate) Arc<Operation>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// An error of the engine in one line, without its advice to its own users.
pub(crate) fn one_line(error: &RusticError) -> String {
    let text = error.display_log();
    let text = text.strip_prefix("Error: ").unwrap_or(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Carries one of our errors through the engine.
pub(crate) fn carry(error: Error) -> Box<RusticError> {
    RusticError::with_source(ErrorKind::Backend, error.to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_told_and_stays() {
        let operation = Operation::silent();
        assert_eq!(operation.check(), Ok(()));
        operation.stop();
        assert_eq!(operation.check(), Err(Error::Stopped));
        operation.fail(Error::NoRoom("first".into()));
        operation.fail(Error::Damaged("second".into()));
        assert_eq!(operation.check(), Err(Error::NoRoom("first".into())));
        assert_eq!(operation.explain("x", &carry(Error::Stopped)), Error::NoRoom("first".into()));
    }

    #[test]
    fn totals_never_stay_behind_what_was_done() {
        let (told, heard) = watch::channel(Progress::default());
        let operation = Operation::watched(told);
        operation.expect(10, 1);
        operation.advance_files(2);
        operation.advance(25);
        assert_eq!(
            *heard.borrow(),
            Progress { bytes_total: 25, bytes_done: 25, files_total: 2, files_done: 2 }
        );
    }
}
