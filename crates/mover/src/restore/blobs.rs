//! Blobs of a repository: found by the index, read in few large ranges, opened, unpacked and given to whoever wanted them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use rustic_core::repofile::Tree;
use rustic_core::{FileType, Id, IndexedFullStatus, PackedId, Repository, TreeId};

use crate::Error;
use crate::backend::key;
use crate::crypto::{OVERHEAD, Seal, hex, sha256};
use crate::objects::Objects;
use crate::operation::Operation;

/// Blobs of an open repository.
pub(crate) struct Blobs {
    pub(crate) engine: Repository<IndexedFullStatus>,
    pub(crate) seal: Seal,
    pub(crate) objects: Objects,
}

/// Where a blob lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pack: Id,
    offset: u32,
    length: u32,
    /// Length once unpacked; 0 for a blob that is not packed.
    unpacked: u32,
}

impl Place {
    /// Length of the content.
    pub(crate) fn size(&self) -> u64 {
        match self.unpacked {
            0 => u64::from(self.length).saturating_sub(OVERHEAD as u64),
            unpacked => unpacked.into(),
        }
    }
}

/// A blob that somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub(crate) place: Place,
    pub(crate) id: [u8; 32],
    /// Which of the waiting files, and where in it.
    pub(crate) file: usize,
    pub(crate) at: u64,
}

/// A blob's content is no longer than this; restic's own are at most 8 MiB.
const LONGEST: u32 = 64 << 20;
/// Bytes to ask for at once, and the gap that is cheaper to read over than to ask around.
const RANGE: u32 = 4 << 20;
const GAP: u32 = 32 << 10;

impl Blobs {
    pub(crate) fn operation(&self) -> &Arc<Operation> {
        &self.objects.operation
    }

    /// Where a blob lies.
    pub(crate) fn find<T: PackedId + std::fmt::Display>(&self, id: &T) -> Result<Place, Error> {
        let entry = self
            .engine
            .get_index_entry(id)
            .map_err(|_| Error::Damaged(format!("the repository lacks the blob {id}")))?;
        let place = Place {
            pack: *entry.pack,
            offset: entry.location.offset,
            length: entry.location.length,
            unpacked: entry.location.uncompressed_length.map_or(0, std::num::NonZero::get),
        };
        let sane = place.length >= OVERHEAD as u32
            && place.length <= LONGEST
            && place.unpacked <= LONGEST
            && place.offset.checked_add(place.length).is_some();
        if sane { Ok(place) } else { Err(Error::Damaged(format!("the index misplaces the blob {id}"))) }
    }

    /// A directory's entries.
    pub(crate) fn tree(&self, id: &TreeId) -> Result<Tree, Error> {
        let place = self.find(id)?;
        let name: Id = **id;
        let mut content = None;
        let wanted = Wanted { place, id: bytes(&name), file: 0, at: 0 };
        let sealed = self.read(&place.pack, place.offset, place.length)?;
        let mut unpacker = Unpacker::new()?;
        self.open(&wanted, BytesMut::from(sealed), &mut unpacker, |data| {
            if sha256(data) == wanted.id {
                content = Some(serde_json::from_slice(data));
            }
            Ok(())
        })?;
        let damaged = |what: &str| Error::Damaged(format!("the tree {id} {what}"));
        content
            .ok_or_else(|| damaged("is not what its name says"))?
            .map_err(|error| damaged(&format!("makes no sense: {error}")))
    }

    /// Reads many blobs and hands out their contents, in no particular order, from several threads. The contents are whole and sealed
    /// by the repository's key, but not compared with their names: that is for whoever reads back what was written.
    pub(crate) fn fetch(
        &self,
        mut wanted: Vec<Wanted>,
        take: impl Fn(&Wanted, &[u8]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        wanted.sort_unstable();
        let ranges = ranges(&wanted);
        let (unpackers, next) = (self.objects.parallelism().min(ranges.len()), AtomicUsize::new(0));
        let work = || -> Result<(), Error> {
            let mut unpacker = Unpacker::new()?;
            while let Some(range) = ranges.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.operation().check()?;
                self.fetch_range(&wanted[range.clone()], &mut unpacker, &take)?;
            }
            Ok(())
        };
        in_parallel(unpackers, &work).map_err(|error| self.operation().fail(error))
    }

    /// Reads blobs that lie near each other.
    fn fetch_range(
        &self,
        wanted: &[Wanted],
        unpacker: &mut Unpacker,
        take: &impl Fn(&Wanted, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(()) };
        let start = first.place.offset;
        let end =
            wanted.iter().map(|wanted| wanted.place.offset + wanted.place.length).max().unwrap_or(start);
        debug_assert_eq!(first.place.pack, last.place.pack);
        let mut range = BytesMut::from(self.read(&first.place.pack, start, end - start)?);
        for same in wanted.chunk_by(|one, other| one.place == other.place) {
            let place = same[0].place;
            // Blobs of a pack do not overlap; if the index says so, each is opened from bytes of its own.
            let at = (place.offset - start) as usize;
            let Some(sealed) = range.get_mut(at..at + place.length as usize) else {
                return Err(Error::Damaged("blobs of a pack overlap".into()));
            };
            let content = unpacker.open(&self.seal, &place, sealed).ok_or_else(|| damaged(&same[0]))?;
            same.iter().try_for_each(|wanted| take(wanted, content))?;
        }
        Ok(())
    }

