//! Where a source puts its records: counted, chained into one digest, packed where it pays, and on the wire.

use crate::Error;
use crate::blocks::Hash;
use crate::wire::link::Writer;
use crate::wire::record::{HEADER, MOST_DATA, Record, encode};

/// Adds a record to the chain that both sides keep.
pub(crate) fn chain(digest: &mut [u8; 32], header: &[u8], hashes: &[Hash]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(digest).update(header).update(hashes.as_flattened());
    *digest = *hasher.finalize().as_bytes();
}

/// What stands for a data record in the chain, however its bytes were packed.
pub(crate) fn data_header(offset: u64, length: u32) -> [u8; 12] {
    let mut header = [0; 12];
    header[..8].copy_from_slice(&offset.to_le_bytes());
    header[8..].copy_from_slice(&length.to_le_bytes());
    header
}

/// Takes the records of a source.
pub(crate) struct Sink<'a> {
    out: Option<(Writer, Option<Packer>)>,
    check: &'a dyn Fn() -> Result<(), Error>,
    /// Records that the receiver has, and the digest over them.
    resume: Option<(u64, [u8; 32])>,
    digest: [u8; 32],
    records: u64,
    changed: u64,
    tell: &'a dyn Fn(u64),
    scratch: Vec<u8>,
}

impl<'a> Sink<'a> {
    /// Sends records.
    pub(crate) fn new(
        writer: Writer,
        pack: bool,
        resume: Option<(u64, [u8; 32])>,
        check: &'a dyn Fn() -> Result<(), Error>,
        tell: &'a dyn Fn(u64),
    ) -> Result<Self, Error> {
        let packer = if pack { Some(Packer::new()?) } else { None };
        Ok(Self {
            out: Some((writer, packer)),
            resume: resume.filter(|(records, _)| *records > 0),
            ..Self::nowhere(check, tell)
        })
    }

    /// Sends nothing.
    pub(crate) fn nowhere(check: &'a dyn Fn() -> Result<(), Error>, tell: &'a dyn Fn(u64)) -> Self {
        Self {
            out: None,
            check,
            resume: None,
            digest: [0; 32],
            records: 0,
            changed: 0,
            tell,
            scratch: Vec::new(),
        }
    }

    /// Fails when somebody has stopped the work.
    pub(crate) fn check(&self) -> Result<(), Error> {
        (self.check)()
    }

    /// Bytes of changed blocks so far, those that the receiver had already included.
    pub(crate) fn changed(&self) -> u64 {
        self.changed
    }

    /// The digest over all records so far.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether the receiver has got all that it had before, and more.
    pub(crate) fn caught_up(&self) -> Result<(), Error> {
        match self.resume {
            Some(_) => Err(diverged()),
            None => Ok(()),
        }
    }

    /// Sends a record without data.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), Error> {
        let Some((writer, _)) = &self.out else { return Ok(()) };
        self.scratch.clear();
        encode(record, &mut self.scratch)?;
        if self.scratch.len() > HEADER {
            return Err(Error::Source("a path or name is too long to be sent".to_owned()));
        }
        let scratch = &self.scratch;
        if self.resume.is_none() {
            writer.push(scratch.len(), |frame| {
                frame.extend_from_slice(scratch);
                Ok(())
            })?;
        }
        chain(&mut self.digest, &self.scratch, &[]);
        self.count()
    }

    /// Sends blocks.
    pub(crate) fn data(&mut self, offset: u64, bytes: &[u8], hashes: &[Hash]) -> Result<(), Error> {
        let Some((writer, packer)) = &mut self.out else { return Ok(()) };
        let length = bytes.len() as u32;
        if self.resume.is_none() {
            let packed = packer.as_mut().and_then(|packer| packer.pack(bytes));
            let stored = packed.unwrap_or(bytes);
            let record =
                Record::Data { offset, length, stored: stored.len() as u32, packed: packed.is_some() };
            writer.push(stored.len() + 64, |frame| {
                encode(&record, frame)?;
                frame.extend_from_slice(stored);
                Ok(())
            })?;
        }
        self.changed += u64::from(length);
        (self.tell)(self.changed);
        chain(&mut self.digest, &data_header(offset, length), hashes);
        self.count()
    }

    /// Sends a hole.
    pub(crate) fn zero(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        self.record(&Record::Zero { offset, length })
    }

    fn count(&mut self) -> Result<(), Error> {
        self.records += 1;
        match self.resume {
            Some((records, digest)) if records == self.records => {
                self.resume = None;
                if digest == self.digest { Ok(()) } else { Err(diverged()) }
            }
            _ => Ok(()),
        }
    }
}

fn diverged() -> Error {
    Error::Damaged("what was sent before the link broke is not what the source says now".to_owned())
}

/// Packs what gets smaller by it, and soon stops trying where nothing does.
struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// Records to leave alone, and how often that number was doubled.
    rest: u32,
    vain: u32,
}

/// Most records that are left alone after a vain try: a few megabytes.
const LONGEST_REST: u32 = 6;

impl Packer {
    fn new() -> Result<Self, Error> {
        let zstd = zstd::bulk::Compressor::new(1)
            .map_err(|error| Error::Invalid(format!("no packing here: {error}")))?;
        Ok(Self { zstd, packed: vec![0; zstd::zstd_safe::compress_bound(MOST_DATA)], rest: 0, vain: 0 })
    }

    fn pack(&mut self, bytes: &[u8]) -> Option<&[u8]> {
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        let length = self.zstd.compress_to_buffer(bytes, self.packed.as_mut_slice()).ok()?;
        if length < bytes.len() - bytes.len() / 8 {
            self.vain = 0;
            Some(&self.packed[..length])
        } else {
            self.vain = (self.vain + 1).min(LONGEST_REST);
            self.rest = 1 << self.vain;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_stops_where_it_does_not_pay_and_begins_again() {
        let mut packer = Packer::new().unwrap();
        let mut noise = vec![0; MOST_DATA];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut noise).unwrap();
        let words = b"the same words again and again ".repeat(1000);
        assert!(packer.pack(&words).is_some());
        assert!(packer.pack(&noise).is_none());
        assert_eq!(packer.rest, 2);
        assert!(packer.pack(&words).is_none() && packer.pack(&words).is_none());
        assert!(packer.pack(&words).is_some());
        for _ in 0..1000 {
            packer.pack(&noise);
        }
        assert!(packer.rest <= 1 << LONGEST_REST);
    }
}
