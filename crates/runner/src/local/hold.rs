//! Keeps a process still while a snapshot of its volume is taken, so that the snapshot is one moment though the process knows nothing of it.
//!
//! The runner passes the volume's gate for the process and stays in it. A snapshot closes the turnstile and waits for the gate; a second
//! pass, tried now and then, gets stuck at that turnstile. Then the process is stopped, the gate is left, and when the second pass gets through,
//! the snapshot is taken and the process goes on.

use lifeboat_lvm::{Gate, Writing};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How often it is tried whether a snapshot waits.
const EVERY: Duration = Duration::from_millis(25);
/// A pass that takes longer than this is stuck.
const STUCK: Duration = Duration::from_millis(10);
/// How long a process may take to come to a stop.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// A gate that is passed for a process.
pub(super) struct Held {
    gate: Gate,
    writing: Writing,
}

/// Passes the gates of these volumes; waits while a snapshot of one is taken.
pub(super) fn pass(folders: &[PathBuf]) -> io::Result<Vec<Held>> {
    let mut held = Vec::new();
    for folder in folders {
        let gate = Gate::of(folder);
        gate.declare()?;
        let writing = gate.write()?;
        held.push(Held { gate, writing });
    }
    Ok(held)
}

/// Guards each gate on a thread until the process has ended.
pub(super) fn guard(held: Vec<Held>, process: u32, alive: &Arc<AtomicBool>) {
    for held in held {
        let alive = alive.clone();
        let guard = move || watch(held, process, &alive);
        #[expect(clippy::disallowed_methods, reason = "file locks are waited for by blocking")]
        std::thread::spawn(guard);
    }
}

fn watch(held: Held, process: u32, alive: &AtomicBool) {
    let Held { gate, writing } = held;
    let mut writing = Some(writing);
    let (ask, asked) = sync_channel::<()>(1);
    let (passed, passes) = sync_channel::<io::Result<Writing>>(1);
    let knock = move || knocks(&gate, &asked, &passed);
    #[expect(clippy::disallowed_methods, reason = "file locks are waited for by blocking")]
    std::thread::spawn(knock);
    while alive.load(Ordering::Relaxed) {
        match try_pass(&ask, &passes) {
            Knock::Open => pause(EVERY),
            Knock::Stuck => {
                if stop(process, alive) {
                    drop(writing.take());
                } else {
                    // It may still write: the gate is not left, and the snapshot, when it goes on, calls itself fuzzy.
                    tracing::warn!(process, "a process does not stop for a snapshot");
                }
                match passes.recv() {
                    Ok(Ok(next)) => writing = Some(next),
                    _ => return tell(process, Signal::CONT),
                }
                tell(process, Signal::CONT);
            }
            Knock::Gone => break,
        }
    }
    drop(writing);
}

enum Knock {
    Open,
    Stuck,
    Gone,
}

fn try_pass(ask: &SyncSender<()>, passes: &Receiver<io::Result<Writing>>) -> Knock {
    if ask.send(()).is_err() {
        return Knock::Gone;
    }
    match passes.recv_timeout(STUCK) {
        Ok(Ok(_)) => Knock::Open,
        Err(RecvTimeoutError::Timeout) => Knock::Stuck,
        // The volume is gone from under the process, or the other thread is.
        Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Knock::Gone,
    }
}

fn knocks(gate: &Gate, asked: &Receiver<()>, passed: &SyncSender<io::Result<Writing>>) {
    while asked.recv().is_ok() {
        if passed.send(gate.write()).is_err() {
            return;
        }
    }
}

/// Stops a process and returns when none of its threads runs any more.
fn stop(process: u32, alive: &AtomicBool) -> bool {
    tell(process, Signal::STOP);
    let step = Duration::from_micros(200);
    let mut waited = Duration::ZERO;
    while alive.load(Ordering::Relaxed) && !is_still(process) {
        if waited >= STOPS_WITHIN {
            return false;
        }
        pause(step);
        waited += step;
    }
    true
}

/// Whether no thread of a process runs.
fn is_still(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name, which is in brackets and may have any.
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
        matches!(state, None | Some('T' | 't' | 'Z' | 'X'))
    })
}

fn tell(process: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // One that is gone needs nothing to be told.
        let _ = kill_process_group(pid, signal);
    }
}

#[expect(clippy::disallowed_methods, reason = "on a thread made for blocking")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
