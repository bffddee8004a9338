//! Child processes that never outlive this one.
//!
//! A child is ended when its handle is dropped. Where that does not happen (a test binary exits with the handle in a
//! `static`, or is killed), the kernel ends the child: it is started through `setpriv --pdeathsig`. That signal is tied
//! to the thread that started the child, so one thread starts all children and lives as long as the process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// A running program whose output goes to a file.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; standard output and error go to `log`.
    ///
    /// # Errors
    /// What the system answers when the log cannot be made or the program not be started.
    pub fn start(program: &Path, args: &[String], log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        let mut command = tied_to_this_process(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .env("GOTRACEBACK", "single");
        Ok(Self { child: on_the_lasting_thread(command)?, log: log.to_owned() })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself; whether it succeeded.
    ///
    /// # Errors
    /// What the system answers when it cannot be waited for.
    pub fn wait(&mut self) -> io::Result<bool> {
        Ok(self.child.wait()?.success())
    }

    /// The last lines of the program's output, for error messages.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The data folder is thrown away with the process, so there is nothing for it to finish.
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tied_to_this_process(program: &Path) -> Command {
    static SETPRIV: OnceLock<bool> = OnceLock::new();
    let available = *SETPRIV.get_or_init(|| {
        let help = Command::new("setpriv").arg("--help").stdin(Stdio::null()).output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--pdeathsig"))
    });
    if available {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

type Request = (Command, Sender<io::Result<Child>>);

fn on_the_lasting_thread(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Request>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (requests, inbox) = channel::<Request>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                // The asker waits for the answer, so it cannot be gone.
                let _ = answer.send(command.spawn());
            }
        });
        requests
    });
    let (answer, started) = channel();
    starter.send((command, answer)).map_err(io::Error::other)?;
    started.recv().map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn dropping_the_handle_ends_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let args = ["600".to_owned()];
        let mut process = Process::start(Path::new("sleep"), &args, &folder.path().join("log")).unwrap();
        let pid = process.pid();
        assert!(!process.has_exited());
        assert!(alive(pid));
        drop(process);
        assert!(!alive(pid));
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut process =
            thread::spawn(move || Process::start(Path::new("sleep"), &["600".to_owned()], &log).unwrap())
                .join()
                .unwrap();
        assert!(!process.has_exited());
    }

    #[test]
    fn the_log_tail_tells_why_a_program_ended() {
        let folder = tempfile::tempdir().unwrap();
        let args = ["-c".to_owned(), "echo first; echo why >&2; exit 3".to_owned()];
        let mut process = Process::start(Path::new("sh"), &args, &folder.path().join("log")).unwrap();
        assert!(!process.wait().unwrap());
        assert!(process.has_exited());
        assert_eq!(process.log_tail(), "first\nwhy");
    }
}
