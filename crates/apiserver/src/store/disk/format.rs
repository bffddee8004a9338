//! How records stand in files, and what a file that a crash or a power cut left may look like.
//!
//! A log holds batches: length, newest revision, checksum over all of it, records. A batch is handed to the disk whole, and the next only when
//! the disk has it. So only the last batch can be torn, whatever the disk kept of it: it was never acknowledged and is cut off. Damage before a
//! sound batch is reported with its place. Logs of the first version have a checksum for each record, and snapshots still do.

use super::media::Media;
use super::{DiskError, Record, io};
use bytes::Bytes;
use std::io::{BufReader, Read};

/// Begins a snapshot, and a log of the first version.
pub const RECORDS: &[u8; 8] = b"LBSTORE1";
/// Begins a log.
pub const BATCHES: &[u8; 8] = b"LBSTORE2";
/// Bytes before the records of a batch: length, newest revision, checksum.
pub const BATCH_HEAD: usize = 20;
const RECORD_HEAD: usize = 8;

/// What may stand at the end of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Something that was never acknowledged.
    MayBeTorn,
    /// Nothing but what was written.
    Whole,
}

/// What a file holds that can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sound {
    /// Its length; nothing at all where not even the beginning was written.
    pub length: u64,
    /// Whether it is a log of batches.
    pub batches: bool,
}

/// Reads the records of a file until its end.
pub fn read(
    media: &dyn Media,
    name: &str,
    tail: Tail,
    mut load: impl FnMut(Record) -> Result<(), &'static str>,
) -> Result<Sound, DiskError> {
    let path = media.path(name);
    let size = media.length(name).map_err(io("reading", &path))?.unwrap_or(0);
    let damaged = |offset, what| DiskError::Damaged { path: path.clone(), offset, what };
    let mut input = BufReader::with_capacity(1 << 20, media.reader(name).map_err(io("opening", &path))?);
    let mut magic = [0; RECORDS.len()];
    if size < magic.len() as u64 && tail == Tail::MayBeTorn {
        return Ok(Sound { length: 0, batches: false });
    }
    input.read_exact(&mut magic).map_err(io("reading", &path))?;
    if magic == [0; RECORDS.len()] && size == magic.len() as u64 && tail == Tail::MayBeTorn {
        // The beginning is on the disk before the first batch is.
        return Ok(Sound { length: 0, batches: false });
    }
    let batches = match &magic {
        BATCHES => true,
        RECORDS => false,
        _ => return Err(damaged(0, "it does not begin like a store of this program")),
    };
    let head_size = if batches { BATCH_HEAD } else { RECORD_HEAD };
    let mut offset = magic.len() as u64;
    let mut newest = 0;
    while offset < size {
        let torn = |what| match tail {
            // Only the last write can be torn: where something sound follows, something else has happened.
            Tail::MayBeTorn if !sound_after(media, name, offset, newest, batches)? => {
                Ok(Sound { length: offset, batches })
            }
            _ => Err(damaged(offset, what)),
        };
        let left = size - offset;
        if left < head_size as u64 {
            return torn("it ends in the middle of a record");
        }
        let mut head = [0; BATCH_HEAD];
        input.read_exact(&mut head[..head_size]).map_err(io("reading", &path))?;
        let head = Head::parse(&head, batches);
        // A torn length can claim anything.
        if head.length > left - head_size as u64 {
            return torn("a record is longer than the file");
        }
        let length = usize::try_from(head.length).map_err(|_| damaged(offset, "a record is too long"))?;
        let mut payload = vec![0; length];
        input.read_exact(&mut payload).map_err(io("reading", &path))?;
        // What was never written may read as nothing but zeros, and nothing has the checksum of nothing.
        if length == 0 || !head.fits(&payload) {
            return torn("a checksum does not match");
        }
        for record in records(&payload, batches) {
            let record = record.ok_or_else(|| damaged(offset, "a record can not be read"))?;
            newest = newest.max(record.revision);
            load(record).map_err(|what| damaged(offset, what))?;
        }
        offset += head_size as u64 + head.length;
    }
    Ok(Sound { length: offset, batches })
}

/// What stands before a batch, or before a record of the first version.
struct Head {
    length: u64,
    newest: Option<u64>,
    sum: u32,
}

impl Head {
    fn parse(bytes: &[u8; BATCH_HEAD], batches: bool) -> Self {
        let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let eight = |at: usize| u64::from(four(at)) | u64::from(four(at + 4)) << 32;
        match batches {
            true => Self { length: eight(0), newest: Some(eight(8)), sum: four(16) },
            false => Self { length: u64::from(four(0)), newest: None, sum: four(4) },
        }
    }

    fn fits(&self, payload: &[u8]) -> bool {
        match self.newest {
            Some(newest) => batch_sum(newest, payload) == self.sum,
            None => crc32fast::hash(payload) == self.sum,
        }
    }
}

fn batch_sum(newest: u64, payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&(payload.len() as u64).to_le_bytes());
    sum.update(&newest.to_le_bytes());
    sum.update(payload);
    sum.finalize()
}

