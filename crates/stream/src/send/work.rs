//! The sender's side of a connection, after the handshake. Blocks.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::SeekFrom;
use tokio::sync::watch;

use super::job::{Job, Source};
use super::sink::Sink;
use super::{Sending, Sent};
use crate::Error;
use crate::blocks::Compare;
use crate::index::{Index, Table, Writing, block_size};
use crate::receive::session::device_entry;
use crate::tree::{Run, Trust, walk};
use crate::wire::link::{Done, Reader, Shared, Writer};
use crate::wire::record::{Answer, Hello, Kind, MOST_DATA, More, Record, decode, encode};

/// One connection.
pub(super) struct Work {
    pub(super) source: Source,
    pub(super) job: Job,
    pub(super) pack: bool,
    /// The secret of a volume that has no index yet.
    pub(super) secret: [u8; 32],
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) shared: Arc<Shared>,
    pub(super) progress: watch::Sender<Sending>,
}

/// How the receiver wants it.
struct Agreed {
    base: Option<Index>,
    /// Whether the base is a list of what the receiver has, whose stamps mean nothing here.
    foreign: bool,
    resume: Option<(u64, [u8; 32])>,
}

impl Work {
    pub(super) fn run(self) -> Result<Sent, Error> {
        let Self { source, job, pack, secret, reader, writer, shared, progress } = self;
        let answers = Answers { reader, waiting: VecDeque::new() };
        let opened = Opened::new(&source)?;
        let mut known = Known::open(&job.index, matches!(opened, Opened::Device { .. }));
        let secret = known.secret(secret);
        let mut alive = Vec::new();
        encode(&Record::Alive, &mut alive)?;
        let done = Done::default();
        let refused = Mutex::new(None);
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| writer.keep_alive(&alive, job.limits.timing.keepalive, &done));
            let (shared, progress, refused) = (&*shared, &progress, &refused);
            let mut converse = |mut answers: Answers| -> Result<Sent, Error> {
                let hello = known.hello(&job, secret, opened.kind());
                writer.push(MOST_DATA, |frame| hello.encode(frame))?;
                writer.flush()?;
                let Some(agreed) = known.agree(&mut answers, &job)? else {
                    return Ok(Sent { token: job.token().map(str::to_owned), ..Sent::default() });
                };
                let base = agreed.base.as_ref().map(|base| base.table.generation.clone());
                let listening = scope.spawn(move || listen(answers, shared, progress, refused));
                let telling = Telling { job: &job, opened: &opened, source: &source, secret };
                let told = telling.tell(&agreed, pack, &writer, shared, progress);
                if told.is_err() && !is_link(&told) {
                    // The receiver need not wait for what does not come.
                    shared.stop();
                }
                let heard = listening.join().unwrap_or(Err(Error::Stopped));
                let mut sent = told?;
                sent.token = heard?;
                sent.base = base;
                sent.resumed = agreed.resume.is_some();
                Ok(sent)
            };
            let outcome = converse(answers);
            done.set();
            outcome
        });
        // A refusal says more than the broken link that came of it.
        let mut sent = match (outcome, refused.into_inner()) {
            (Err(_), Some(refusal)) => return Err(refusal),
            (outcome, _) => outcome?,
        };
        known.promote(&job.generation)?;
        sent.bytes_on_wire = shared.bytes();
        Ok(sent)
    }
}

fn is_link<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Link(_)))
}

/// Hears what the receiver says until it is done; hands back the token that it echoed.
fn listen(
    mut answers: Answers,
    shared: &Shared,
    progress: &watch::Sender<Sending>,
    refused: &Mutex<Option<Error>>,
) -> Result<Option<String>, Error> {
    loop {
        match answers.next() {
            Ok(Answer::Alive) => {}
            Ok(Answer::Confirmed { records }) => progress.send_modify(|sending| sending.confirmed = records),
            Ok(Answer::Finished { token }) => return Ok(token),
            Ok(Answer::Refused(refusal)) => {
                *refused.lock() = Some(Error::Refused(refusal));
                shared.stop();
                return Err(Error::Stopped);
            }
            Ok(_) => {
                shared.stop();
                return Err(Error::Protocol("an answer out of turn".to_owned()));
            }
            Err(error) => {
                // Whoever writes need not wait until it notices by itself.
                let stopped = shared.check().is_err();
                shared.stop();
                return Err(if stopped { Error::Stopped } else { keep(refused, error) });
            }
        }
    }
}

/// Keeps what broke the link, because the other thread only sees that it is broken.
fn keep(refused: &Mutex<Option<Error>>, error: Error) -> Error {
    let text = error.to_string();
    *refused.lock() = Some(error);
    Error::Link(text)
}

/// Reads answers, of which several may come in one frame.
struct Answers {
    reader: Reader,
    waiting: VecDeque<Answer>,
}

