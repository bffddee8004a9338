//! Whether a filesystem still has to be put in order after a crash. What was committed, and lies only in its journal, is not seen until then.

use super::{Filesystem, MountError};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// What a filesystem says about its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Nothing in it is missing elsewhere.
    Clean,
    /// It holds what is nowhere else yet.
    Dirty,
    /// Only a mount can tell.
    Unknown,
}

/// Reads the journal's state from the superblock.
pub fn journal(filesystem: Filesystem, device: &Path) -> Result<Journal, MountError> {
    let file = std::fs::File::open(device).map_err(|error| unreadable(device, &error))?;
    let read =
        |at: u64, into: &mut [u8]| file.read_exact_at(into, at).map_err(|error| unreadable(device, &error));
    let dirty = |dirty: bool| if dirty { Journal::Dirty } else { Journal::Clean };
    match filesystem {
        Filesystem::Ext4 => {
            let (mut magic, mut incompatible) = ([0; 2], [0; 4]);
            read(1024 + 0x38, &mut magic)?;
            read(1024 + 0x60, &mut incompatible)?;
            // The feature "needs recovery" is there from the mount to the clean unmount, or freeze.
            let needed = u32::from_le_bytes(incompatible) & 0x4 != 0;
            Ok(if u16::from_le_bytes(magic) == 0xef53 { dirty(needed) } else { Journal::Unknown })
        }
        Filesystem::Btrfs => {
            let (mut magic, mut log) = ([0; 8], [0; 8]);
            read(0x1_0040, &mut magic)?;
            read(0x1_0060, &mut log)?;
            let known = &magic == b"_BHRfS_M";
            Ok(if known { dirty(u64::from_le_bytes(log) != 0) } else { Journal::Unknown })
        }
        // Where its log begins and ends is told by the log alone.
        Filesystem::Xfs => Ok(Journal::Unknown),
    }
}

/// Whether the kernel lets anybody write to a block device. Where that cannot be told, it counts as one that cannot be written to.
pub fn is_writable(device: &Path) -> bool {
    let Ok(number) = std::fs::metadata(device).map(|found| found.rdev()) else { return false };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let said = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
    said.is_ok_and(|said| said.trim() == "0")
}

fn unreadable(device: &Path, error: &std::io::Error) -> MountError {
    MountError::Failed {
        program: "read".to_owned(),
        doing: format!("looking at the journal on {}", device.display()),
        detail: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superblocks_say_whether_a_crash_left_something_to_do() {
        let image = |size: usize, parts: &[(usize, &[u8])]| {
            let file = tempfile::NamedTempFile::new().expect("file");
            let mut bytes = vec![0; size];
            for (at, part) in parts {
                bytes[*at..at + part.len()].copy_from_slice(part);
            }
            std::fs::write(file.path(), bytes).expect("written");
            file
        };
        let ext4 = |feature: u8| image(4096, &[(1024 + 0x38, &[0x53, 0xef]), (1024 + 0x60, &[feature])]);
        let btrfs = |log: u8| image(0x2_0000, &[(0x1_0040, b"_BHRfS_M"), (0x1_0060, &[log])]);
        for (filesystem, image, expected) in [
            (Filesystem::Ext4, ext4(0x42), Journal::Clean),
            (Filesystem::Ext4, ext4(0x46), Journal::Dirty),
            (Filesystem::Ext4, image(4096, &[]), Journal::Unknown),
            (Filesystem::Btrfs, btrfs(0), Journal::Clean),
            (Filesystem::Btrfs, btrfs(1), Journal::Dirty),
            (Filesystem::Btrfs, image(0x2_0000, &[]), Journal::Unknown),
            (Filesystem::Xfs, image(4096, &[(0, b"XFSB")]), Journal::Unknown),
        ] {
            assert_eq!(journal(filesystem, image.path()), Ok(expected), "{filesystem:?}");
        }
    }
}
