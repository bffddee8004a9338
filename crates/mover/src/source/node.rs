//! One entry of a directory as the repository describes it.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustic_core::repofile::{Metadata, Node, NodeType};
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;
use serde_json::json;

/// Mode bits as Go has them, which restic's format keeps.
pub(crate) mod go {
    pub(crate) const DIR: u32 = 1 << 31;
    pub(crate) const SYMLINK: u32 = 1 << 27;
    pub(crate) const DEVICE: u32 = 1 << 26;
    pub(crate) const FIFO: u32 = 1 << 25;
    pub(crate) const SOCKET: u32 = 1 << 24;
    pub(crate) const SETUID: u32 = 1 << 23;
    pub(crate) const SETGID: u32 = 1 << 22;
    pub(crate) const CHARDEV: u32 = 1 << 21;
    pub(crate) const STICKY: u32 = 1 << 20;
}

/// Describes one entry of an open directory; none when it has gone meanwhile.
pub(super) fn describe(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Option<(Node, Stat)>, Errno> {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        stat => stat?,
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => NodeType::Dir,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            NodeType::from_link(Path::new(OsStr::from_bytes(target.to_bytes())))
        }
        FileType::BlockDevice => NodeType::Dev { device: stat.st_rdev },
        FileType::CharacterDevice => NodeType::Chardev { device: stat.st_rdev },
        FileType::Fifo => NodeType::Fifo,
        FileType::Socket => NodeType::Socket,
        _ => NodeType::File,
    };
    let metadata = metadata(&stat, &attributes(folder, name)?);
    Ok(Some((Node::new_node(name, kind, metadata), stat)))
}

/// What a directory itself is like.
pub(super) fn describe_root(folder: BorrowedFd<'_>, shown: &OsStr) -> Result<Node, Errno> {
    let stat = rustix::fs::fstat(folder)?;
    let attributes = attributes(folder, OsStr::new("."))?;
    Ok(Node::new_node(shown, NodeType::Dir, metadata(&stat, &attributes)))
}

fn metadata(stat: &Stat, attributes: &[Attribute]) -> Metadata {
    let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let time = |seconds: i64, nanoseconds: u64| {
        jiff::Timestamp::new(seconds, i32::try_from(nanoseconds).unwrap_or_default()).ok()
    };
    let mtime = time(stat.st_mtime, stat.st_mtime_nsec);
    let links = if folder { 0 } else { stat.st_nlink };
    let mut metadata = Metadata {
        mode: Some(to_go(stat.st_mode)),
        mtime,
        // The real one changes with every reading, and with it every tree above.
        atime: mtime,
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        uid: Some(stat.st_uid),
        gid: Some(stat.st_gid),
        inode: stat.st_ino,
        // Only hard links need it, and it differs from mount to mount.
        device_id: if links > 1 { stat.st_dev } else { 0 },
        size: if folder { 0 } else { u64::try_from(stat.st_size).unwrap_or_default() },
        links,
        ..Metadata::default()
    };
    if !attributes.is_empty() {
        let attributes = attributes.iter().map(
            |(name, value)| json!({ "name": String::from_utf8_lossy(name), "value": STANDARD.encode(value) }),
        );
        // The engine does not name this type; its stored form is known.
        metadata.extended_attributes = serde_json::from_value(attributes.collect())
            .expect("invariant: the engine reads the stored form of attributes");
    }
    metadata
}

/// Name and value.
type Attribute = (Vec<u8>, Vec<u8>);

/// The extended attributes of an entry. A file system without any gives none.
fn attributes(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<Attribute>, Errno> {
    // There is no call that takes an open directory and a name.
    let mut path = format!("/proc/self/fd/{}/", folder.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.as_bytes());
    let path = OsStr::from_bytes(&path);
    let mut names = [0; 1024];
    let names = match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOENT) => return Ok(Vec::new()),
        Ok(length) => names[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut names = vec![0; 1 << 16];
            let length = rustix::fs::llistxattr(path, &mut names[..])?;
            names.truncate(length);
            names
        }
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 1 << 16];
        match rustix::fs::lgetxattr(path, name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                found.push((name.to_vec(), value));
            }
            // Removed meanwhile, or not for our eyes.
            Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn to_go(mode: u32) -> u32 {
    let kind = match FileType::from_raw_mode(mode) {
        FileType::Directory => go::DIR,
        FileType::Symlink => go::SYMLINK,
        FileType::BlockDevice => go::DEVICE,
        FileType::CharacterDevice => go::DEVICE | go::CHARDEV,
        FileType::Fifo => go::FIFO,
        FileType::Socket => go::SOCKET,
        _ => 0,
    };
    let flag = |bit: u32, flag: u32| if mode & bit != 0 { flag } else { 0 };
    kind | (mode & 0o777) | flag(0o4000, go::SETUID) | flag(0o2000, go::SETGID) | flag(0o1000, go::STICKY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_kept_as_go_has_them() {
        let check = |mode, expected| assert_eq!(to_go(mode), expected, "{mode:o}");
        check(0o100_644, 0o644);
        check(0o104_755, 0o755 | go::SETUID);
        check(0o041_777, 0o777 | go::DIR | go::STICKY);
        check(0o042_755, 0o755 | go::DIR | go::SETGID);
        check(0o020_600, 0o600 | go::DEVICE | go::CHARDEV);
        check(0o060_600, 0o600 | go::DEVICE);
        check(0o120_777, 0o777 | go::SYMLINK);
        check(0o010_600, 0o600 | go::FIFO);
        check(0o140_600, 0o600 | go::SOCKET);
    }
}