impl Answers {
    fn next(&mut self) -> Result<Answer, Error> {
        let mut frame = Vec::new();
        loop {
            if let Some(answer) = self.waiting.pop_front() {
                return Ok(answer);
            }
            self.reader.read(&mut frame)?;
            let mut rest = frame.as_slice();
            while !rest.is_empty() {
                let (answer, after) = decode::<Answer>(rest)?;
                rest = after;
                self.waiting.push_back(answer);
            }
        }
    }
}

/// An open source.
enum Opened {
    Tree(std::os::fd::OwnedFd),
    Device { file: File, size: u64 },
}

impl Opened {
    fn new(source: &Source) -> Result<Self, Error> {
        match source {
            Source::Tree { path, .. } => Ok(Self::Tree(walk::open_root(path)?)),
            Source::Device { path, .. } => {
                let file = File::open(path).map_err(|error| Error::source("opening", path, error))?;
                let size = rustix::fs::seek(&file, SeekFrom::End(0))
                    .map_err(|error| Error::source("measuring", path, error))?;
                Ok(Self::Device { file, size })
            }
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Tree(_) => Kind::Tree,
            Self::Device { size, .. } => Kind::Device { size: *size },
        }
    }
}

/// The indexes that are there: of the last sync, and of one whose end was perhaps not heard of.
struct Known {
    path: PathBuf,
    indexes: Vec<Index>,
}

impl Known {
    fn open(path: &Path, device: bool) -> Self {
        let both = [path.to_owned(), beside(path, "next")];
        let fits = |index: &Index| index.table.device == device;
        let indexes = both.iter().filter_map(|path| Index::open(path)).filter(fits).collect();
        Self { path: path.to_owned(), indexes }
    }

    /// Blocks of one volume are always hashed under one secret.
    fn secret(&self, otherwise: [u8; 32]) -> [u8; 32] {
        self.indexes.first().map_or(otherwise, |index| index.table.secret)
    }

    fn hello(&self, job: &Job, secret: [u8; 32], kind: Kind) -> Hello {
        let usable = self.indexes.iter().filter(|index| index.table.secret == secret);
        Hello {
            destination: job.destination.clone(),
            epoch: job.epoch,
            bases: usable.map(|index| index.table.generation.clone()).collect(),
            full: job.full,
            compare: job.compare,
            generation: job.generation.clone(),
            cut: (job.cut.as_second(), job.cut.subsec_nanosecond()),
            token: job.token().map(str::to_owned),
            kind,
            secret,
            more: More { waits: true, lineage: job.lineage.clone(), fuzzy: job.fuzzy.clone() },
        }
    }

    /// Hears how the receiver wants it; `None` when it has all of it already.
    fn agree(&mut self, answers: &mut Answers, job: &Job) -> Result<Option<Agreed>, Error> {
        let mut inventory: Option<File> = None;
        let listed = beside(&self.path, "peer");
        loop {
            let (base, resume) = match answers.next()? {
                Answer::Alive => continue,
                Answer::Inventory(piece) => {
                    let file = match &mut inventory {
                        Some(file) => file,
                        None => {
                            let made = File::create(&listed);
                            inventory.insert(made.map_err(|error| Error::source("making", &listed, error))?)
                        }
                    };
                    std::io::Write::write_all(file, &piece.0)
                        .map_err(|error| Error::source("writing", &listed, error))?;
                    continue;
                }
                Answer::Finished { token } if token.as_deref() == job.token() => return Ok(None),
                Answer::Finished { .. } => {
                    return Err(Error::Invalid(
                        "the receiver has this generation from a sync without this token: take a new snapshot".to_owned(),
                    ));
                }
                Answer::Refused(refusal) => return Err(Error::Refused(refusal)),
                Answer::Start { base } => (base, None),
                Answer::Resume { base, records, digest } => (base, Some((records, digest))),
                Answer::Confirmed { .. } => return Err(Error::Protocol("an answer out of turn".to_owned())),
            };
            if let (Some(_), Some(generation)) = (&inventory, &base) {
                let mut index = Index::open(&listed)
                    .ok_or(Error::Protocol("a list of what it has that cannot be read".to_owned()))?;
                // It stays open as long as it is needed.
                let _ = std::fs::remove_file(&listed);
                index.table.generation.clone_from(generation);
                index.table.forget_numbers();
                return Ok(Some(Agreed { base: Some(index), foreign: true, resume }));
            }
            let index = match base {
                None => None,
                Some(base) => {
                    let at = self.indexes.iter().position(|index| index.table.generation == base);
                    let at = at.ok_or(Error::Protocol("a base that was not offered".to_owned()))?;
                    // The end of the sync before was not heard of; its index is not to be written over.
                    self.promote(&base)?;
                    Some(self.indexes.swap_remove(at))
                }
            };
            return Ok(Some(Agreed { base: index, foreign: false, resume }));
        }
    }

