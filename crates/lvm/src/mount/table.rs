//! The kernel's table of mounts.

use super::MountError;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    /// Where it is.
    pub target: PathBuf,
    /// What is mounted: a device, or a name that the filesystem chose.
    pub source: PathBuf,
    /// The folder of the filesystem that is shown: `/`, or another one in a bind mount.
    pub root: PathBuf,
    /// Type of the filesystem.
    pub filesystem: String,
    /// Number of the device; for btrfs one that no device has.
    pub device: (u32, u32),
    /// Whether it was mounted read-only.
    pub read_only: bool,
}

/// All mounts that this process sees, in the order in which they were made.
pub fn mount_points() -> Result<Vec<MountPoint>, MountError> {
    let text = std::fs::read("/proc/self/mountinfo").map_err(|error| MountError::Table(error.to_string()))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Lines look like `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse(line: &[u8]) -> Option<MountPoint> {
    let mut words = line.split(|byte| *byte == b' ');
    let numbers = words.by_ref().nth(2)?;
    let root = unescape(words.next()?);
    let target = unescape(words.next()?);
    let options = words.next()?;
    let mut rest = words.skip_while(|word| *word != b"-").skip(1);
    let filesystem = String::from_utf8_lossy(rest.next()?).into_owned();
    let source = unescape(rest.next()?);
    let (major, minor) = std::str::from_utf8(numbers).ok()?.split_once(':')?;
    Some(MountPoint {
        target,
        source,
        root,
        filesystem,
        device: (major.parse().ok()?, minor.parse().ok()?),
        read_only: options.split(|byte| *byte == b',').any(|option| option == b"ro"),
    })
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        let digits = (word[at] == b'\\').then(|| word.get(at + 1..at + 4)).flatten();
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                at += 4;
            }
            None => {
                bytes.push(word[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let check = |line: &str, expected: Option<(&str, &str, &str, &str, (u32, u32), bool)>| {
            let read = parse(line.as_bytes());
            let read = read.as_ref().map(|point| {
                (
                    point.target.to_str().unwrap(),
                    point.source.to_str().unwrap(),
                    point.root.to_str().unwrap(),
                    point.filesystem.as_str(),
                    point.device,
                    point.read_only,
                )
            });
            assert_eq!(read, expected, "{line}");
        };
        check(
            "36 35 253:3 / /mnt/data rw,relatime shared:1 - ext4 /dev/mapper/g-a rw",
            Some(("/mnt/data", "/dev/mapper/g-a", "/", "ext4", (253, 3), false)),
        );
        check(
            r"40 35 0:33 /volumes/a /mnt/with\040space\134 ro,nosuid - xfs /dev/g/a rw,attr2",
            Some((r"/mnt/with space\", "/dev/g/a", "/volumes/a", "xfs", (0, 33), true)),
        );
        check(
            "41 35 0:34 / /mnt/many ro master:1 shared:7 unbindable - btrfs /dev/g/b rw",
            Some(("/mnt/many", "/dev/g/b", "/", "btrfs", (0, 34), true)),
        );
        check("", None);
        check("36 35 98:0 / /x rw", None);
        check("36 35 nonsense / /x rw - ext4 /dev/x rw", None);
    }

    #[test]
    fn the_table_of_this_system_can_be_read() {
        assert!(mount_points().unwrap().iter().any(|point| point.target.to_str() == Some("/proc")));
    }
}
