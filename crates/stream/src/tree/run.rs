//! Carries a plan out on the sender's side: says what the target has to do, and writes the index of what it will then have.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::Trust;
use super::plan::{Base, Plan};
use super::walk;
use crate::Error;
use crate::attributes::{self, Attributes};
use crate::blocks::{self, Compare, Hash};
use crate::index::{Entry, Index, Kind, Table, Writing, block_size};
use crate::send::sink::Sink;
use crate::wire::record::{ATTRIBUTE_PIECE, Bytes, From, Record};
use lifeboat_beneath as beneath;

/// A tree that is being sent.
pub(crate) struct Run<'a> {
    pub(crate) root: BorrowedFd<'a>,
    pub(crate) base: Option<&'a Index>,
    pub(crate) trust: Trust,
    pub(crate) secret: [u8; 32],
    /// Whether a tree that had entries may have none now.
    pub(crate) may_be_empty: bool,
    /// When the tree was cut, or the walk begins, whichever is earlier.
    pub(crate) now: (i64, u32),
}

/// What was sent.
pub(crate) struct Told {
    pub(crate) entries: Vec<Entry>,
    /// Files of which anything was sent, and entries that were removed.
    pub(crate) files: u64,
    pub(crate) removed: u64,
}

/// The index of a tree as it is, by reading all of it.
pub(crate) fn census(
    root: BorrowedFd<'_>,
    secret: [u8; 32],
    at: &Path,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<Index, Error> {
    let run = Run { root, base: None, trust: Trust::Nothing, secret, may_be_empty: true, now: (0, 0) };
    let mut writing = Writing::create(at)?;
    let told = run.tell(&mut Sink::nowhere(check, &|_| {}), &mut writing)?;
    writing.finish(Table { generation: String::new(), secret, device: false, entries: told.entries })
}

impl Run<'_> {
    /// Sends the changes.
    pub(crate) fn tell(&self, sink: &mut Sink<'_>, writing: &mut Writing) -> Result<Told, Error> {
        let entries = walk::walk(self.root, self.now, &|| sink.check())?;
        let old: &[Entry] = self.base.map_or(&[], |base| &base.table.entries);
        if entries.len() == 1 && old.len() > 1 && !self.may_be_empty {
            return Err(Error::SourceEmpty(old.len() as u64 - 1));
        }
        let plan = Plan::new(old, &entries, &|new, one, other| self.resembles(new, one, other));
        let mut telling =
            Telling { run: self, old, plan: &plan, sink, writing, folder: None, files: 0, opened: false };
        telling.clear()?;
        let entries = telling.entries(entries)?;
        Ok(Told { entries, files: telling.files, removed: plan.delete.len() as u64 })
    }

    /// Whether a file looks more like one old file than like another, by a few of its blocks.
    fn resembles(&self, new: &Entry, one: &Entry, other: &Entry) -> bool {
        let Some(base) = self.base else { return false };
        let Ok(file) = beneath::open(self.root, &new.path.0, OFlags::RDONLY | OFlags::NONBLOCK) else {
            return false;
        };
        let file = File::from(file);
        let score = |old: &Entry| {
            let hashes = base.hashes(old).unwrap_or_default();
            let step = (hashes.len() / 8).max(1);
            let mut block = vec![0; old.block as usize];
            let same = |at: &usize| {
                let end = (old.size - *at as u64 * u64::from(old.block)).min(old.block.into()) as usize;
                blocks::read_full(&file, &mut block[..end], *at as u64 * u64::from(old.block))
                    .is_ok_and(|read| read == end && blocks::hash(&self.secret, &block[..end]) == hashes[*at])
            };
            let mut same = same;
            (0..hashes.len()).step_by(step).filter(|at| same(at)).count()
        };
        score(one) > score(other)
    }

    /// Whether a file is proven unchanged without being read.
    fn is_proven(&self, new: &Entry, old: &Entry) -> bool {
        let alike =
            new.kind == old.kind && new.meta == old.meta && new.size == old.size && new.names == old.names;
        alike
            && match self.trust {
                Trust::Stamps => old.settled && new.number == old.number && new.touched == old.touched,
                Trust::Modified => true,
                Trust::Nothing => false,
            }
    }
}