    /// Makes the index of what the receiver now has the one to start from.
    fn promote(&self, generation: &str) -> Result<(), Error> {
        let next = beside(&self.path, "next");
        let fault = |error| Error::source("keeping the index", &self.path, error);
        if Index::open(&next).is_some_and(|index| index.table.generation == generation) {
            std::fs::rename(&next, &self.path).map_err(fault)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))
                .and_then(|folder| folder.sync_all())
                .map_err(fault)?;
        }
        Ok(())
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().as_bytes().to_vec();
    name.push(b'.');
    name.extend_from_slice(ending.as_bytes());
    PathBuf::from(std::ffi::OsStr::from_bytes(&name))
}

struct Telling<'a> {
    job: &'a Job,
    opened: &'a Opened,
    source: &'a Source,
    secret: [u8; 32],
}

impl Telling<'_> {
    fn tell(
        &self,
        agreed: &Agreed,
        pack: bool,
        writer: &Writer,
        shared: &Shared,
        progress: &watch::Sender<Sending>,
    ) -> Result<Sent, Error> {
        let check = || shared.check();
        let tell = |changed| {
            progress.send_modify(|sending| (sending.changed, sending.on_wire) = (changed, shared.bytes()));
        };
        let mut sink = Sink::new(writer.clone(), pack, agreed.resume, &check, &tell)?;
        let told = self.source(agreed, &mut sink).and_then(|told| sink.caught_up().map(|()| told));
        if let Err(Error::Damaged(_)) = told {
            writer.push(64, |frame| encode(&Record::Abandon, frame))?;
            writer.flush()?;
        }
        let (mut sent, index) = told?;
        let content = if self.job.verify { Some(index.content()?) } else { None };
        let end = Record::End { digest: sink.digest(), entries: sent.entries, content };
        writer.push(256, |frame| encode(&end, frame))?;
        writer.flush()?;
        sent.bytes_changed = sink.changed();
        Ok(sent)
    }

    /// Sends the changes, and writes the index that will be true once the receiver has them.
    fn source(&self, agreed: &Agreed, sink: &mut Sink<'_>) -> Result<(Sent, Index), Error> {
        let next = beside(&self.job.index, "next");
        let generation = self.job.generation.clone();
        match (self.opened, self.source) {
            (Opened::Tree(root), Source::Tree { trust, .. }) => {
                let cut = (self.job.cut.as_second(), self.job.cut.subsec_nanosecond().max(0) as u32);
                let now = jiff::Timestamp::now();
                let now = (now.as_second(), now.subsec_nanosecond().max(0) as u32);
                let run = Run {
                    root: root.as_fd(),
                    base: agreed.base.as_ref(),
                    trust: if agreed.foreign { Trust::Nothing } else { *trust },
                    secret: self.secret,
                    may_be_empty: self.job.may_be_empty,
                    now: now.min(cut),
                };
                let mut writing = Writing::create(&next)?;
                let told = run.tell(sink, &mut writing)?;
                let entries = told.entries.len() as u64;
                let table = Table { generation, secret: self.secret, device: false, entries: told.entries };
                let sent = Sent { files: told.files, removed: told.removed, entries, ..Sent::default() };
                Ok((sent, writing.finish(table)?))
            }
            (Opened::Device { file, size }, Source::Device { changed, .. }) => {
                let base = agreed.base.as_ref();
                let old = base.and_then(|base| base.table.entries.first());
                if old.is_some_and(|old| old.size > *size) {
                    return Err(Error::Source(
                        "the device is smaller than it was: a volume does not shrink".to_owned(),
                    ));
                }
                let block = old.map_or(block_size(*size), |old| old.block);
                let hashes = match (base, old) {
                    (Some(base), Some(old)) => base.hashes(old)?,
                    _ => Vec::new(),
                };
                let since = base.map(|base| &base.table.generation);
                let changed =
                    changed.as_ref().filter(|changed| since == Some(&changed.since) && !agreed.foreign);
                // What was added at the end is not in anybody's list of changes.
                let grown = old.map(|old| old.size / u64::from(block) * u64::from(block)..*size);
                let within =
                    changed.map(|changed| changed.ranges.iter().cloned().chain(grown).collect::<Vec<_>>());
                let mut writing = Writing::create(&next)?;
                sink.record(&Record::Device { block })?;
                let compare = Compare {
                    file,
                    size: *size,
                    block,
                    secret: &self.secret,
                    base: &hashes,
                    within: within.as_deref(),
                };
                let (hashes, read) = compare.run(sink, &mut |_| Ok(()))?;
                if read != *size {
                    return Err(Error::Source("the device ended before its end".to_owned()));
                }
                let entries = vec![device_entry(*size, block, writing.add(&hashes)?)];
                let table = Table { generation, secret: self.secret, device: true, entries };
                Ok((Sent { entries: 1, ..Sent::default() }, writing.finish(table)?))
            }
            _ => Err(Error::Invalid("a source of two kinds".to_owned())),
        }
    }
}
