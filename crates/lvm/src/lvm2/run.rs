//! Runs LVM, and nothing else does: tests put a slow, failing, half-done or lying LVM in this place.

use crate::Error;
use async_trait::async_trait;
use rustix::fs::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// What a command left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output: the report.
    pub stdout: String,
    /// Standard error: what went wrong before the report began.
    pub stderr: String,
}

/// How long a command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It only reads: past this it is killed, which harms nothing.
    Until(Duration),
    /// It changes something: killed half-way it could leave devices suspended, so it runs to its end.
    Endless,
}

/// What becomes of the bytes of a removed thick volume. Thin volumes need nothing: a pool hands out zeroed chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wipe {
    /// They stay on the disk, and the next volume there may show them to somebody else.
    None,
    /// Zeroed if the disk does that by itself, quickly; else they stay.
    Discard,
    /// Zeroed, by the disk or by writing.
    #[default]
    Zero,
}

/// The only way to LVM.
#[async_trait]
pub trait Run: Send + Sync + 'static {
    /// Runs one LVM command with these arguments. An error means that it could not be started, or ran past its deadline.
    async fn lvm(&self, arguments: &[String], patience: Patience) -> std::io::Result<Output>;

    /// Makes the bytes of a device unreadable.
    async fn wipe(&self, device: &Path, how: Wipe) -> std::io::Result<()>;
}

/// LVM as a program on this machine.
#[derive(Clone, Debug)]
pub struct Program {
    /// What stands before the arguments, the program itself included: `["nsenter", …, "/sbin/lvm"]`.
    pub prefix: Vec<String>,
}

impl Program {
    /// LVM run directly, as on a host.
    #[must_use]
    pub fn direct() -> Self {
        Self { prefix: vec!["lvm".to_owned()] }
    }
}

#[async_trait]
impl Run for Program {
    #[expect(clippy::disallowed_methods, reason = "the one place of this room that starts LVM")]
    async fn lvm(&self, arguments: &[String], patience: Patience) -> std::io::Result<Output> {
        let (program, rest) =
            self.prefix.split_first().ok_or_else(|| std::io::Error::other("lvm-command-prefix is empty"))?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(rest)
            .args(arguments)
            .env("LC_ALL", "C")
            .env("LVM_SUPPRESS_FD_WARNINGS", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(matches!(patience, Patience::Until(_)));
        let running = command.spawn()?.wait_with_output();
        let ended = match patience {
            Patience::Endless => running.await?,
            Patience::Until(limit) => tokio::time::timeout(limit, running).await.map_err(|_| {
                let what = arguments.first().map_or("", String::as_str);
                let text = format!("lvm {what} did not answer within {} s and was stopped", limit.as_secs());
                std::io::Error::new(std::io::ErrorKind::TimedOut, text)
            })??,
        };
        Ok(Output {
            code: ended.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&ended.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
        })
    }

    async fn wipe(&self, device: &Path, how: Wipe) -> std::io::Result<()> {
        let device = device.to_owned();
        tokio::task::spawn_blocking(move || wipe(device, how)).await.map_err(std::io::Error::other)?
    }
}

/// Linux zeroes a block device by `fallocate`: punching a hole works only where the disk zeroes by itself, the other way always.
fn wipe(device: PathBuf, how: Wipe) -> std::io::Result<()> {
    use std::io::{Seek, SeekFrom};
    let flags = match how {
        Wipe::None => return Ok(()),
        Wipe::Discard => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        Wipe::Zero => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
    };
    let mut file = std::fs::OpenOptions::new().write(true).open(device)?;
    let size = file.seek(SeekFrom::End(0))?;
    // In pieces, so that a large volume does not hold the kernel for minutes in one call.
    const PIECE: u64 = 1 << 30;
    let mut at = 0;
    while at < size {
        let length = PIECE.min(size - at);
        match fallocate(&file, flags, at, length) {
            Err(rustix::io::Errno::OPNOTSUPP) if how == Wipe::Discard => return Ok(()),
            result => result?,
        }
        at += length;
    }
    file.sync_all()
}

/// Something LVM could not be asked at all.
pub(super) fn unasked(error: &std::io::Error) -> Error {
    Error::Transient(format!(
        "LVM could not be asked: {error}; see that the lvm program is there and that no LVM command hangs"
    ))
}
