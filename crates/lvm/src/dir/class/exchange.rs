//! Two directory volumes change names, in one step of the filesystem.

use super::Open;
use crate::Error;
use crate::mount::is_shown_elsewhere;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

impl Open {
    /// Gives each of two volumes the name of the other. Whoever shows one elsewhere would go on with the wrong one, so that is refused.
    pub(in crate::dir) fn exchange(&self, one: &str, other: &str) -> Result<(), Error> {
        for name in [one, other] {
            self.find(name)?;
            let shown = is_shown_elsewhere(&self.folder(name));
            if shown.map_err(|error| Error::Transient(error.to_string()))? {
                let detail = "a mount shows it, or is on it; unmount that first".to_owned();
                return Err(Error::Busy { name: name.to_owned(), detail });
            }
        }
        match renameat_with(CWD, self.folder(one), CWD, self.folder(other), RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return Err(Error::Unsupported(format!(
                    "the filesystem of device class {:?} cannot let two folders change names",
                    self.class.name
                )));
            }
            result => result.map_err(|error| self.failed("exchanging", one, &error.into()))?,
        }
        {
            let mut state = self.state.lock();
            let (first, second) = (state.volumes.remove(one), state.volumes.remove(other));
            state.volumes.extend(second.map(|meta| (one.to_owned(), meta)));
            state.volumes.extend(first.map(|meta| (other.to_owned(), meta)));
        }
        self.sync("volumes").map_err(|error| self.failed("exchanging", one, &error))
    }
}
