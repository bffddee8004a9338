//! Writes archives in the form that the kernel unpacks as its first filesystem (`newc`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// An archive that grows in memory.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    /// Every name so far: an entry that comes twice would silently take the place of the first.
    names: BTreeSet<String>,
}

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTERS: u32 = 0o020_000;

impl Archive {
    /// A folder and those above it.
    pub(crate) fn folder(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.entry(path, FOLDER | 0o755, (0, 0), &[]);
    }

    /// A file, with the folders above it.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.above(path);
        self.entry(path, FILE | mode, (0, 0), content);
    }

    /// A symbolic link, with the folders above it.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.above(path);
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// A character device.
    pub(crate) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.above(path);
        self.entry(path, CHARACTERS | 0o600, (major, minor), &[]);
    }

    /// Whether there is something of that name.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.names.contains(path)
    }

    /// The archive's bytes; several archives may stand behind each other.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.put("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn above(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        if self.names.insert(path.to_owned()) {
            self.put(path, mode, device, content);
        }
    }

    fn put(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.entries += 1;
        let number = |length: usize| {
            u32::try_from(length).expect("invariant: nothing of 4 GiB goes into the first filesystem")
        };
        let (owner, links, time, check) = (0, 1, 0, 0);
        let fields = [
            self.entries,
            mode,
            owner,
            owner,
            links,
            time,
            number(content.len()),
            0,
            0,
            major,
            minor,
            number(name.len() + 1),
            check,
        ];
        let mut head = String::from("070701");
        for field in fields {
            write!(head, "{field:08X}").expect("invariant: a string takes what is written");
        }
        self.bytes.extend(head.as_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_named_once() {
        let mut archive = Archive::default();
        archive.file("etc/lvm/lvm.conf", 0o644, b"abc");
        archive.file("etc/other", 0o644, b"");
        archive.file("etc/other", 0o644, b"again");
        assert!(archive.has("etc/lvm"));
        assert!(!archive.has("lvm.conf"));
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 512, 0);
        let heads: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"070701")).collect();
        // etc, etc/lvm, the two files and the trailer.
        assert_eq!(heads.len(), 5, "{heads:?}");
        assert!(heads.iter().all(|at| at % 4 == 0), "{heads:?}");
    }

    #[test]
    fn the_kernels_own_format_is_written() {
        let mut archive = Archive::default();
        archive.file("a", 0o755, b"xyz");
        let bytes = archive.finish();
        let head = "070701\
                    00000001000081ED0000000000000000000000010000000000000003\
                    00000000000000000000000000000000\
                    0000000200000000";
        assert_eq!(&bytes[..110], head.as_bytes());
        assert_eq!(&bytes[110..120], b"a\0xyz\x00070\x37"[..10].as_ref());
    }
}
