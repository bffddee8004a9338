//! One connection of a sender that showed the key: from its first word to the last record.

use std::sync::Arc;
use std::time::Instant;

use super::decide::{self, Known, Opening};
use super::journal::{self, Complete, Journal};
use super::{Destination, Event, Progress};
use crate::Error;
use crate::apply::Applier;
use crate::blocks::Compare;
use crate::error::Refusal;
use crate::index::{Entry, Index, Kind as EntryKind, Meta, Table, Writing};
use crate::send::sink::{Sink, chain, data_header};
use crate::tree;
use crate::wire::link::{Reader, Shared, Writer};
use crate::wire::record::{Answer, Bytes, Content, Hello, Kind, MOST_DATA, Record, decode, encode};

/// Most bytes of a destination's, generation's or token's name.
const LONGEST_NAME: usize = 512;
/// Bytes between two words about progress.
const STEP: u64 = 8 << 20;

/// The halves of a link.
pub(crate) struct Ends {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) shared: Arc<Shared>,
}

impl Ends {
    /// Says something at once.
    pub(crate) fn answer(&self, answer: &Answer) -> Result<(), Error> {
        self.writer.push(MOST_DATA, |frame| encode(answer, frame))?;
        self.writer.flush()
    }

    /// Reads the first word of a sender.
    pub(crate) fn hello(&mut self) -> Result<Hello, Error> {
        let mut frame = Vec::new();
        self.reader.read(&mut frame)?;
        let hello = Hello::decode(&frame)?;
        let more = [hello.more.lineage.as_ref(), hello.more.fuzzy.as_ref()];
        let names = [Some(&hello.destination), Some(&hello.generation), hello.token.as_ref()];
        let names = names.into_iter().chain(more);
        let sane = names.flatten().chain(&hello.bases).all(|name| name.len() <= LONGEST_NAME)
            && !hello.generation.is_empty()
            && hello.bases.len() <= 8;
        if sane { Ok(hello) } else { Err(Error::Protocol("names that are too long".to_owned())) }
    }

    /// Reads on for a moment after the last word, so that the word is not lost with the connection.
    pub(crate) fn linger(&mut self) {
        let mut frame = Vec::new();
        let until = Instant::now() + std::time::Duration::from_secs(2);
        while Instant::now() < until && self.reader.read(&mut frame).is_ok() {}
    }
}

/// A sync that is being applied.
pub(crate) struct Session<'a> {
    pub(crate) ends: &'a mut Ends,
    pub(crate) destination: &'a Destination,
    pub(crate) hello: &'a Hello,
    pub(crate) tell: &'a dyn Fn(Event),
}

/// What a session came to.
pub(crate) struct Ran {
    /// What the owner is to be told, unless it was told before.
    pub(crate) event: Option<Event>,
    /// What the sender is still to be told once the copy is published: its token.
    pub(crate) owed: Option<Option<String>>,
}

