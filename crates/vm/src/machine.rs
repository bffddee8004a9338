//! Boots a machine, talks to it and cuts its power.

use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lifeboat_reference::Process;
use tempfile::TempDir;

use crate::builder::Builder;
use crate::initramfs::{self, Extras};
use crate::kit::Kit;
use crate::link::{LAST_WORDS, Link, tail};
use crate::program::{Output, Running};
use crate::wire::{Answer, Request};
use crate::{Error, cargo, qemu, volatile};

/// How often it is looked whether the emulator has connected.
const PAUSE: Duration = Duration::from_millis(5);
/// For what takes no time unless the machine hangs.
const SOON: Duration = Duration::from_secs(60);

/// A machine with its disks. Dropping it ends it and removes them.
#[derive(Debug)]
pub struct Machine {
    // First, so that the emulator ends before its files go.
    power: Option<Power>,
    kit: Kit,
    spec: Builder,
    disks: Vec<PathBuf>,
    cargo: Option<PathBuf>,
    boots: u32,
    folder: TempDir,
}

/// What there is only while the machine runs.
#[derive(Debug)]
struct Power {
    link: Arc<Link>,
    process: Process,
}

impl Machine {
    /// Describes a machine; [`Builder::boot`] starts it.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn start(spec: Builder) -> Result<Self, Error> {
        let kit = Kit::in_cache()?;
        let parent = std::env::temp_dir();
        let folder = lifeboat_reference::folder::make(&parent, "vm")
            .map_err(Error::file("making a folder in", &parent))?;
        let mut disks = Vec::new();
        for (number, size) in spec.disks.iter().enumerate() {
            let path = folder.path().join(format!("disk{number}"));
            File::create(&path).and_then(|file| file.set_len(*size)).map_err(Error::file("making", &path))?;
            disks.push(path);
        }
        let cargo = match spec.programs.as_slice() {
            [] => None,
            _ => Some(cargo::make(&kit, folder.path(), &spec.cargo_files())?),
        };
        let mut machine = Self { power: None, kit, spec, disks, cargo, boots: 0, folder };
        machine.power_on()?;
        Ok(machine)
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// When it cannot be started, or has not ended by the deadline. A program that fails is no error here:
    /// [`Output::ok`] makes one of it.
    pub fn run(&self, argv: &[&str], deadline: Duration) -> Result<Output, Error> {
        self.spawn(argv)?.wait(deadline)
    }

