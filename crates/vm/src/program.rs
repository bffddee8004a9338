//! Programs in the machine: run to their end, or watched while they run.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Error;
use crate::link::{Conversation, tail};
use crate::wire::{Answer, Request};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What a program left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The program with its arguments.
    pub program: String,
    /// How it ended.
    pub status: Status,
    /// All that it wrote to standard output.
    pub stdout: String,
    /// All that it wrote to standard error.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with code 0.
    pub fn success(&self) -> bool {
        self.status == Status::Code(0)
    }

    /// What it wrote to standard output, if it succeeded.
    ///
    /// # Errors
    /// [`Error::Failed`] with everything that it wrote.
    pub fn ok(self) -> Result<String, Error> {
        if self.success() {
            return Ok(self.stdout);
        }
        let Self { program, status, stdout, stderr } = self;
        Err(Error::Failed { program, output: format!("{status}\n{stdout}{stderr}") })
    }
}

/// A program that runs in the machine; dropping it kills it with everything in its process group.
#[derive(Debug)]
pub struct Running {
    conversation: Conversation,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// How far [`Running::line_with`] has looked, in both outputs.
    looked: [usize; 2],
    status: Option<Status>,
    closed: bool,
}

impl Running {
    pub(crate) fn new(conversation: Conversation) -> Self {
        let (stdout, stderr) = (Vec::new(), Vec::new());
        Self { conversation, stdout, stderr, looked: [0; 2], status: None, closed: false }
    }

    /// Waits until it has ended and nobody can write to its outputs any more.
    ///
    /// # Errors
    /// [`Error::Deadline`] with what it wrote so far; then it is killed with its process group.
    pub fn wait(mut self, deadline: Duration) -> Result<Output, Error> {
        let until = Instant::now() + deadline;
        while !self.closed {
            if !self.hear(until)? {
                let ended = self.status.map(|status| {
                    format!("\nit ended with {status}, but a process that it started holds its outputs open")
                });
                return Err(self.late(deadline, &ended.unwrap_or_default()));
            }
        }
        self.output()
    }

    /// Waits until it has ended, even where processes that it started live on.
    ///
    /// # Errors
    /// [`Error::Deadline`] with what it wrote so far.
    pub fn wait_for_end(&mut self, deadline: Duration) -> Result<Status, Error> {
        let until = Instant::now() + deadline;
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            if !self.hear(until)? {
                return Err(self.late(deadline, ""));
            }
        }
    }

    /// Waits for a line with `text` in it, in either output, behind the last that was found there.
    ///
    /// # Errors
    /// [`Error::Deadline`] when none comes in time; [`Error::Failed`] when the program ends without one.
    pub fn line_with(&mut self, text: &str, deadline: Duration) -> Result<String, Error> {
        let until = Instant::now() + deadline;
        loop {
            if let Some(line) = self.look_for(text) {
                return Ok(line);
            }
            if self.closed {
                let output = format!("it ended without a line with {text:?}");
                let status = self.status.map_or(String::new(), |status| format!(" ({status})"));
                let output = format!("{output}{status}\n{}", self.last_words());
                return Err(Error::Failed { program: self.conversation.doing.clone(), output });
            }
            if !self.hear(until)? {
                return Err(self.late(deadline, &format!("\nno line with {text:?} among them")));
            }
        }
    }

    /// Kills it with SIGKILL, and nothing that it started: what a crash of this one process is like.
    ///
    /// # Errors
    /// When the machine has ended.
    pub fn kill(&self) -> Result<(), Error> {
        self.send(&Request::Kill { id: self.conversation.id })
    }

    /// Kills it with SIGKILL together with everything in its process group.
    ///
    /// # Errors
    /// When the machine has ended.
    pub fn kill_group(&self) -> Result<(), Error> {
        self.send(&Request::KillGroup { id: self.conversation.id })
    }

    fn send(&self, request: &Request) -> Result<(), Error> {
        let link = &self.conversation.link;
        link.send(request).map_err(|_| link.ended(&self.conversation.doing))
    }

    /// Takes one answer; whether there was one.
    fn hear(&mut self, until: Instant) -> Result<bool, Error> {
        match self.conversation.next(until)? {
            None => return Ok(false),
            Some(Answer::Stdout { bytes, .. }) => self.stdout.extend(bytes),
            Some(Answer::Stderr { bytes, .. }) => self.stderr.extend(bytes),
            Some(Answer::Exited { code, .. }) => self.status = Some(Status::Code(code)),
            Some(Answer::Killed { signal, .. }) => self.status = Some(Status::Signal(signal)),
            Some(Answer::Closed { .. }) => self.closed = true,
            Some(_) => {}
        }
        Ok(true)
    }

    fn output(&self) -> Result<Output, Error> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let status = self.status.ok_or_else(|| self.conversation.link.ended(&self.conversation.doing))?;
        Ok(Output {
            program: self.conversation.doing.clone(),
            status,
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
        })
    }

    fn look_for(&mut self, text: &str) -> Option<String> {
        for (bytes, looked) in [&self.stdout, &self.stderr].into_iter().zip(&mut self.looked) {
            let mut at = *looked;
            while let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&bytes[at..at + end]).into_owned();
                at += end + 1;
                if line.contains(text) {
                    // Only where it was found: lines of the other output may still be asked for.
                    *looked = at;
                    return Some(line);
                }
            }
        }
        None
    }

    fn last_words(&self) -> String {
        format!("{}\n{}", tail(&self.stdout, 60), tail(&self.stderr, 60))
    }

    fn late(&self, after: Duration, remark: &str) -> Error {
        self.conversation.late(after, self.last_words() + remark)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.closed {
            // Fails only where the machine has ended, and the program with it.
            let _ = self.kill_group();
        }
    }
}