    fn open(
        &self,
        wanted: &Wanted,
        mut sealed: BytesMut,
        unpacker: &mut Unpacker,
        take: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        take(unpacker.open(&self.seal, &wanted.place, &mut sealed).ok_or_else(|| damaged(wanted))?)
    }

    fn read(&self, pack: &Id, offset: u32, length: u32) -> Result<Bytes, Error> {
        self.objects.get_range(&key(FileType::Pack, pack), offset.into(), length as usize)
    }
}

fn damaged(wanted: &Wanted) -> Error {
    let pack = wanted.place.pack.to_hex();
    Error::Damaged(format!("the blob {} in the pack {} is damaged", hex(&wanted.id), pack.as_str()))
}

/// The bytes of an id.
pub(crate) fn bytes(id: &Id) -> [u8; 32] {
    let text = id.to_hex();
    let digit = |at: usize| u8::from_str_radix(&text.as_str()[at..at + 2], 16).unwrap_or_default();
    std::array::from_fn(|index| digit(index * 2))
}

/// Runs the same work in several threads; the first error wins.
pub(crate) fn in_parallel(
    threads: usize,
    work: &(impl Fn() -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        // This thread works too.
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut outcome = work();
        for other in others {
            let ended = other.join().unwrap_or_else(|_| Err(Error::Transient("a thread died".into())));
            outcome = outcome.and(ended);
        }
        outcome
    })
}

/// Groups blobs that are read with one request.
fn ranges(wanted: &[Wanted]) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, next) in wanted.iter().enumerate() {
        if let Some(range) = ranges.last_mut() {
            let (first, last) = (&wanted[range.start].place, &wanted[range.end - 1].place);
            let reached = last.offset + last.length;
            let near = next.place.offset <= reached.saturating_add(GAP)
                && (next.place.offset >= reached || next.place == *last);
            let short = (next.place.offset + next.place.length).saturating_sub(first.offset) <= RANGE;
            if first.pack == next.place.pack && near && short {
                range.end = index + 1;
                continue;
            }
        }
        ranges.push(index..index + 1);
    }
    ranges
}

/// Opens and unpacks blobs, with buffers that stay.
struct Unpacker {
    zstd: zstd::bulk::Decompressor<'static>,
    content: Vec<u8>,
}

impl Unpacker {
    fn new() -> Result<Self, Error> {
        let zstd = zstd::bulk::Decompressor::new()
            .map_err(|error| Error::Transient(format!("preparing to unpack: {error}")))?;
        Ok(Self { zstd, content: Vec::new() })
    }

    fn open<'a>(&'a mut self, seal: &Seal, place: &Place, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let body = seal.open_in_place(sealed)?;
        if place.unpacked == 0 {
            return Some(body);
        }
        self.content.clear();
        self.content.reserve(place.unpacked as usize);
        let length = self.zstd.decompress_to_buffer(body, &mut self.content).ok()?;
        (length == place.unpacked as usize).then_some(&self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_blobs_of_a_pack_are_read_at_once() {
        let check = |places: &[(u8, u32, u32)], expected: &[(usize, usize)]| {
            let wanted: Vec<_> = places
                .iter()
                .map(|(pack, offset, length)| {
                    let pack = format!("{pack:064x}").parse().unwrap();
                    let place = Place { pack, offset: *offset, length: *length, unpacked: 0 };
                    Wanted { place, id: [0; 32], file: 0, at: 0 }
                })
                .collect();
            let found: Vec<_> = ranges(&wanted).iter().map(|range| (range.start, range.end)).collect();
            assert_eq!(found, expected, "{places:?}");
        };
        check(&[], &[]);
        check(&[(1, 0, 100), (1, 100, 50), (1, 150, 50)], &[(0, 3)]);
        check(&[(1, 0, 100), (2, 100, 50)], &[(0, 1), (1, 2)]);
        // The same blob twice is read once.
        check(&[(1, 0, 100), (1, 0, 100)], &[(0, 2)]);
        // A small gap is read over, a large one is not.
        check(&[(1, 0, 100), (1, 1000, 100), (1, 1_000_000, 100)], &[(0, 2), (2, 3)]);
        check(&[(1, 0, RANGE), (1, RANGE, 100)], &[(0, 1), (1, 2)]);
        // An index that lets blobs overlap gets no shared range.
        check(&[(1, 0, 100), (1, 50, 100)], &[(0, 1), (1, 2)]);
    }

    #[test]
    fn the_bytes_of_an_id_are_its_digits() {
        let id: Id = "00ff".repeat(16).parse().unwrap();
        assert_eq!(bytes(&id)[..4], [0, 255, 0, 255]);
    }
}