/// Whether something whole with a later revision stands anywhere behind an offset.
fn sound_after(
    media: &dyn Media,
    name: &str,
    offset: u64,
    newest: u64,
    batches: bool,
) -> Result<bool, DiskError> {
    let path = media.path(name);
    let mut bytes = Vec::new();
    media.reader(name).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(io("reading", &path))?;
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let head_size = if batches { BATCH_HEAD } else { RECORD_HEAD };
    let sound = |start: usize| {
        let Some(head) = rest[start..].first_chunk::<BATCH_HEAD>() else { return false };
        let head = Head::parse(head, batches);
        let payload = &rest[start + head_size..];
        let payload = usize::try_from(head.length).ok().and_then(|length| payload.get(..length));
        let Some(payload) = payload.filter(|payload| payload.len() >= 8) else { return false };
        let first = payload.first_chunk::<8>().map(|first| u64::from_le_bytes(*first));
        // Cheap checks first: a plausible revision and a length that fits are rare among bytes that are no record.
        let revision = head.newest.or(first).unwrap_or(0);
        revision > newest && revision - newest <= rest.len() as u64 && head.fits(payload)
    };
    Ok((1..rest.len()).any(sound))
}

/// The records of a batch; a record of the first version stands alone. What cannot be read is `None`, and the last.
fn records(payload: &[u8], batches: bool) -> impl Iterator<Item = Option<Record>> {
    let mut rest = payload;
    let mut failed = false;
    std::iter::from_fn(move || {
        if rest.is_empty() || failed {
            return None;
        }
        let taken = if batches {
            rest.split_first_chunk::<4>()
                .and_then(|(length, after)| after.split_at_checked(u32::from_le_bytes(*length) as usize))
        } else {
            Some((rest, &[][..]))
        };
        let record = taken.and_then(|(record, after)| {
            rest = after;
            decode(record)
        });
        failed = record.is_none();
        Some(record)
    })
}

/// Appends a record to a batch.
pub fn push(batch: &mut Vec<u8>, revision: u64, key: [&str; 3], json: Option<&[u8]>) {
    if batch.is_empty() {
        batch.extend_from_slice(&[0; BATCH_HEAD]);
    }
    let start = batch.len();
    batch.extend_from_slice(&[0; 4]);
    encode(batch, revision, key, json);
    let length = length_of(batch.len() - start - 4);
    batch[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes length, revision and checksum before the records of a batch: nothing is added to it any more.
pub fn close(batch: &mut [u8], newest: u64) {
    let (head, payload) = batch.split_at_mut(BATCH_HEAD.min(batch.len()));
    if head.len() == BATCH_HEAD {
        head[..8].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        head[8..16].copy_from_slice(&newest.to_le_bytes());
        head[16..].copy_from_slice(&batch_sum(newest, payload).to_le_bytes());
    }
}

/// A record with a checksum of its own, as snapshots have it.
pub fn alone(out: &mut Vec<u8>, revision: u64, key: [&str; 3], json: Option<&[u8]>) {
    let start = out.len();
    out.extend_from_slice(&[0; RECORD_HEAD]);
    encode(out, revision, key, json);
    let payload = &out[start + RECORD_HEAD..];
    let (length, sum) = (length_of(payload.len()), crc32fast::hash(payload));
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

fn length_of(size: usize) -> u32 {
    u32::try_from(size).expect("invariant: objects are far below 4 GiB")
}

fn encode(out: &mut Vec<u8>, revision: u64, key: [&str; 3], json: Option<&[u8]>) {
    out.extend_from_slice(&revision.to_le_bytes());
    for part in key {
        out.extend_from_slice(&length_of(part.len()).to_le_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    match json {
        None => out.push(0),
        Some(json) => {
            out.push(1);
            out.extend_from_slice(json);
        }
    }
}

fn decode(payload: &[u8]) -> Option<Record> {
    let (revision, mut rest) = payload.split_first_chunk::<8>()?;
    let mut part = || -> Option<String> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        String::from_utf8(text.to_vec()).ok()
    };
    let (collection, namespace, name) = (part()?, part()?, part()?);
    let json = match rest.split_first()? {
        (0, []) => None,
        (1, json) => Some(Bytes::copy_from_slice(json)),
        _ => return None,
    };
    Some(Record { revision: u64::from_le_bytes(*revision), collection, namespace, name, json })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_reads_back_as_written() {
        let mut bytes = Vec::new();
        push(&mut bytes, 7, ["pods", "default", "a"], Some(b"{}"));
        push(&mut bytes, 8, ["pods", "default", "a"], None);
        close(&mut bytes, 8);
        let found: Vec<_> =
            records(&bytes[BATCH_HEAD..], true).map(|record| record.expect("whole")).collect();
        let shown: Vec<_> = found.iter().map(|record| (record.revision, record.json.as_deref())).collect();
        assert_eq!(shown, [(7, Some(&b"{}"[..])), (8, None)]);
    }

    #[test]
    fn arbitrary_bytes_never_decode_into_a_panic() {
        for length in 0..40 {
            for byte in [0, 1, 0xff] {
                let _ = decode(&vec![byte; length]);
                records(&vec![byte; length], true).for_each(drop);
            }
        }
    }
}
