//! Trees of files with everything that file systems allow, and a way to compare two of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Timespec, Timestamps, XattrFlags};

/// Bytes that do not compress and are the same every time.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Makes a tree with odd names, kinds, modes, owners, times, attributes, links and holes.
pub(crate) fn make(root: &Path) {
    let name = |bytes: &[u8]| root.join(OsStr::from_bytes(bytes));
    fs::create_dir_all(root.join("deep/er/and/deeper")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("empty-file"), "").unwrap();
    fs::write(root.join("small"), "hello\n").unwrap();
    fs::write(root.join("large"), noise(1, 5_000_000)).unwrap();
    fs::write(root.join("deep/er/and/deeper/file"), noise(2, 100_000)).unwrap();
    for odd in [
        &b"-rf"[..],
        b"--help",
        b"with space",
        b"new\nline",
        b"tab\t\"quotes\"\\backslash",
        b"not utf-8 \xff\xfe",
        b"\xc3\xbcmlaut",
        b"*?[glob]",
        b"...",
        b"$HOME `id` ;ls",
        b"\x01\x02control",
        &[b'x'; 255],
    ] {
        fs::write(name(odd), odd).unwrap();
    }
    symlink("small", root.join("link")).unwrap();
    symlink("/etc/passwd", root.join("link-out")).unwrap();
    symlink(OsStr::from_bytes(b"gone \xff"), root.join("link-broken")).unwrap();
    fs::hard_link(root.join("large"), root.join("deep/large-too")).unwrap();
    fs::hard_link(root.join("large"), root.join("zz-large")).unwrap();

    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.set_len(20 << 20).unwrap();
    sparse.write_all_at(&noise(3, 70_000), 3 << 20).unwrap();
    sparse.write_all_at(b"end", (20 << 20) - 3).unwrap();
    File::create(root.join("all-hole")).unwrap().set_len(9 << 20).unwrap();

    for (file, mode) in [("small", 0o4751), ("empty", 0o3770), ("large", 0o400), ("deep", 0o500)] {
        fs::set_permissions(root.join(file), fs::Permissions::from_mode(mode)).unwrap();
    }
    let attribute = |file: &str, key: &str, value: &[u8]| {
        rustix::fs::setxattr(root.join(file), key, value, XattrFlags::empty()).unwrap();
    };
    attribute("small", "user.colour", b"blue");
    attribute("small", "user.empty", b"");
    attribute("empty", "user.bytes", b"\x00\xff");
    if rustix::process::geteuid().is_root() {
        for (file, uid) in [("small", 1234), ("empty", 4321), ("link", 99)] {
            std::os::unix::fs::lchown(root.join(file), Some(uid), Some(uid + 1)).unwrap();
        }
        // A change of owner takes these bits away.
        fs::set_permissions(root.join("small"), fs::Permissions::from_mode(0o4751)).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o640.into(), 0)
            .unwrap();
    }
    // Times last, from the inside out, with nanoseconds and before 1970.
    let mut paths: Vec<_> = list(root).into_iter().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.as_os_str().len()));
    for (index, path) in paths.iter().enumerate() {
        let seconds = if index % 7 == 3 { -1_000_000 } else { 1_500_000_000 + index as i64 };
        let time = Timespec { tv_sec: seconds, tv_nsec: 123_456_789 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(rustix::fs::CWD, root.join(path), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn list(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    found
}

/// Everything about one entry that a backup has to keep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    kind: u32,
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    content: Vec<u8>,
    attributes: BTreeMap<String, Vec<u8>>,
    /// First path of the same file, in order.
    same_as: Option<PathBuf>,
}

/// Reads a whole tree.
pub(crate) fn read(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut first: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut paths = list(root);
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let full = root.join(&path);
            let metadata = fs::symlink_metadata(&full).unwrap();
            let kind = metadata.mode() & 0o170_000;
            let content = if metadata.is_file() {
                // Long contents would drown a failing comparison.
                let content = fs::read(&full).unwrap();
                if content.len() > 64 {
                    ring::digest::digest(&ring::digest::SHA256, &content).as_ref().to_vec()
                } else {
                    content
                }
            } else if metadata.is_symlink() {
                fs::read_link(&full).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                Vec::new()
            };
            let same_as = (metadata.nlink() > 1 && metadata.is_file())
                .then(|| first.entry(metadata.ino()).or_insert_with(|| path.clone()).clone());
            let entry = Entry {
                kind,
                mode: metadata.mode() & 0o7777,
                owner: (metadata.uid(), metadata.gid()),
                mtime: (metadata.mtime(), metadata.mtime_nsec()),
                content,
                attributes: attributes(&full),
                same_as,
            };
            (path, entry)
        })
        .collect()
}

fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = [0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or_default();
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    names
        .split('\0')
        .filter(|name| name.starts_with("user."))
        .map(|name| {
            let mut value = [0; 4096];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            (name.to_owned(), value[..length].to_vec())
        })
        .collect()
}

/// Fails with the first differences of two trees.
pub(crate) fn assert_same(one: &Path, other: &Path) {
    compare(&read(one), &read(other));
}

/// The same for trees that were read before.
pub(crate) fn compare(one: &BTreeMap<PathBuf, Entry>, other: &BTreeMap<PathBuf, Entry>) {
    for (path, entry) in one {
        assert_eq!(Some(entry), other.get(path), "{}", path.display());
    }
    let more: Vec<_> = other.keys().filter(|path| !one.contains_key(*path)).collect();
    assert!(more.is_empty(), "more than there was: {more:?}");
}

/// Bytes that a file takes on the disk.
pub(crate) fn allocated(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}
