//! Writing the bytes of a device.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustic_core::repofile::Node;
use rustix::fs::FileType;

use super::blobs::{Blobs, Wanted, bytes};
use super::files::{Batch, Restoring, errno};
use super::target::fault;
use crate::{Error, Restored};

/// Blobs that are written before they are compared.
const STEP: usize = 1024;

/// Restores a device, or a plain file in its place. What already holds the right bytes is not written again.
pub(super) fn restore(blobs: &Blobs, node: &Node, path: &Path, size: u64) -> Result<Restored, Error> {
    let mut at = 0;
    let mut wanted = Vec::new();
    for id in node.content.iter().flatten() {
        let place = blobs.find(id)?;
        wanted.push(Wanted { place, id: bytes(id), file: 0, at });
        at += place.size();
    }
    if at > size {
        return Err(Error::NoRoom(format!("the snapshot holds {at} bytes, {} has {size}", path.display())));
    }
    let failed = |doing: &'static str| move |error: std::io::Error| fault(doing, path, errno(&error));
    // A link could lead to another device.
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(path)
        .map_err(failed("opening"))?;
    let stat = rustix::fs::fstat(&file).map_err(|error| fault("opening", path, error))?;
    let used = match FileType::from_raw_mode(stat.st_mode) {
        // What a device held before has to be overwritten, zeros too.
        FileType::BlockDevice => true,
        FileType::RegularFile => {
            file.set_len(size).map_err(failed("sizing"))?;
            stat.st_size > 0
        }
        _ => return Err(Error::Invalid(format!("{} is neither a device nor a file", path.display()))),
    };
    let restoring = Restoring { file, used, metadata: node.meta.clone(), below: path.to_owned() };
    let mut batch = Batch { files: vec![restoring], wanted: Vec::new() };
    for step in wanted.chunks(STEP) {
        batch.wanted = step.to_vec();
        batch.write(blobs)?;
    }
    blobs.operation().advance_files(1);
    batch.files[0].file.sync_all().map_err(failed("syncing"))?;
    Ok(Restored { bytes: at, files: 1, left_out: 0 })
}
