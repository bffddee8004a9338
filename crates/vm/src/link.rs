//! The host's end of the port: sends requests and hands every answer to the conversation that it belongs to.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::wire::{Answer, Request};

/// A machine that hangs stops reading; then sending must not hang as well.
const SENDING: Duration = Duration::from_secs(60);

/// Lines of the kernel's log in an error: enough for a panic with its trace.
pub(crate) const LAST_WORDS: usize = 80;

/// The connection to the agent of one boot.
#[derive(Debug)]
pub(crate) struct Link {
    port: Mutex<UnixStream>,
    open: Arc<Mutex<Open>>,
    console: PathBuf,
}

#[derive(Debug, Default)]
struct Open {
    conversations: BTreeMap<u32, Sender<Answer>>,
    last: u32,
    ended: bool,
}

/// One exchange with the agent.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) link: Arc<Link>,
    pub(crate) id: u32,
    /// What is being done, for errors.
    pub(crate) doing: String,
    answers: Receiver<Answer>,
}

impl Link {
    /// Takes over the connection; the second part gets the agent's first word.
    pub(crate) fn over(port: UnixStream, console: &Path) -> std::io::Result<(Arc<Self>, Conversation)> {
        port.set_write_timeout(Some(SENDING))?;
        let mut incoming = BufReader::new(port.try_clone()?);
        let open = Arc::new(Mutex::new(Open::default()));
        let (greeting, answers) = channel();
        lock(&open).conversations.insert(0, greeting);
        let dispatched = Arc::clone(&open);
        thread::spawn(move || {
            while let Ok(answer) = Answer::receive(&mut incoming) {
                let sender = lock(&dispatched).conversations.get(&answer.id()).cloned();
                // Nobody listens any more where the deadline was over.
                let _ = sender.map(|sender| sender.send(answer));
            }
            let mut open = lock(&dispatched);
            open.ended = true;
            open.conversations.clear();
        });
        let link = Arc::new(Self { port: Mutex::new(port), open, console: console.to_owned() });
        let doing = "starting".to_owned();
        Ok((Arc::clone(&link), Conversation { link, id: 0, doing, answers }))
    }

    /// Opens a conversation with the request that `request` makes for its number.
    pub(crate) fn ask(
        self: &Arc<Self>,
        doing: String,
        request: impl FnOnce(u32) -> Request,
    ) -> Result<Conversation, Error> {
        let (sender, answers) = channel();
        let id = {
            let mut open = lock(&self.open);
            if open.ended {
                return Err(self.ended(&doing));
            }
            open.last += 1;
            let id = open.last;
            open.conversations.insert(id, sender);
            id
        };
        let conversation = Conversation { link: Arc::clone(self), id, doing, answers };
        self.send(&request(id)).map_err(|_| self.ended(&conversation.doing))?;
        Ok(conversation)
    }

    pub(crate) fn send(&self, request: &Request) -> std::io::Result<()> {
        request.send(&mut *lock(&self.port))
    }

    pub(crate) fn ended(&self, doing: &str) -> Error {
        Error::Ended { doing: doing.to_owned(), log: self.log_tail() }
    }

    /// The end of the kernel's log.
    pub(crate) fn log_tail(&self) -> String {
        tail(&std::fs::read(&self.console).unwrap_or_default(), LAST_WORDS)
    }
}

impl Conversation {
    /// The next answer; `None` when there is none until then.
    pub(crate) fn next(&self, until: Instant) -> Result<Option<Answer>, Error> {
        match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Answer::Failed { why, .. }) => Err(Error::Refused { why }),
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.link.ended(&self.doing)),
        }
    }

    /// The answer that ends the conversation.
    pub(crate) fn only(&self, deadline: Duration) -> Result<Answer, Error> {
        self.next(Instant::now() + deadline)?.ok_or_else(|| self.late(deadline, String::new()))
    }

    pub(crate) fn late(&self, after: Duration, output: String) -> Error {
        Error::Deadline { doing: self.doing.clone(), after, output, log: self.link.log_tail() }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        lock(&self.link.open).conversations.remove(&self.id);
    }
}

/// The last lines of a text.
pub(crate) fn tail(bytes: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
