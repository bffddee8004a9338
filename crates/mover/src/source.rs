//! What is backed up: a tree of files, or the bytes of a device.
//!
//! What cannot be read is a fault of the operation, and no snapshot is written after one: a backup holds everything or does not exist.

mod device;
mod node;
mod walk;

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use crate::Error;
use crate::operation::Operation;

pub(crate) use device::device;
pub(crate) use node::go;
pub(crate) use walk::{Files, Listed};

/// Something that can be opened when its turn comes.
pub(crate) struct Opener {
    open: Box<dyn FnOnce() -> Result<File, Error> + Send>,
    /// Bytes to read at most, and at least if the length is fixed.
    length: Length,
    what: String,
    operation: Arc<Operation>,
}

#[derive(Clone, Copy)]
enum Length {
    /// As long as it is.
    Open,
    /// Exactly so many bytes.
    Exactly(u64),
}

impl Opener {
    pub(crate) fn open(self) -> Result<Reader, Error> {
        let file = self
            .operation
            .check()
            .and_then(|()| (self.open)())
            .map_err(|error| self.operation.fail(error))?;
        Ok(Reader { file, length: self.length, what: self.what, operation: self.operation })
    }
}

/// Reads a file, stops when asked to, and keeps what went wrong.
pub(crate) struct Reader {
    file: File,
    length: Length,
    what: String,
    operation: Arc<Operation>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.operation.check().map_err(std::io::Error::other)?;
        let wanted = match self.length {
            Length::Open => buffer.len(),
            Length::Exactly(left) => buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
        };
        let count = self.file.read(&mut buffer[..wanted]).map_err(|error| {
            self.operation.fail(Error::Transient(format!("reading {}: {error}", self.what)));
            error
        })?;
        if let Length::Exactly(left) = &mut self.length {
            *left -= count as u64;
            if count == 0 && wanted > 0 {
                let text = format!("{} is {left} bytes shorter than was said", self.what);
                return Err(std::io::Error::other(self.operation.fail(Error::Invalid(text))));
            }
        }
        Ok(count)
    }
}
