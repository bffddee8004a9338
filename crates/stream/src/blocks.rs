//! Blocks of a file or device: how they are hashed, and which of them differ from those of the last sync.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::Error;
use crate::send::sink::Sink;
use crate::wire::record::MOST_DATA;

/// Hash of a block; all zero for a block of zeroes.
pub(crate) type Hash = [u8; 16];

/// The hash of a block of zeroes, or of no block.
pub(crate) const ZERO: Hash = [0; 16];

/// Smallest and largest size of a block.
pub(crate) const SMALLEST: u32 = 4096;
pub(crate) const LARGEST: u32 = 32 << 10;

/// Whether a block may have this size.
pub(crate) fn is_size(block: u32) -> bool {
    (SMALLEST..=LARGEST).contains(&block) && block.is_power_of_two()
}

/// Bytes that are read at once.
const WINDOW: usize = 256 << 10;

/// Hashes a block.
pub(crate) fn hash(secret: &[u8; 32], block: &[u8]) -> Hash {
    if is_zero(block) {
        return ZERO;
    }
    let mut hash = ZERO;
    hash.copy_from_slice(&blake3::keyed_hash(secret, block).as_bytes()[..16]);
    hash
}

fn is_zero(block: &[u8]) -> bool {
    // Most blocks show at once that they are not; the rest is compared in steps that the compiler makes wide.
    let mut steps = block.chunks_exact(64);
    steps.by_ref().all(|step| step.iter().fold(0, |all, byte| all | byte) == 0)
        && steps.remainder().iter().all(|byte| *byte == 0)
}

/// Goes through a file's blocks. What differs from the base is sent; the hashes of all are handed back with the length that was read.
pub(crate) struct Compare<'a> {
    pub(crate) file: &'a File,
    pub(crate) size: u64,
    pub(crate) block: u32,
    pub(crate) secret: &'a [u8; 32],
    /// Hashes of the blocks that the target has.
    pub(crate) base: &'a [Hash],
    /// Where changes can be, if that is known; everything else is as in the base.
    pub(crate) within: Option<&'a [Range<u64>]>,
}

