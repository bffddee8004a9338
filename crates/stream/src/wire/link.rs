//! Sealed frames over a socket: bounded, paced, and never silent for long.
//!
//! A frame is two bytes of length and one Noise message. Both halves block; who gives up closes the socket, and both wake up. Each
//! side says something at least every [`Timing::keepalive`], so that silence for [`Timing::silence`] means a dead link.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use snow::StatelessTransportState;

use super::pace::Pace;
use crate::Error;

/// Longest Noise message.
const LONGEST: usize = 65_535;
/// Its tag.
const TAG: usize = 16;
/// Bytes that a frame carries at most.
pub(crate) const ROOM: usize = LONGEST - TAG;

/// How long a link may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A side that has nothing to say says so this often.
    pub keepalive: Duration,
    /// A peer that says nothing for this long is gone.
    pub silence: Duration,
    /// The handshake takes no longer than this, connecting included.
    pub handshake: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            keepalive: Duration::from_secs(5),
            silence: Duration::from_secs(30),
            handshake: Duration::from_secs(10),
        }
    }
}

/// What both halves and whoever may stop them share.
#[derive(Debug)]
pub(crate) struct Shared {
    socket: TcpStream,
    started: Instant,
    /// Milliseconds after the start at which the peer was last heard.
    heard: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    stopped: AtomicBool,
}

impl Shared {
    /// Ends both halves, from any thread.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // It fails only if the peer was faster.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Fails once somebody has stopped the link.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.stopped.load(Ordering::Acquire) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Bytes in both directions so far, as TCP carries them.
    pub(crate) fn bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) + self.received.load(Ordering::Relaxed)
    }

    fn hear(&self) {
        self.heard.store(self.started.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn silent_for(&self) -> Duration {
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(heard)
    }

    fn fail(&self, error: &io::Error) -> Error {
        self.check().err().unwrap_or_else(|| Error::link(error))
    }
}

/// Splits a socket whose handshake is done into its halves.
pub(crate) fn split(
    socket: TcpStream,
    transport: StatelessTransportState,
    timing: Timing,
    rate: Option<u64>,
) -> Result<(Reader, Writer, Arc<Shared>), Error> {
    let fail = |error: io::Error| Error::link(&error);
    socket.set_nonblocking(false).map_err(fail)?;
    socket.set_nodelay(true).map_err(fail)?;
    socket.set_read_timeout(Some(timing.silence)).map_err(fail)?;
    socket.set_write_timeout(Some((timing.silence / 2).max(Duration::from_millis(1)))).map_err(fail)?;
    let now = Instant::now();
    let shared = Arc::new(Shared {
        socket: socket.try_clone().map_err(fail)?,
        started: now,
        heard: AtomicU64::new(0),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
    });
    let transport = Arc::new(transport);
    let reader = Reader {
        socket: socket.try_clone().map_err(fail)?,
        transport: Arc::clone(&transport),
        shared: Arc::clone(&shared),
        nonce: 0,
        buffer: vec![0; 4 * LONGEST],
        start: 0,
        end: 0,
    };
    let sealer = Sealer {
        socket,
        transport,
        shared: Arc::clone(&shared),
        nonce: 0,
        plain: Vec::with_capacity(ROOM),
        sealed: vec![0; 2 + LONGEST],
        pace: Pace::new(rate, now),
        last: now,
        silence: timing.silence,
    };
    Ok((reader, Writer { sealer: Arc::new(Mutex::new(sealer)) }, shared))
}

/// The half that reads.
pub(crate) struct Reader {
    socket: TcpStream,
    transport: Arc<StatelessTransportState>,
    shared: Arc<Shared>,
    nonce: u64,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Reader {
    /// Reads one frame into `plain`. A clean end between frames is an error too: streams end with a record that says so.
    pub(crate) fn read(&mut self, plain: &mut Vec<u8>) -> Result<(), Error> {
        self.fill(2)?;
        let length = usize::from(u16::from_be_bytes([self.buffer[self.start], self.buffer[self.start + 1]]));
        if length < TAG {
            return Err(Error::Protocol("a frame without a seal".to_owned()));
        }
        self.fill(2 + length)?;
        let sealed = &self.buffer[self.start + 2..self.start + 2 + length];
        plain.resize(length, 0);
        let opened = self
            .transport
            .read_message(self.nonce, sealed, plain)
            .map_err(|_| Error::Untrusted("a frame was changed on its way"))?;
        plain.truncate(opened);
        self.nonce += 1;
        self.start += 2 + length;
        self.shared.hear();
        Ok(())
    }

    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        if self.buffer.len() - self.start < wanted {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < wanted {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            }
            match self.socket.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(self.shared.fail(&io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => {
                    self.end += read;
                    self.shared.received.fetch_add(read as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.shared.fail(&error)),
            }
        }
        Ok(())
    }
}

/// The half that writes; clones write to the same link.
#[derive(Clone)]
pub(crate) struct Writer {
    sealer: Arc<Mutex<Sealer>>,
}

impl Writer {
    /// Adds a record of up to `longest` bytes to the frame that is being filled; a full one goes out first.
    pub(crate) fn push(
        &self,
        longest: usize,
        add: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut sealer = self.sealer.lock();
        if sealer.plain.len() + longest > ROOM {
            sealer.flush()?;
        }
        add(&mut sealer.plain)?;
        if sealer.plain.len() > ROOM {
            return Err(Error::Invalid("a record does not fit into a frame".to_owned()));
        }
        Ok(())
    }

    /// Sends what was added.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.sealer.lock().flush()
    }

    /// Says `word`, a whole record, whenever nothing was said for a while, until the link is stopped or `done` is set.
    pub(crate) fn keep_alive(&self, word: &[u8], every: Duration, done: &Done) {
        while !done.wait(every / 2) {
            let mut sealer = self.sealer.lock();
            if sealer.last.elapsed() < every / 2 {
                continue;
            }
            if sealer.plain.len() + word.len() > ROOM && sealer.flush().is_err() {
                return;
            }
            sealer.plain.extend_from_slice(word);
            if sealer.flush().is_err() {
                return;
            }
        }
    }
}

/// Tells the keeper of a link that its work is done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    set: Mutex<bool>,
    changed: parking_lot::Condvar,
}

impl Done {
    pub(crate) fn set(&self) {
        *self.set.lock() = true;
        self.changed.notify_all();
    }

    /// Waits; true when it is done.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let mut set = self.set.lock();
        if !*set {
            self.changed.wait_for(&mut set, time);
        }
        *set
    }
}

