//! Extended attributes: read, set and digested.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lremovexattr, lsetxattr};
use rustix::io::Errno;

use crate::blocks::{Hash, ZERO};
use lifeboat_beneath as beneath;

/// Names and values.
pub(crate) type Attributes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Most bytes of one value, and of one list of names; the system's own bounds.
pub(crate) const LARGEST: usize = 64 << 10;

/// Reads the attributes of an entry that are carried to the other side.
pub(crate) fn read(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Attributes, Errno> {
    let path = beneath::through(folder, name);
    // Most entries have none, which takes one call to see.
    let mut names = [0; 1024];
    let names = match llistxattr(&path, &mut names) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Attributes::new()),
        Ok(length) => names[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut names = vec![0; LARGEST];
            let length = llistxattr(&path, &mut names)?;
            names.truncate(length);
            names
        }
        Err(error) => return Err(error),
    };
    let mut attributes = Attributes::new();
    for name in names.split(|byte| *byte == 0).filter(|name| is_carried(name)) {
        let mut value = vec![0; LARGEST];
        match lgetxattr(&path, OsStr::from_bytes(name), &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                value.shrink_to_fit();
                attributes.insert(name.to_vec(), value);
            }
            // Gone meanwhile, or none of ours to read.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(attributes)
}

/// Gives an entry these attributes and no others.
pub(crate) fn replace(folder: BorrowedFd<'_>, name: &OsStr, wanted: &Attributes) -> Result<(), Errno> {
    let there = read(folder, name)?;
    let path = beneath::through(folder, name);
    for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
        tolerate(name, lremovexattr(&path, OsStr::from_bytes(name)))?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| there.get(*name) != Some(value)) {
        tolerate(name, lsetxattr(&path, OsStr::from_bytes(name), value, XattrFlags::empty()))?;
    }
    Ok(())
}

/// Users' attributes, access lists, and what the system's security modules keep. Others belong to the machine.
pub(crate) fn is_carried(name: &[u8]) -> bool {
    let known: [&[u8]; 3] = [b"user.", b"security.", b"system.posix_acl_"];
    known.iter().any(|prefix| name.starts_with(prefix)) && name.len() <= 255
}

/// A digest of attributes, zero for none. Labels are left out: the target's policy may change them on its own.
pub(crate) fn digest(attributes: &Attributes) -> Hash {
    let mut hasher = blake3::Hasher::new();
    let mut any = false;
    for (name, value) in attributes.iter().filter(|(name, _)| name.as_slice() != b"security.selinux") {
        any = true;
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name);
        hasher.update(&(value.len() as u64).to_le_bytes()).update(value);
    }
    let mut digest = ZERO;
    if any {
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    }
    digest
}

/// Not every system lets everybody set what its security modules use.
fn tolerate(name: &[u8], outcome: Result<(), Errno>) -> Result<(), Errno> {
    match outcome {
        Err(Errno::PERM | Errno::NOTSUP | Errno::INVAL) if name.starts_with(b"security.") => Ok(()),
        Err(Errno::NODATA) => Ok(()),
        outcome => outcome,
    }
}
