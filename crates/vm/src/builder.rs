//! What a machine is to have.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Error, Machine};

/// Far more than a boot needs, for machines with much else to do.
const PATIENCE: Duration = Duration::from_secs(300);

/// Describes a machine.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) disks: Vec<u64>,
    /// Path on the host, path in the machine.
    pub(crate) programs: Vec<(PathBuf, String)>,
    pub(crate) memory_mib: u32,
    pub(crate) patience: Duration,
    pub(crate) forgetful: bool,
}

impl Default for Builder {
    fn default() -> Self {
        let (disks, programs) = (Vec::new(), Vec::new());
        Self { disks, programs, memory_mib: 1024, patience: PATIENCE, forgetful: false }
    }
}

impl Builder {
    /// An empty disk of so many bytes; it takes no room on the host until it is written to. The first is `/dev/vda`,
    /// see [`crate::disk`].
    #[must_use]
    pub fn disk(mut self, bytes: u64) -> Self {
        self.disks.push(bytes);
        self
    }

    /// Disks that may lose what was not flushed when the power is cut by [`Machine::power_cut_forgetting`]. All that is
    /// written to them is written twice, so this is for tests that write little.
    #[must_use]
    pub fn forgetful_disks(mut self) -> Self {
        self.forgetful = true;
        self
    }

    /// A program of the host, with its shared libraries.
    #[must_use]
    pub fn program(mut self, host: impl Into<PathBuf>, guest: &str) -> Self {
        self.programs.push((host.into(), guest.to_owned()));
        self
    }

    /// The test binary that runs now, as [`crate::THIS`].
    ///
    /// # Panics
    /// When the system does not tell where it lies.
    #[must_use]
    pub fn this_test_binary(self) -> Self {
        let this = std::env::current_exe().expect("invariant: a running program has a path");
        self.program(this, crate::THIS)
    }

    /// Memory; 1024 MiB unless said.
    #[must_use]
    pub fn memory_mib(mut self, memory: u32) -> Self {
        self.memory_mib = memory;
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// [`Error::Missing`] when its parts are not in the cache; others when it does not come up.
    pub fn boot(self) -> Result<Machine, Error> {
        Machine::start(self)
    }

    /// Starts it; where its parts are not in the cache, counts `test` as skipped and gives nothing.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn boot_or_skip(self, test: &str) -> Option<Machine> {
        match self.boot() {
            Ok(machine) => Some(machine),
            Err(Error::Missing(missing)) => {
                lifeboat_reference::skip(test, missing);
                None
            }
            Err(error) => panic!("booting the machine: {error:?}"),
        }
    }

    /// The programs with their names on the disk: numbered, because two may have the same.
    pub(crate) fn cargo_files(&self) -> Vec<(PathBuf, String)> {
        let name = |(number, (host, _)): (usize, &(PathBuf, String))| {
            let name = host.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (host.clone(), format!("{number}-{name}"))
        };
        self.programs.iter().enumerate().map(name).collect()
    }

    /// Where the machine has them, and their names on the disk.
    pub(crate) fn links(&self) -> BTreeMap<String, String> {
        let guests = self.programs.iter().map(|(_, guest)| guest.clone());
        guests.zip(self.cargo_files().into_iter().map(|(_, name)| name)).collect()
    }
}