impl Session<'_> {
    /// Applies all of it. Nothing touches the staging volume any more when it returns.
    pub(crate) fn run(&mut self) -> Result<Ran, Error> {
        let destination = self.destination;
        let state = &destination.state;
        let journal = Journal::read(state)?;
        let known = Known {
            incarnation: &destination.incarnation,
            base: destination.base.as_deref(),
            epoch: destination.epoch.max(journal::epoch(state)?),
            lineage: destination.terms.lineage.as_deref(),
            accepts: destination.terms.accepts.as_deref(),
            journal: journal.as_ref(),
        };
        let opening = decide::open(&known, self.hello);
        if let Opening::Refuse(refusal) = opening {
            return Err(Error::Refused(refusal));
        }
        journal::raise_epoch(state, self.hello.epoch)?;
        let mut applier =
            Applier::open(&destination.place, destination.policy, self.hello.kind, self.hello.secret)?;
        let mut journal = match (opening, journal) {
            (Opening::Publishing, Some(Journal { complete: Some(done), .. }))
                if destination.terms.publishes.is_some() =>
            {
                return Ok(Ran { event: None, owed: Some(done.token) });
            }
            (Opening::Publishing | Opening::Finished, Some(Journal { complete: Some(done), .. })) => {
                self.ends.answer(&Answer::Finished { token: done.token })?;
                return Ok(Ran { event: None, owed: None });
            }
            (Opening::Resume, Some(journal)) => {
                if let Some(open) = journal.open.clone() {
                    applier.reopen(open)?;
                }
                self.ends.answer(&Answer::Resume {
                    base: journal.base.clone(),
                    records: journal.records,
                    digest: journal.digest,
                })?;
                journal
            }
            (Opening::Start { base, clear }, _) => {
                applier.drop_stash()?;
                self.prepare(&mut applier, base.is_none(), clear)?;
                let journal = self.begin(base)?;
                self.ends.answer(&Answer::Start { base: journal.base.clone() })?;
                journal
            }
            (Opening::Compare { base }, _) => {
                // What a copy that nobody goes on with has put aside is no part of this one.
                applier.drop_stash()?;
                self.inventory(&applier)?;
                let journal = self.begin(Some(base))?;
                self.ends.answer(&Answer::Start { base: journal.base.clone() })?;
                journal
            }
            _ => return Err(Error::Refused(Refusal::Spoiled("the journal".to_owned()))),
        };
        (self.tell)(Event::Started {
            destination: destination.id.clone(),
            generation: journal.generation.clone(),
            base: journal.base.clone(),
            resumed: journal.records > 0,
        });
        let done = match self.apply(&mut applier, &mut journal) {
            Err(Error::Damaged(why)) => {
                // Nobody goes on from here.
                Journal { damaged: true, ..journal }.write(state)?;
                return Err(Error::Damaged(why));
            }
            done => done?,
        };
        let event = Some(Event::completed(&destination.id, &journal, &done));
        if destination.terms.publishes.is_some() {
            return Ok(Ran { event, owed: Some(done.token) });
        }
        // If this is lost, the sender asks again and hears it then.
        if let Err(error) = self.ends.answer(&Answer::Finished { token: done.token }) {
            tracing::debug!(%error, "the sender did not hear that it is done");
        }
        Ok(Ran { event, owed: None })
    }

    /// An empty volume is empty, or was begun by us and is emptied.
    fn prepare(&self, applier: &mut Applier, empty: bool, clear: bool) -> Result<(), Error> {
        if !empty {
            return Ok(());
        }
        if clear || self.destination.is_device() {
            return applier.clear();
        }
        if applier.is_empty()? {
            return Ok(());
        }
        let why = "it is said to be empty and is not: nothing in it was touched".to_owned();
        Err(Error::Refused(Refusal::Unfit(why)))
    }

    /// Notes that the staging volume is no longer what it was, before it is not.
    fn begin(&self, base: Option<String>) -> Result<Journal, Error> {
        let journal = Journal {
            incarnation: self.destination.incarnation.clone(),
            base,
            generation: self.hello.generation.clone(),
            epoch: self.hello.epoch,
            records: 0,
            digest: [0; 32],
            open: None,
            damaged: false,
            complete: None,
            more: self.hello.more.clone(),
        };
        journal.write(&self.destination.state)?;
        Ok(journal)
    }

    fn apply(&mut self, applier: &mut Applier, journal: &mut Journal) -> Result<Complete, Error> {
        let (mut frame, mut bytes, mut unsafe_bytes, mut told) = (Vec::new(), 0, 0, 0);
        loop {
            self.ends.reader.read(&mut frame)?;
            let mut rest = frame.as_slice();
            while !rest.is_empty() {
                let (record, after) = decode::<Record>(rest)?;
                let header = &rest[..rest.len() - after.len()];
                rest = after;
                match record {
                    Record::Alive => continue,
                    Record::Abandon => {
                        return Err(Error::Damaged("the source has changed since the sync began".to_owned()));
                    }
                    Record::End { digest, entries, content } => {
                        return self.finish(applier, journal, End { digest, entries, content, bytes });
                    }
                    Record::Data { offset, length, stored, packed } => {
                        let (stored, after) = rest
                            .split_at_checked(stored as usize)
                            .ok_or(Error::Protocol("less data than announced".to_owned()))?;
                        rest = after;
                        let hashes = applier.data(offset, length, stored, packed)?;
                        chain(&mut journal.digest, &data_header(offset, length), &hashes);
                        bytes += u64::from(length);
                        unsafe_bytes += u64::from(length);
                    }
                    Record::Barrier => {
                        chain(&mut journal.digest, header, &[]);
                        journal.records += 1;
                        self.checkpoint(applier, journal)?;
                        unsafe_bytes = 0;
                        continue;
                    }
                    record => {
                        chain(&mut journal.digest, header, &[]);
                        journal.open = opened(&record, journal.open.take());
                        applier.apply(record)?;
                    }
                }
                journal.records += 1;
                if unsafe_bytes >= self.destination.checkpoint && applier.can_pause() {
                    self.checkpoint(applier, journal)?;
                    unsafe_bytes = 0;
                }
            }
            if bytes >= told + STEP {
                told = bytes;
                let progress = Progress { bytes, records: journal.records };
                (self.tell)(Event::Progress { destination: self.destination.id.clone(), progress });
            }
        }
    }

    /// Makes everything so far safe and says so.
    fn checkpoint(&self, applier: &Applier, journal: &Journal) -> Result<(), Error> {
        applier.sync()?;
        journal.write(&self.destination.state)?;
        self.ends.answer(&Answer::Confirmed { records: journal.records })
    }

    fn finish(&self, applier: &Applier, journal: &mut Journal, end: End) -> Result<Complete, Error> {
        if end.digest != journal.digest || !applier.can_pause() {
            return Err(Error::Damaged("the digest over all records differs".to_owned()));
        }
        if end.entries == 1 && matches!(self.hello.kind, Kind::Tree) && !applier.is_empty()? {
            return Err(Error::Damaged("the source is empty, the copy is not".to_owned()));
        }
        let verified = match end.content {
            Some(expected) => {
                self.verify(applier, expected)?;
                true
            }
            None => false,
        };
        applier.sync()?;
        let done = Complete {
            token: self.hello.token.clone(),
            cut: self.hello.cut,
            bytes: end.bytes,
            entries: end.entries,
            skipped: applier.skipped,
            verified,
        };
        journal.open = None;
        journal.complete = Some(done.clone());
        journal.write(&self.destination.state)?;
        Ok(done)
    }

    /// Reads the whole target and compares.
    fn verify(&self, applier: &Applier, expected: Content) -> Result<(), Error> {
        let found = self.census(applier)?.content()?;
        let owners = !rustix::process::geteuid().is_root() || found.owners == expected.owners;
        if found.data == expected.data && owners {
            Ok(())
        } else {
            Err(Error::Damaged("the whole copy was read and is not the source".to_owned()))
        }
    }

    fn census(&self, applier: &Applier) -> Result<Index, Error> {
        let at = self.destination.state.join("census");
        let check = || self.ends.shared.check();
        let index = match (applier.root(), applier.device(), self.hello.kind) {
            (Some(root), ..) => tree::census(root, self.hello.secret, &at, &check),
            (None, Some(file), Kind::Device { size }) => {
                device_census(file, size, self.hello.secret, &at, &check)
            }
            _ => Err(Error::Protocol("a target of another kind".to_owned())),
        };
        // It stays open as long as it is needed.
        let _ = std::fs::remove_file(&at);
        index
    }

    /// Sends the index of what is there.
    fn inventory(&self, applier: &Applier) -> Result<(), Error> {
        self.census(applier)?.read_all(|piece| {
            self.ends.shared.check()?;
            self.ends
                .writer
                .push(MOST_DATA + 64, |frame| encode(&Answer::Inventory(Bytes::from(piece)), frame))
        })
    }
}

