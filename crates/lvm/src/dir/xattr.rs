//! Carries extended attributes from one file to another.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr, lgetxattr, llistxattr, lsetxattr};
use rustix::io::{Errno, Result};
use std::ffi::CStr;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Attributes of files and folders that are open.
pub(crate) fn copy_opened(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    carry(
        |buffer| flistxattr(from, buffer),
        |name, buffer| fgetxattr(from, name, buffer),
        |name, value| fsetxattr(to, name, value, XattrFlags::empty()),
    )
}

/// Attributes of links and special files, which cannot be opened: reached through the open folder that they are in.
pub(crate) fn copy_unopened(from: &OwnedFd, to: &OwnedFd, name: &CStr) -> Result<()> {
    let (from, to) = (through(from, name), through(to, name));
    carry(
        |buffer| llistxattr(&from, buffer),
        |name, buffer| lgetxattr(&from, name, buffer),
        |name, value| lsetxattr(&to, name, value, XattrFlags::empty()),
    )
}

fn through(folder: &OwnedFd, name: &CStr) -> PathBuf {
    let name = std::ffi::OsString::from_vec(name.to_bytes().to_vec());
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

fn carry(
    list: impl Fn(&mut [u8]) -> Result<usize>,
    get: impl Fn(&CStr, &mut [u8]) -> Result<usize>,
    set: impl Fn(&CStr, &[u8]) -> Result<()>,
) -> Result<()> {
    let names = match whole(list) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        names => names?,
    };
    for name in names.split_inclusive(|byte| *byte == 0) {
        let name = CStr::from_bytes_with_nul(name).map_err(|_| Errno::INVAL)?;
        match whole(|buffer| get(name, buffer)) {
            // Taken off between the listing and now.
            Err(Errno::NODATA) => {}
            value => set(name, &value?)?,
        }
    }
    Ok(())
}

/// Reads into a buffer that grows until the value fits.
fn whole(read: impl Fn(&mut [u8]) -> Result<usize>) -> Result<Vec<u8>> {
    let mut buffer = vec![0; 1024];
    loop {
        match read(&mut buffer) {
            // No list and no value is longer than 64 KiB on Linux.
            Err(Errno::RANGE) if buffer.len() < 1 << 17 => buffer.resize(buffer.len() * 4, 0),
            length => {
                buffer.truncate(length?);
                return Ok(buffer);
            }
        }
    }
}
