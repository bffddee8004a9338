//! Trees to send, and the comparison of two.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, Timespec, Timestamps, XattrFlags};

/// Bytes that look like nothing, the same for the same seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A tree with everything that trees have.
pub fn corpus(root: &Path) {
    let name = |bytes: &[u8]| root.join(OsStr::from_bytes(bytes));
    fs::create_dir_all(root.join("deep/er/still")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::write(root.join("deep/er/still/file"), noise(1, 100_000)).unwrap();
    fs::write(name(b"odd \xff\xfe\n name"), b"bytes").unwrap();
    fs::write(name(b"-rf"), b"dash").unwrap();
    fs::write(name("üñí".as_bytes()), b"letters").unwrap();
    fs::write(name(&[b'n'; 255]), b"long").unwrap();
    fs::write(root.join("nothing"), b"").unwrap();
    fs::write(root.join("one-block"), noise(2, 4096)).unwrap();
    fs::write(root.join("text"), "the same words again and again\n".repeat(5000)).unwrap();
    let holes = File::create(root.join("holes")).unwrap();
    holes.write_all_at(&noise(3, 10_000), 1 << 17).unwrap();
    holes.write_all_at(&noise(4, 10), (3 << 17) + 5).unwrap();
    holes.set_len(5 << 17).unwrap();
    File::create(root.join("only-hole")).unwrap().set_len(1 << 18).unwrap();
    fs::hard_link(root.join("one-block"), root.join("deep/other-name")).unwrap();
    fs::hard_link(root.join("one-block"), root.join("aa-first-name")).unwrap();
    symlink("../somewhere/else", root.join("deep/link")).unwrap();
    symlink("/etc/passwd", root.join("absolute-link")).unwrap();
    symlink(OsStr::from_bytes(b"\xff"), root.join("odd-link")).unwrap();
    fs::set_permissions(root.join("nothing"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(root.join("text"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(root.join("deep/er"), fs::Permissions::from_mode(0o500)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), FileType::Fifo, Mode::from(0o640), 0).unwrap();
    set_attribute(&root.join("text"), "user.note", b"value");
    set_attribute(&root.join("text"), "user.long", &noise(5, 3000));
    set_attribute(&root.join("empty"), "user.of-a-folder", b"");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(root.join("deep/link"), Some(12), Some(34)).unwrap();
        std::os::unix::fs::chown(root.join("-rf"), Some(1000), Some(2000)).unwrap();
    }
    set_time(&root.join("text"), -12_345, 678_900_000);
    set_time(&root.join("deep/link"), 1_000_000_000, 1);
    set_time(&root.join("deep"), 4_102_444_800, 999_999_999);
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    match rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()) {
        // Not every filesystem that tests run on has them.
        Err(rustix::io::Errno::NOTSUP) => {}
        outcome => outcome.unwrap(),
    }
}

/// Sets a modification time.
pub fn set_time(path: &Path, seconds: i64, nanos: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanos };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// Everything that can be seen of a tree, by path.
pub fn seen(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    let mut groups = BTreeMap::new();
    look(root, root, &mut all, &mut groups);
    all
}

fn look(root: &Path, path: &Path, all: &mut BTreeMap<Vec<u8>, String>, groups: &mut BTreeMap<u64, Vec<u8>>) {
    let meta = fs::symlink_metadata(path).unwrap();
    let below = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
    let mut text =
        format!("{:o} {}:{} {}.{}", meta.mode(), meta.uid(), meta.gid(), meta.mtime(), meta.mtime_nsec());
    let mut names = vec![0; 4096];
    let length = rustix::fs::llistxattr(path, &mut names).unwrap_or(0);
    let mut names: Vec<_> =
        names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")).collect();
    names.sort_unstable();
    for name in names {
        let mut value = vec![0; 65536];
        let length = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), &mut value[..]).unwrap();
        text += &format!(" {}={}", name.escape_ascii(), value[..length].escape_ascii());
    }
    let kind = meta.file_type();
    if kind.is_symlink() {
        text += &format!(" -> {:?}", fs::read_link(path).unwrap());
    } else if kind.is_file() {
        let first = groups.entry(meta.ino()).or_insert_with(|| below.clone());
        let digest = blake3::hash(&fs::read(path).unwrap());
        text +=
            &format!(" {} bytes {digest} links {} first {}", meta.len(), meta.nlink(), first.escape_ascii());
    }
    all.insert(below, text);
    if kind.is_dir() {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names.iter().for_each(|name| look(root, &path.join(name), all, groups));
    }
}

/// Fails with the first difference.
pub fn same(one: &Path, other: &Path) {
    let (one, other) = (seen(one), seen(other));
    for (path, text) in &one {
        assert_eq!(Some(text), other.get(path), "{}", path.escape_ascii());
    }
    for path in other.keys() {
        assert!(one.contains_key(path), "{} is too much", path.escape_ascii());
    }
}

/// A copy as a snapshot would be: the same in all but what the system keeps for itself.
pub fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}
