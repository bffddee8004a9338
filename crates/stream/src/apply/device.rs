//! A block device on the target, or a plain file in its place.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, SeekFrom};

use super::entries::punch;
use super::unfit;
use crate::error::errno;
use crate::{Error, blocks};

/// A device that is applied to.
pub(super) struct Device {
    file: File,
    path: PathBuf,
    size: u64,
    block: Option<u32>,
}

impl Device {
    pub(super) fn open(path: &Path, size: u64) -> Result<Self, Error> {
        let fault = |error| Error::target("opening", path, error);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(fault)?);
        let stat = rustix::fs::fstat(&file).map_err(fault)?;
        let room = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(fault)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice if room < size => {
                return Err(unfit(&format!("it has {room} bytes, the source {size}: grow it first")));
            }
            FileType::BlockDevice => {}
            FileType::RegularFile if room > size => {
                return Err(unfit(&format!(
                    "it has {room} bytes, the source only {size}: a volume does not shrink"
                )));
            }
            FileType::RegularFile => file.set_len(size).map_err(|error| fault(errno(&error)))?,
            _ => return Err(unfit("it is no block device")),
        }
        Ok(Self { file, path: path.to_owned(), size, block: None })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn clear(&mut self) -> Result<(), Error> {
        punch(&self.file, 0, self.size).map_err(|error| Error::target("clearing", &self.path, error))
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync_all().map_err(|error| Error::target("syncing", &self.path, errno(&error)))
    }

    pub(super) fn begin(&mut self, block: u32) -> Result<(), Error> {
        if !blocks::is_size(block) {
            return Err(Error::Protocol(format!("a block of {block} bytes")));
        }
        self.block = Some(block);
        Ok(())
    }

    pub(super) fn block(&self) -> Result<u32, Error> {
        self.block.ok_or(Error::Protocol("data, but the device is not open".to_owned()))
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.within(offset, bytes.len() as u64)?;
        self.file
            .write_all_at(bytes, offset)
            .map_err(|error| Error::target("writing", &self.path, errno(&error)))
    }

    pub(super) fn zero(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        self.block()?;
        self.within(offset, length)?;
        punch(&self.file, offset, length).map_err(|error| Error::target("clearing", &self.path, error))
    }

    fn within(&self, offset: u64, length: u64) -> Result<(), Error> {
        if offset.checked_add(length).is_some_and(|end| end <= self.size) {
            Ok(())
        } else {
            Err(Error::Protocol("bytes behind the end of the device".to_owned()))
        }
    }
}
