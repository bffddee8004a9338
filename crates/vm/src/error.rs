//! What can go wrong with a machine; every error carries what the machine last said where that helps.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::kit::Missing;

/// Why something did not work in or around the machine.
#[derive(thiserror::Error)]
pub enum Error {
    /// The parts that the machine is made of are not in the cache.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file on the host could not be read or written.
    #[error("{doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A program on the host could not be started.
    #[error("starting {program}: is it installed?")]
    Start {
        /// Its name.
        program: String,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A program on the host failed.
    #[error("{program} failed while {doing}: {output}")]
    Tool {
        /// Its name.
        program: String,
        /// What it was needed for.
        doing: &'static str,
        /// What it wrote.
        output: String,
    },
    /// A shared library of a program that goes into the machine is nowhere to be found.
    #[error("{} needs {library}, which is neither in the cache nor on this machine", program.display())]
    Library {
        /// The program.
        program: PathBuf,
        /// The library.
        library: String,
    },
    /// A part is not in the cached kit, so the kit was made from something else than expected.
    #[error("{part} is not among the cached parts; remove {} and run `cargo xtask tools`", folder.display())]
    Part {
        /// The program or module.
        part: String,
        /// Folder of the kit.
        folder: PathBuf,
    },
    /// The machine did not come up.
    #[error("the machine was not up after {after:?}; its last words:\n{log}")]
    NotUp {
        /// How long it was waited for.
        after: Duration,
        /// The end of the kernel's log.
        log: String,
    },
    /// The machine ended by itself.
    #[error("the machine ended while {doing}; its last words:\n{log}")]
    Ended {
        /// What it was to do.
        doing: String,
        /// The end of the kernel's log.
        log: String,
    },
    /// Something in the machine took too long.
    #[error("{doing} was not done after {after:?}; it wrote:\n{output}\nlast words of the kernel:\n{log}")]
    Deadline {
        /// What it was to do.
        doing: String,
        /// The deadline.
        after: Duration,
        /// The end of what the program wrote.
        output: String,
        /// The end of the kernel's log.
        log: String,
    },
    /// The machine has no power: [`crate::Machine::power_on`] gives it back.
    #[error("the machine is off, so it cannot be used for {doing}; power_on() starts it again")]
    Off {
        /// What it was to do.
        doing: String,
    },
    /// The agent could not do it.
    #[error("in the machine: {why}")]
    Refused {
        /// What the agent says.
        why: String,
    },
    /// A program in the machine did not succeed.
    #[error("{program} in the machine: {output}")]
    Failed {
        /// The program with its arguments.
        program: String,
        /// How it ended and what it wrote.
        output: String,
    },
}

/// As people read it, with its causes: tests unwrap, and a log on one line with escapes helps nobody.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl Error {
    /// For [`Result::map_err`]: a file on the host.
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }
}