struct Sealer {
    socket: TcpStream,
    transport: Arc<StatelessTransportState>,
    shared: Arc<Shared>,
    nonce: u64,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    pace: Pace,
    last: Instant,
    silence: Duration,
}

impl Sealer {
    fn flush(&mut self) -> Result<(), Error> {
        if self.plain.is_empty() {
            return Ok(());
        }
        self.shared.check()?;
        let length = self
            .transport
            .write_message(self.nonce, &self.plain, &mut self.sealed[2..])
            .map_err(|_| Error::Invalid("a frame could not be sealed".to_owned()))?;
        self.nonce += 1;
        self.plain.clear();
        self.sealed[..2].copy_from_slice(&(length as u16).to_be_bytes());
        self.wait_turn(2 + length)?;
        self.send(2 + length)?;
        self.last = Instant::now();
        Ok(())
    }

    fn wait_turn(&mut self, bytes: usize) -> Result<(), Error> {
        let mut delay = self.pace.delay(bytes, Instant::now());
        while !delay.is_zero() {
            let step = delay.min(Duration::from_millis(100));
            std::thread::sleep(step);
            self.shared.check()?;
            delay -= step;
        }
        Ok(())
    }

    fn send(&mut self, length: usize) -> Result<(), Error> {
        let mut at = 0;
        while at < length {
            match self.socket.write(&self.sealed[at..length]) {
                Ok(0) => return Err(self.shared.fail(&io::ErrorKind::WriteZero.into())),
                Ok(written) => {
                    at += written;
                    self.shared.sent.fetch_add(written as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A peer that is busy with its disk does not read, but it still says that it is there.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
                        && self.shared.silent_for() < self.silence =>
                {
                    self.shared.check()?;
                }
                Err(error) => return Err(self.shared.fail(&error)),
            }
        }
        Ok(())
    }
}
