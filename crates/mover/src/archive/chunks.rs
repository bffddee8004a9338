//! Cutting content into chunks where the content itself says so, exactly as restic does: both then find each other's chunks.
//!
//! A chunk ends where the Rabin fingerprint of the last 64 bytes has 20 zero bits, but not before 512 KiB and at the latest after 8 MiB.

use std::io::Read;

use rustic_cdc::{Polynom64, Rabin64};

const WINDOW: usize = 64;
const SHORTEST: usize = 512 << 10;
const LONGEST: usize = 8 << 20;
const MASK: u64 = (1 << 20) - 1;
/// Bytes that are read at once beyond the shortest chunk.
const STEP: usize = 256 << 10;

/// Tables of a repository's polynomial; slow to make, so they are shared.
pub(crate) struct Cutter {
    out: [Polynom64; 256],
    modulo: [Polynom64; 256],
    shift: u32,
}

impl Cutter {
    pub(crate) fn new(polynomial: u64) -> Self {
        Self {
            out: Rabin64::calculate_out_table(WINDOW, &polynomial),
            modulo: Rabin64::calculate_mod_table(&polynomial),
            shift: (63 - polynomial.leading_zeros()).saturating_sub(8),
        }
    }

    fn append(&self, hash: u64, byte: u8) -> u64 {
        let index = (hash >> self.shift) & 255;
        ((hash << 8) | u64::from(byte)) ^ self.modulo[index as usize]
    }

    /// Looks for an end between two lengths of a chunk; `hash` is that of the window before the first of them.
    fn find(&self, content: &[u8], from: usize, hash: &mut u64) -> Option<usize> {
        let mut length = from;
        for (leaving, entering) in content[from - WINDOW..].iter().zip(&content[from..]) {
            if *hash & MASK == 0 {
                return Some(length);
            }
            *hash = self.append(*hash ^ self.out[usize::from(*leaving)], *entering);
            length += 1;
        }
        (*hash & MASK == 0).then_some(length)
    }

    /// Cuts all that a reader gives; the buffer is used again from file to file.
    pub(crate) fn cut<E>(
        &self,
        mut reader: impl Read,
        buffer: &mut Vec<u8>,
        mut failed: impl FnMut(std::io::Error) -> E,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        buffer.clear();
        let mut ended = false;
        let mut fill = |buffer: &mut Vec<u8>, length: usize, ended: &mut bool| -> std::io::Result<()> {
            let missing = length.saturating_sub(buffer.len()) as u64;
            if missing > 0 && !*ended {
                *ended = reader.by_ref().take(missing).read_to_end(buffer)? < missing as usize;
            }
            Ok(())
        };
        loop {
            fill(buffer, SHORTEST, &mut ended).map_err(&mut failed)?;
            if buffer.len() < SHORTEST {
                return if buffer.is_empty() { Ok(()) } else { take(buffer) };
            }
            let mut hash =
                buffer[SHORTEST - WINDOW..SHORTEST].iter().fold(0, |hash, byte| self.append(hash, *byte));
            let mut looked = SHORTEST;
            let length = loop {
                let limit = buffer.len().min(LONGEST);
                if let Some(found) = self.find(&buffer[..limit], looked, &mut hash) {
                    break found;
                }
                looked = limit;
                if limit == LONGEST || ended {
                    break limit;
                }
                let more = (buffer.len() + STEP).min(LONGEST);
                fill(buffer, more, &mut ended).map_err(&mut failed)?;
            };
            take(&buffer[..length])?;
            // Little is left: no more was read than it took to find the end.
            buffer.drain(..length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn lengths(content: &[u8]) -> Vec<usize> {
        let cutter = Cutter::new(0x3d_a335_8b4d_c173);
        let mut lengths = Vec::new();
        let mut joined = Vec::new();
        let outcome: Result<(), std::io::Error> = cutter.cut(
            content,
            &mut Vec::new(),
            |error| error,
            |chunk| {
                lengths.push(chunk.len());
                joined.extend_from_slice(chunk);
                Ok(())
            },
        );
        outcome.unwrap();
        assert!(joined == content);
        lengths
    }

    #[test]
    fn ends_lie_where_the_whole_window_says_so() {
        let content = noise(20_000_000);
        let cutter = Cutter::new(0x3d_a335_8b4d_c173);
        // The slow way: every fingerprint from nothing.
        let mut expected = Vec::new();
        let mut start = 0;
        let mut length = SHORTEST;
        while start + length <= content.len() {
            let end = start + length;
            // Only a few are worth the whole sum.
            let hash = content[end - WINDOW..end].iter().fold(0, |hash, byte| cutter.append(hash, *byte));
            if hash & MASK == 0 || length == LONGEST {
                expected.push(length);
                start = end;
                length = SHORTEST;
            } else {
                length += 1;
            }
        }
        expected.push(content.len() - start);
        assert_eq!(lengths(&content), expected);
        assert!(expected.len() > 5);
    }

    #[test]
    fn short_and_uniform_content_is_cut_at_its_bounds() {
        let check = |content: &[u8], expected: &[usize]| assert_eq!(lengths(content), expected);
        check(&[], &[]);
        check(&[1], &[1]);
        check(&vec![1; SHORTEST - 1], &[SHORTEST - 1]);
        // Zeros have a fingerprint of zero, so each chunk of them is as short as can be.
        check(&vec![0; SHORTEST + 5], &[SHORTEST, 5]);
        assert!(lengths(&vec![7; 3 * LONGEST]).iter().all(|length| *length <= LONGEST));
    }
}