/// What the last record says.
struct End {
    digest: [u8; 32],
    entries: u64,
    content: Option<Content>,
    bytes: u64,
}

/// What is open after a record.
fn opened(record: &Record, before: Option<Record>) -> Option<Record> {
    match record {
        Record::File { .. } | Record::Folder { .. } | Record::Device { .. } => Some(record.clone()),
        // Made again rather than opened again; nothing is lost by that.
        Record::Symlink { .. } | Record::Special { .. } => Some(record.clone()),
        Record::Close { .. } | Record::Link { .. } => None,
        _ => before,
    }
}

/// The index of a device, by reading all of it.
pub(crate) fn device_census(
    file: &std::fs::File,
    size: u64,
    secret: [u8; 32],
    at: &std::path::Path,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<Index, Error> {
    let mut writing = Writing::create(at)?;
    let block = crate::index::block_size(size);
    let compare = Compare { file, size, block, secret: &secret, base: &[], within: None };
    let (hashes, size) = compare.run(&mut Sink::nowhere(check, &|_| {}), &mut |_| Ok(()))?;
    let first = writing.add(&hashes)?;
    let entries = vec![device_entry(size, block, first)];
    writing.finish(Table { generation: String::new(), secret, device: true, entries })
}

/// The one entry of a device.
pub(crate) fn device_entry(size: u64, block: u32, first: u64) -> Entry {
    Entry {
        path: Bytes(Vec::new()),
        kind: EntryKind::File,
        meta: Meta { mode: 0, uid: 0, gid: 0, modified: (0, 0) },
        size,
        number: 0,
        names: 1,
        touched: (0, 0),
        settled: false,
        attributes: crate::blocks::ZERO,
        alias: None,
        block,
        first,
    }
}
