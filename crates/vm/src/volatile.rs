//! Disks that forget what was not flushed.
//!
//! The emulator writes down every write, flush and discard of such a disk, in the format of the kernel's dm-log-writes. After
//! a power cut the disk is made again from what it was at boot and from this record: everything up to the last flush, and
//! of what came later only what was written through, or what chance keeps.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;

const SECTOR: u64 = 512;
const FLUSH: u64 = 1;
const WRITTEN_THROUGH: u64 = 2;
const DISCARD: u64 = 4;

/// One step of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    sector: u64,
    sectors: u64,
    flags: u64,
    /// Where its data lies in the record.
    data: u64,
}

/// The files beside a disk.
#[derive(Debug)]
struct Beside {
    /// The disk as it was at boot.
    at_boot: PathBuf,
    /// What the emulator wrote down since.
    record: PathBuf,
}

/// Where the emulator writes down what happens to a disk.
pub(crate) fn record(disk: &Path) -> PathBuf {
    beside(disk).record
}

/// Keeps the disk as it is, and begins an empty record.
pub(crate) fn begin(disk: &Path) -> Result<(), Error> {
    let Beside { at_boot, record } = beside(disk);
    copy(disk, &at_boot)?;
    File::create(&record).map(drop).map_err(Error::file("making", record))
}

/// Makes the disk again as the power cut left it; says how many writes it forgot.
pub(crate) fn forget(disk: &Path, keeps: impl FnMut() -> bool) -> Result<usize, Error> {
    let Beside { at_boot, record } = beside(disk);
    copy(&at_boot, disk)?;
    let record = File::open(&record).map_err(Error::file("reading", record))?;
    let file = OpenOptions::new().write(true).open(disk).map_err(Error::file("writing", disk))?;
    replay(&record, &file, keeps).map_err(Error::file("replaying", disk))
}

/// Numbers that look like chance and are the same for the same seed.
pub(crate) fn chance(seed: u64) -> impl FnMut() -> bool {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) & 1 == 1
    }
}

fn beside(disk: &Path) -> Beside {
    Beside { at_boot: disk.with_extension("at-boot"), record: disk.with_extension("record") }
}

/// Copies a disk with its holes.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let output = Command::new("cp")
        .args(["--sparse=always", "--reflink=auto", "--"])
        .args([from, to])
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Start { program: "cp".to_owned(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Tool { program: "cp".to_owned(), doing: "copying a disk", output })
}

fn replay(record: &File, disk: &File, mut keeps: impl FnMut() -> bool) -> io::Result<usize> {
    let entries = entries(record)?;
    let flushed = entries.iter().rposition(|entry| entry.flags & FLUSH != 0).unwrap_or(0);
    let mut forgotten = 0;
    for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.sectors > 0) {
        if number < flushed || entry.flags & WRITTEN_THROUGH != 0 || keeps() {
            apply(entry, record, disk)?;
        } else {
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

fn apply(entry: &Entry, record: &File, disk: &File) -> io::Result<()> {
    let (mut at, mut left) = (0, entry.sectors * SECTOR);
    while left > 0 {
        let mut part = vec![0; usize::try_from(left.min(1 << 20)).unwrap_or(1 << 20)];
        // What is discarded reads as zeros.
        if entry.flags & DISCARD == 0 {
            record.read_exact_at(&mut part, entry.data + at)?;
        }
        disk.write_all_at(&part, entry.sector * SECTOR + at)?;
        at += part.len() as u64;
        left -= part.len() as u64;
    }
    Ok(())
}

/// Reads the record up to where the emulator was killed.
fn entries(record: &File) -> io::Result<Vec<Entry>> {
    let length = record.metadata()?.len();
    let mut entries = Vec::new();
    // The first sector describes the record; its count of entries is only brought up to date now and then.
    let mut at = SECTOR;
    while at + SECTOR <= length {
        let mut head = [0; 24];
        record.read_exact_at(&mut head, at)?;
        let number = |field: usize| {
            let bytes = head[field * 8..][..8].try_into();
            u64::from_le_bytes(bytes.expect("invariant: a field has eight bytes"))
        };
        let entry = Entry { sector: number(0), sectors: number(1), flags: number(2), data: at + SECTOR };
        let data = if entry.flags & DISCARD == 0 { entry.sectors * SECTOR } else { 0 };
        // Room that was taken and never filled, or data that did not make it.
        if (entry.sectors, entry.flags) == (0, 0) || entry.data + data > length {
            break;
        }
        entries.push(entry);
        at = entry.data + data;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of these entries; every write writes its own number, counted from 1.
    fn record_of(entries: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        for (number, (sector, sectors, flags)) in (1_u8..).zip(entries) {
            let mut head = Vec::new();
            [*sector, *sectors, *flags, 0].iter().for_each(|field| head.extend(field.to_le_bytes()));
            head.resize(512, 0);
            bytes.extend(head);
            if flags & DISCARD == 0 {
                bytes.extend(vec![number; 512 * usize::try_from(*sectors).unwrap()]);
            }
        }
        bytes
    }

    fn file(content: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        file
    }

    #[test]
    fn only_what_was_flushed_or_written_through_is_sure_to_stay() {
        let check = |entries: &[(u64, u64, u64)], keeps: bool, expected: &[u8; 4], forgotten: usize| {
            let disk = file(&[9; 4 * 512]);
            assert_eq!(
                replay(&file(&record_of(entries)), &disk, || keeps).unwrap(),
                forgotten,
                "{entries:?}"
            );
            let mut found = [0; 4 * 512];
            disk.read_exact_at(&mut found, 0).unwrap();
            assert_eq!(
                found.as_chunks::<512>().0.iter().map(|sector| sector[0]).collect::<Vec<_>>(),
                expected
            );
        };
        check(&[], false, &[9, 9, 9, 9], 0);
        check(&[(0, 1, 0)], false, &[9, 9, 9, 9], 1);
        check(&[(0, 1, 0)], true, &[1, 9, 9, 9], 0);
        check(&[(0, 1, 0), (0, 0, FLUSH), (1, 2, 0)], false, &[1, 9, 9, 9], 1);
        check(&[(0, 1, 0), (0, 0, FLUSH), (1, 2, 0)], true, &[1, 3, 3, 9], 0);
        check(&[(0, 1, 0), (3, 1, WRITTEN_THROUGH)], false, &[9, 9, 9, 2], 1);
        check(&[(0, 4, 0), (1, 2, DISCARD), (0, 0, FLUSH)], false, &[1, 0, 0, 1], 0);
    }

    #[test]
    fn a_torn_record_ends_where_it_is_torn() {
        let whole = record_of(&[(0, 1, 0), (0, 0, FLUSH), (1, 1, 0)]);
        let count = |bytes: &[u8]| entries(&file(bytes)).unwrap().len();
        assert_eq!(count(&whole), 3);
        assert_eq!(count(&whole[..whole.len() - 1]), 2);
        assert_eq!(count(&whole[..512]), 0);
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[whole, vec![0; 2048]].concat()), 3);
    }

    #[test]
    fn the_same_seed_gives_the_same_chance() {
        let draw = |seed| {
            let mut chance = chance(seed);
            (0..64).map(|_| chance()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((16..48).contains(&draw(3).into_iter().filter(|kept| *kept).count()));
    }
}