struct Telling<'a, 'b, 's> {
    run: &'a Run<'a>,
    old: &'a [Entry],
    plan: &'a Plan,
    sink: &'b mut Sink<'s>,
    writing: &'b mut Writing,
    /// The directory that was opened last: the next entry is likely to be in it too.
    folder: Option<(Vec<u8>, OwnedFd)>,
    files: u64,
    /// Whether the entry at hand was opened on the target.
    opened: bool,
}

impl Telling<'_, '_, '_> {
    /// Puts aside and removes.
    fn clear(&mut self) -> Result<(), Error> {
        for (at, slot) in &self.plan.stash {
            self.sink.record(&Record::Stash { path: self.old[*at].path.clone(), slot: *slot })?;
        }
        for at in &self.plan.delete {
            self.sink.record(&Record::Delete { path: self.old[*at].path.clone() })?;
        }
        if self.plan.stash.is_empty() && self.plan.delete.is_empty() {
            return Ok(());
        }
        self.sink.record(&Record::Barrier)
    }

    fn entries(&mut self, mut entries: Vec<Entry>) -> Result<Vec<Entry>, Error> {
        for (number, entry) in entries.iter_mut().enumerate() {
            self.sink.check()?;
            self.opened = false;
            match entry.kind {
                Kind::Folder if self.plan.old[number].is_none() && !entry.path.0.is_empty() => {
                    self.sink.record(&Record::Make { path: entry.path.clone() })?;
                }
                Kind::File if !self.plan.alias.contains_key(&number) => self.file(number, entry)?,
                Kind::Folder | Kind::File => {}
                Kind::Symlink(_) | Kind::Special(_) => self.other(number, entry)?,
            }
        }
        for (number, main) in &self.plan.alias {
            let (path, main) = (entries[*number].path.clone(), entries[*main].clone());
            if self.plan.old[*number].is_none() {
                self.sink.record(&Record::Link { path: path.clone(), to: main.path.clone() })?;
            }
            let alias = Some(main.path.clone());
            entries[*number] = Entry { path, alias, ..main };
        }
        for number in (0..entries.len()).rev() {
            if matches!(entries[number].kind, Kind::Folder) {
                self.sink.check()?;
                self.opened = false;
                let entry = &mut entries[number];
                self.folder(number, entry)?;
            }
        }
        Ok(entries)
    }

    fn file(&mut self, number: usize, entry: &mut Entry) -> Result<(), Error> {
        if let Some(old) = self.plan.old[number].map(|at| &self.old[at])
            && self.run.is_proven(entry, old)
            && let Some(base) = self.run.base
        {
            (entry.attributes, entry.block) = (old.attributes, old.block);
            entry.settled |= old.settled;
            entry.first = self.writing.add(&base.hashes(old)?)?;
            return Ok(());
        }
        let (from, old) = match self.plan.base(number) {
            Base::None => (From::Nothing, None),
            Base::Same(at) => (From::Base, Some(&self.old[at])),
            Base::Moved(at, slot) => (From::Slot(slot), Some(&self.old[at])),
        };
        let file = self.open(entry)?;
        entry.block = old.map_or(block_size(entry.size), |old| old.block);
        let base = match (old, self.run.base) {
            (Some(old), Some(base)) => base.hashes(old)?,
            _ => Vec::new(),
        };
        let open = Record::File { path: entry.path.clone(), from, block: entry.block };
        let mut opened = false;
        let mut open = |sink: &mut Sink<'_>| {
            if std::mem::replace(&mut opened, true) { Ok(()) } else { sink.record(&open) }
        };
        if from != From::Base {
            open(self.sink)?;
        }
        let compare = Compare {
            file: &file,
            size: entry.size,
            block: entry.block,
            secret: &self.run.secret,
            base: &base,
            within: None,
        };
        let (hashes, size) = compare.run(self.sink, &mut open).map_err(|error| named(error, entry))?;
        let attributes = self.attributes(entry)?;
        let shorter = size != entry.size;
        entry.size = size;
        entry.settled &= !shorter;
        entry.first = self.writing.add(&hashes)?;
        let same = from == From::Base
            && old.is_some_and(|old| {
                old.meta == entry.meta && old.size == entry.size && old.attributes == entry.attributes
            });
        if !same {
            open(self.sink)?;
        }
        if opened {
            self.files += 1;
            self.close(entry, &attributes, old)?;
        }
        Ok(())
    }

    /// A symbolic link or a special file.
    fn other(&mut self, number: usize, entry: &mut Entry) -> Result<(), Error> {
        let old = self.plan.old[number].map(|at| &self.old[at]);
        if let Some(old) = old.filter(|old| self.run.is_proven(entry, old)) {
            entry.attributes = old.attributes;
            entry.settled |= old.settled;
            return Ok(());
        }
        let attributes = self.attributes(entry)?;
        if old.is_some_and(|old| {
            old.kind == entry.kind && old.meta == entry.meta && old.attributes == entry.attributes
        }) {
            return Ok(());
        }
        let path = entry.path.clone();
        let record = match &entry.kind {
            Kind::Symlink(target) => Record::Symlink { path, target: target.clone() },
            Kind::Special(special) => Record::Special { path, special: *special },
            Kind::Folder | Kind::File => return Ok(()),
        };
        self.sink.record(&record)?;
        self.files += 1;
        self.close(entry, &attributes, None)
    }

    fn folder(&mut self, number: usize, entry: &mut Entry) -> Result<(), Error> {
        let old = self.plan.old[number].map(|at| &self.old[at]);
        let touched = self.plan.touched.contains(&number);
        if let Some(old) = old.filter(|old| !touched && self.run.is_proven(entry, old)) {
            entry.attributes = old.attributes;
            entry.settled |= old.settled;
            return Ok(());
        }
        let attributes = self.attributes(entry)?;
        let same =
            old.is_some_and(|old| old.meta == entry.meta && old.attributes == entry.attributes) && !touched;
        if same {
            return Ok(());
        }
        self.sink.record(&Record::Folder { path: entry.path.clone() })?;
        self.close(entry, &attributes, old)
    }

    fn close(&mut self, entry: &Entry, attributes: &Attributes, old: Option<&Entry>) -> Result<(), Error> {
        // Writing to a file may have taken its capabilities away, so attributes are set again even if they are the same.
        let replace = !attributes.is_empty() || old.is_none_or(|old| old.attributes != entry.attributes);
        if replace {
            for (name, value) in attributes {
                let mut pieces = value.chunks(ATTRIBUTE_PIECE).peekable();
                loop {
                    let piece = Bytes::from(pieces.next().unwrap_or_default());
                    let last = pieces.peek().is_none();
                    self.sink.record(&Record::Attribute { name: Bytes(name.clone()), piece, last })?;
                    if last {
                        break;
                    }
                }
            }
        }
        self.sink.record(&Record::Close { size: entry.size, meta: entry.meta, attributes: replace })
    }

    /// Reads an entry's attributes and notes their digest.
    fn attributes(&mut self, entry: &mut Entry) -> Result<Attributes, Error> {
        let fault = |error: Errno| fault("reading the attributes of", entry, error);
        let (folder, name) = beneath::split(&entry.path.0);
        let name = if name.is_empty() { b"." } else { name };
        let read = attributes::read(self.at(folder).map_err(fault)?, std::ffi::OsStr::from_bytes(name));
        let read = read.map_err(fault)?;
        entry.attributes = attributes::digest(&read);
        Ok(read)
    }

    fn open(&mut self, entry: &Entry) -> Result<File, Error> {
        let fault = |error: Errno| fault("opening", entry, error);
        let (folder, name) = beneath::split(&entry.path.0);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let folder = self.at(folder).map_err(fault)?;
        // Leaves the time of access alone, where that is allowed.
        let name = std::ffi::OsStr::from_bytes(name);
        let file = match openat(folder, name, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => openat(folder, name, flags, Mode::empty()),
            opened => opened,
        };
        let file = File::from(file.map_err(fault)?);
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Err(fault(Errno::STALE));
        }
        Ok(file)
    }

    fn at(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Errno> {
        if self.folder.as_ref().is_none_or(|(open, _)| open != path) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            self.folder = Some((path.to_vec(), beneath::open(self.run.root, path, flags)?));
        }
        self.folder.as_ref().map(|(_, folder)| folder.as_fd()).ok_or(Errno::NOENT)
    }
}

fn fault(doing: &str, entry: &Entry, error: Errno) -> Error {
    Error::source(doing, Path::new(std::ffi::OsStr::from_bytes(&entry.path.0)), error)
}

fn named(error: Error, entry: &Entry) -> Error {
    match error {
        Error::Source(text) => Error::Source(format!("{}: {text}", entry.path.0.escape_ascii())),
        other => other,
    }
}

const _: () = assert!(size_of::<Hash>() == 16);
