//! Processes that an earlier runner left: found by the variable that every one of them carries, which nobody can forget to write down.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(2);
const STEPS: u32 = 2_500;

/// Kills every process that has `variable=value` in its environment, and returns when they are gone.
pub(super) fn kill(variable: &str, value: &str) -> io::Result<()> {
    let mark = format!("{variable}={value}");
    for _ in 0..STEPS {
        let mut found = 0;
        for pid in marked(&mark)? {
            found += 1;
            // A handle first, then a second look: the number may be another's by now.
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            if !carries(pid, &mark) {
                continue;
            }
            match pidfd_send_signal(&handle, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if found == 0 {
            return Ok(());
        }
        pause();
    }
    let pids: Vec<String> = marked(&mark)?.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
    let pids = pids.join(", ");
    Err(io::Error::other(format!(
        "processes {pids} of an earlier run do not end; end them by hand, then start again"
    )))
}

fn marked(mark: &str) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Ok(entry) = entry else { continue };
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        found.extend(pid.filter(|pid| carries(*pid, mark)));
    }
    Ok(found)
}

/// What is not ours cannot be read, and what has ended has no environment any more.
fn carries(pid: Pid, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

#[expect(
    clippy::disallowed_methods,
    reason = "before anything else runs, and for processes that are no children"
)]
fn pause() {
    std::thread::sleep(STEP);
}
