//! A tree with everything in it that a copy may lose, and what of it can be compared.

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, XattrFlags, lgetxattr, llistxattr, lsetxattr, mknodat, statat,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Makes the tree. Needs a filesystem with extended attributes.
pub fn plant(root: &Path) {
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("deep/deeper/deepest")).unwrap();
    fs::write(at("plain"), "some bytes").unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::write(at("deep/deeper/deepest/big"), vec![7; 300_000]).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"odd \xff\n name")), "odd").unwrap();
    fs::hard_link(at("plain"), at("deep/linked")).unwrap();
    symlink("plain", at("soft")).unwrap();
    symlink("/nowhere/at/all", at("dangling")).unwrap();
    let sparse = fs::File::create(at("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"island", 16 << 20).unwrap();
    let pipe = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, at("pipe"), FileType::Fifo, pipe, 0).unwrap();
    lsetxattr(at("plain"), "user.note", b"kept\0whole", XattrFlags::empty()).unwrap();
    lsetxattr(at("deep"), "user.folder", b"too", XattrFlags::empty()).unwrap();
    fs::set_permissions(at("plain"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::set_permissions(at("deep/deeper"), fs::Permissions::from_mode(0o1711)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(at("empty"), Some(1234), Some(2345)).unwrap();
        std::os::unix::fs::lchown(at("soft"), Some(77), Some(78)).unwrap();
        lsetxattr(at("soft"), "trusted.link", b"of a link", XattrFlags::empty()).unwrap();
    }
    let past = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(at("empty")).unwrap().set_modified(past).unwrap();
    fs::File::open(at("deep")).unwrap().set_modified(past).unwrap();
}

/// Everything about one entry that a copy must keep.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    size: i64,
    /// A digest of the bytes: a failed comparison prints it.
    content: u64,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// First path with the same inode.
    same_as: Option<PathBuf>,
}

/// All entries of a tree by their path.
pub fn describe(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut found = BTreeMap::new();
    let mut inodes = BTreeMap::new();
    walk(root, Path::new(""), &mut found, &mut inodes);
    found
}

fn walk(root: &Path, at: &Path, found: &mut BTreeMap<PathBuf, Entry>, inodes: &mut BTreeMap<u64, PathBuf>) {
    let path = root.join(at);
    let stat = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    let kind = FileType::from_raw_mode(stat.st_mode);
    let content = match kind {
        FileType::RegularFile => fs::read(&path).unwrap(),
        FileType::Symlink => fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let mut names = vec![0; 4096];
    let length = llistxattr(&path, names.as_mut_slice()).unwrap();
    let attributes = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty() && !name.starts_with(b"security.selinux"))
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = lgetxattr(&path, name, value.as_mut_slice()).unwrap();
            (name.to_vec(), value[..length].to_vec())
        })
        .collect();
    let content = {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        hasher.finish()
    };
    let same_as = if kind == FileType::Directory { None } else { inodes.get(&stat.st_ino).cloned() };
    inodes.entry(stat.st_ino).or_insert_with(|| at.to_owned());
    let entry = Entry {
        mode: stat.st_mode,
        owner: (stat.st_uid, stat.st_gid),
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        size: if kind == FileType::Directory { 0 } else { stat.st_size },
        content,
        attributes,
        same_as,
    };
    found.insert(at.to_owned(), entry);
    if kind == FileType::Directory {
        let mut inner: Vec<_> =
            fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        inner.sort();
        for name in inner {
            walk(root, &at.join(name), found, inodes);
        }
    }
}

/// Blocks that a file really uses, in bytes.
pub fn used(path: &Path) -> u64 {
    u64::try_from(statat(CWD, path, AtFlags::empty()).unwrap().st_blocks).unwrap() * 512
}