impl Compare<'_> {
    /// Sends what differs. `open` is called before the first record.
    pub(crate) fn run(
        &self,
        sink: &mut Sink<'_>,
        open: &mut dyn FnMut(&mut Sink<'_>) -> Result<(), Error>,
    ) -> Result<(Vec<Hash>, u64), Error> {
        let block = u64::from(self.block);
        let mut hashes = Vec::with_capacity(self.size.div_ceil(block) as usize);
        let mut window = vec![0; WINDOW.min(self.size.next_multiple_of(block) as usize)];
        let (mut at, mut data_until) = (0, 0);
        while at < self.size {
            sink.check()?;
            if let Some(skipped) = self.unchanged_from(at) {
                let until = (skipped / block) as usize;
                hashes.extend((hashes.len()..until).map(|n| self.base.get(n).copied().unwrap_or(ZERO)));
                at = skipped;
                continue;
            }
            if at >= data_until {
                let (start, end) = self.next_data(at)?;
                if start > at {
                    self.hole(at..start, &mut hashes, sink, open)?;
                    at = start;
                    continue;
                }
                data_until = end;
            }
            let room = window.len().min((data_until - at).next_multiple_of(block) as usize);
            let limit = self.limit(at).min(self.size);
            let wanted = room.min((limit - at) as usize);
            let read = read_full(self.file, &mut window[..wanted], at)?;
            self.window(at, &window[..read], &mut hashes, sink, open)?;
            at += read as u64;
            if read < wanted {
                // It became shorter while it was read: this is its end then.
                return Ok((hashes, at));
            }
        }
        Ok((hashes, self.size))
    }

    /// Where the next change can be, if it is not here.
    fn unchanged_from(&self, at: u64) -> Option<u64> {
        let within = self.within?;
        let block = u64::from(self.block);
        let next = within.iter().find(|range| range.end > at);
        let start = next.map_or(self.size, |range| (range.start / block * block).min(self.size));
        (start > at).then(|| if start == self.size { start.next_multiple_of(block) } else { start })
    }

    /// How far changes can go from here.
    fn limit(&self, at: u64) -> u64 {
        let Some(within) = self.within else { return u64::MAX };
        let range = within.iter().find(|range| range.end > at);
        range.map_or(u64::MAX, |range| range.end.next_multiple_of(self.block.into()))
    }

    /// Where the next bytes that are no hole begin and end, in whole blocks.
    fn next_data(&self, at: u64) -> Result<(u64, u64), Error> {
        let block = u64::from(self.block);
        let start = match rustix::fs::seek(self.file, SeekFrom::Data(at)) {
            Ok(start) => start / block * block,
            Err(Errno::NXIO) => return Ok((self.size.next_multiple_of(block), self.size)),
            // Not every file knows its holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY) => return Ok((at, self.size)),
            Err(error) => return Err(Error::Source(format!("looking for holes: {error}"))),
        };
        let end = rustix::fs::seek(self.file, SeekFrom::Hole(start.max(at)))
            .map_or(self.size, |end| end.next_multiple_of(block));
        Ok((start.max(at), end.max(at + block).min(self.size.next_multiple_of(block))))
    }

    fn hole(
        &self,
        hole: Range<u64>,
        hashes: &mut Vec<Hash>,
        sink: &mut Sink<'_>,
        open: &mut dyn FnMut(&mut Sink<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let block = u64::from(self.block);
        let (mut start, until) = (hole.start, hole.end.min(self.size));
        for at in (hole.start..until).step_by(self.block as usize) {
            let same = self.base.get(hashes.len()).is_none_or(|hash| *hash == ZERO);
            hashes.push(ZERO);
            if same {
                if start < at {
                    open(sink)?;
                    sink.zero(start, at - start)?;
                }
                start = at + block;
            }
        }
        if start < until {
            open(sink)?;
            sink.zero(start, until - start)?;
        }
        Ok(())
    }

    fn window(
        &self,
        at: u64,
        bytes: &[u8],
        hashes: &mut Vec<Hash>,
        sink: &mut Sink<'_>,
        open: &mut dyn FnMut(&mut Sink<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let block = self.block as usize;
        let from = hashes.len();
        hashes.extend(bytes.chunks(block).map(|bytes| hash(self.secret, bytes)));
        let differs = |n: usize| self.base.get(n).copied().unwrap_or(ZERO) != hashes[n];
        let most = MOST_DATA / block;
        let mut n = from;
        while n < hashes.len() {
            if !differs(n) {
                n += 1;
                continue;
            }
            let zero = hashes[n] == ZERO;
            let limit = if zero { hashes.len() } else { hashes.len().min(n + most) };
            let until = (n..limit).find(|m| !differs(*m) || (hashes[*m] == ZERO) != zero).unwrap_or(limit);
            let range = (n - from) * block..((until - from) * block).min(bytes.len());
            let offset = at + range.start as u64;
            open(sink)?;
            if zero {
                sink.zero(offset, range.len() as u64)?;
            } else {
                sink.data(offset, &bytes[range], &hashes[n..until])?;
            }
            n = until;
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_full(file: &File, buffer: &mut [u8], at: u64) -> Result<usize, Error> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Source(format!("reading at byte {at}: {error}"))),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zeroes_hash_to_zero() {
        let check = |block: &[u8], zero: bool| assert_eq!(hash(&[7; 32], block) == ZERO, zero);
        check(&[0; 4096], true);
        check(&[0; 5], true);
        check(&[], true);
        let mut block = [0; 4096];
        block[4095] = 1;
        check(&block, false);
        check(&[0, 0, 1], false);
        assert_ne!(hash(&[7; 32], b"a"), hash(&[8; 32], b"a"));
    }
}