    /// The same with something on standard input and in the environment.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run_with(
        &self,
        argv: &[&str],
        env: &[(&str, &str)],
        stdin: &[u8],
        deadline: Duration,
    ) -> Result<Output, Error> {
        self.spawn_with(argv, env, stdin)?.wait(deadline)
    }

    /// Starts a program that runs while the test goes on.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self, argv: &[&str]) -> Result<Running, Error> {
        self.spawn_with(argv, &[], &[])
    }

    /// The same with something on standard input and in the environment.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn_with(&self, argv: &[&str], env: &[(&str, &str)], stdin: &[u8]) -> Result<Running, Error> {
        let doing = argv.join(" ");
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let env: Vec<&str> = env.iter().flat_map(|(name, value)| [*name, *value]).collect();
        let conversation = self.link(&doing)?.ask(doing, |id| Request::Start {
            id,
            argv: owned(argv),
            env: owned(&env),
            stdin: stdin.to_owned(),
        })?;
        conversation.only(SOON)?;
        Ok(Running::new(conversation))
    }

    /// The content of a file in the machine; meant for small ones.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let doing = format!("reading {path}");
        let request = |id| Request::Read { id, path: path.to_owned() };
        match self.link(&doing)?.ask(doing, request)?.only(SOON)? {
            Answer::Content { bytes, .. } => Ok(bytes),
            other => Err(Error::Refused { why: format!("an answer to something else: {other:?}") }),
        }
    }

    /// Writes a file in the machine with mode 755, and the folders above it; meant for small ones.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<(), Error> {
        let doing = format!("writing {path}");
        let (path, content) = (path.to_owned(), content.to_owned());
        self.link(&doing)?.ask(doing, |id| Request::Write { id, path, mode: 0o755, content })?.only(SOON)?;
        Ok(())
    }

    /// Cuts the power: the emulator is killed at once. What programs wrote and nobody synced is lost with the machine's
    /// memory; what had reached a disk stays. See the crate's documentation for what that does and does not prove.
    pub fn power_cut(&mut self) {
        self.power = None;
    }

    /// Cuts the power of a machine with [forgetful disks](crate::Builder::forgetful_disks): of the writes that were not
    /// flushed each is kept or forgotten by chance, which `seed` decides. Says how many were forgotten.
    ///
    /// # Errors
    /// When a disk cannot be made again.
    ///
    /// # Panics
    /// When the machine was not built with such disks, because then there is no record of what was flushed.
    pub fn power_cut_forgetting(&mut self, seed: u64) -> Result<usize, Error> {
        assert!(self.spec.forgetful, "only a machine with forgetful disks knows what was not flushed");
        if self.power.take().is_none() {
            return Ok(0);
        }
        let mut keeps = volatile::chance(seed);
        self.disks.iter().map(|disk| volatile::forget(disk, &mut keeps)).sum()
    }

    /// Boots again after [`Machine::power_cut`], with the same disks; does nothing to a machine that runs.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn power_on(&mut self) -> Result<(), Error> {
        if self.power.is_none() {
            self.boots += 1;
            self.power = Some(self.boot()?);
        }
        Ok(())
    }

    /// The whole log of the kernel since the last boot.
    pub fn kernel_log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.console()).unwrap_or_default()).into_owned()
    }

    /// The emulator's process, while it runs.
    pub fn emulator(&self) -> Option<u32> {
        self.power.as_ref().map(|power| power.process.pid())
    }

    /// Folder on the host with the disks (`disk0`, ...) and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes the files from their folder while the emulator has them open, so that they are gone with it however this
    /// process ends. There is no second boot after that.
    pub(crate) fn unlink(&mut self) {
        let console = self.console();
        for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            if entry.path() != console {
                // What stays is swept up later.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Devices of the disks, in the order in which they were asked for.
    pub(crate) fn devices(&self) -> Vec<String> {
        (0..self.disks.len()).map(crate::disk).collect()
    }

    fn link(&self, doing: &str) -> Result<&Arc<Link>, Error> {
        self.power.as_ref().map(|power| &power.link).ok_or_else(|| Error::Off { doing: doing.to_owned() })
    }

    fn console(&self) -> PathBuf {
        self.folder.path().join(format!("console{}", self.boots))
    }

    fn boot(&self) -> Result<Power, Error> {
        let (kernel, image) = self.kit.kernel()?;
        let initramfs = self.folder.path().join("initramfs");
        if !initramfs.exists() {
            let extras = Extras {
                links: self.spec.links(),
                programs: self.spec.programs.iter().map(|(host, _)| host.as_path()).collect(),
                cargo: self.cargo.as_ref().map(|_| crate::disk(self.disks.len())),
            };
            let archive = initramfs::build(&self.kit, &kernel, &extras)?;
            fs::write(&initramfs, archive).map_err(Error::file("writing", &initramfs))?;
        }
        if self.spec.forgetful {
            self.disks.iter().try_for_each(|disk| volatile::begin(disk))?;
        }
        let socket = self.folder.path().join(format!("port{}", self.boots));
        let listener = UnixListener::bind(&socket).map_err(Error::file("listening at", &socket))?;
        let args = qemu::Plan {
            kit: &self.kit,
            spec: &self.spec,
            kernel: &image,
            initramfs: &initramfs,
            socket: &socket,
            console: &self.console(),
            disks: &self.disks,
            cargo: self.cargo.as_deref(),
        }
        .arguments()?;
        let log = self.folder.path().join("emulator");
        // `env` becomes the emulator, so that this is the emulator's own process.
        let mut process = Process::start(Path::new("env"), &args, &log)
            .map_err(|source| Error::Start { program: "qemu-system-x86_64".to_owned(), source })?;
        let patience = self.spec.patience;
        let until = Instant::now() + patience;
        let not_up = |process: &Process| {
            let console = tail(&fs::read(self.console()).unwrap_or_default(), LAST_WORDS);
            Error::NotUp { after: patience, log: format!("{}\n{console}", process.log_tail()) }
        };
        listener.set_nonblocking(true).map_err(Error::file("listening at", &socket))?;
        let port = loop {
            match listener.accept() {
                Ok((port, _)) => break port,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Error::file("listening at", &socket)(error)),
            }
            if process.has_exited() || Instant::now() > until {
                return Err(not_up(&process));
            }
            thread::sleep(PAUSE);
        };
        port.set_nonblocking(false).map_err(Error::file("listening at", &socket))?;
        let (link, greeting) = Link::over(port, &self.console()).map_err(Error::file("using", &socket))?;
        match greeting.next(until) {
            Ok(Some(Answer::Ready)) => Ok(Power { link, process }),
            _ => Err(not_up(&process)),
        }
    }
}

impl Drop for Machine {
    #[expect(clippy::print_stderr, reason = "libtest shows it with the test that failed")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "--- end of the machine's kernel log\n{}",
                tail(self.kernel_log().as_bytes(), LAST_WORDS)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_share_a_machine() {
        fn check<T: Send + Sync>() {}
        check::<Machine>();
        check::<crate::Shared>();
    }
}
