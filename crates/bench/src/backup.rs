//! The two programs that back up and restore, the files they are given, and what their work costs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// What a piece of work cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Processor time of the process, user and system.
    pub seconds: f64,
    /// Highest resident memory.
    pub mebibytes: f64,
}

impl Cost {
    /// The cost of doing both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, mebibytes: self.mebibytes.max(other.mebibytes) }
    }
}

/// Which program does the work.
pub enum Side {
    /// The mover, in a process of its own.
    Ours,
    /// The pinned restic.
    Restic(PathBuf),
}

impl Side {
    /// Makes a repository where that is a step of its own; it is not measured.
    ///
    /// # Errors
    /// When the program fails.
    pub fn prepare(&self, repository: &Path) -> Result<()> {
        if let Side::Restic(program) = self {
            let status = restic_command(program, repository).arg("init").stdout(Stdio::null()).status()?;
            ensure!(status.success(), "restic init: {status}");
        }
        Ok(())
    }

    /// A process that backs a folder up.
    ///
    /// # Errors
    /// When this program cannot find itself.
    pub fn backup(&self, repository: &Path, source: &Path) -> Result<Command> {
        match self {
            Side::Ours => ourselves("backup", repository, source),
            Side::Restic(program) => {
                let mut command = restic_command(program, repository);
                command.arg("backup").arg(source);
                Ok(command)
            }
        }
    }

    /// A process that restores the latest snapshot.
    ///
    /// # Errors
    /// When this program cannot find itself.
    pub fn restore(&self, repository: &Path, target: &Path) -> Result<Command> {
        match self {
            Side::Ours => ourselves("restore", repository, target),
            Side::Restic(program) => {
                let mut command = restic_command(program, repository);
                command.args(["restore", "latest", "--target"]).arg(target);
                Ok(command)
            }
        }
    }
}

fn ourselves(work: &str, repository: &Path, path: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--work", work]).arg("--repository").arg(repository).arg("--path").arg(path);
    Ok(command)
}

fn restic_command(program: &Path, repository: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--repo").arg(repository).arg("--cache-dir").arg(repository.with_extension("cache"));
    command.arg("--quiet").env("RESTIC_PASSWORD", "benchmark");
    command
}

/// The pinned restic.
///
/// # Errors
/// When it was not built.
pub fn restic() -> Result<PathBuf> {
    let module = include_str!("../../../tools/restic/go.mod");
    let version = module
        .lines()
        .find_map(|line| {
            line.trim().trim_start_matches("require ").strip_prefix("github.com/restic/restic v")
        })
        .context("tools/restic/go.mod names no release")?;
    let path = lifeboat_reference::cache_root().join(format!("restic-{version}")).join("restic");
    ensure!(path.is_file(), "{} is missing: cargo xtask tools builds it", path.display());
    Ok(path)
}

/// Runs a process to its end and tells what it cost.
///
/// # Errors
/// When it fails.
pub fn measure(mut command: Command) -> Result<Cost> {
    let before = children_seconds()?;
    let mut child = command.spawn().with_context(|| format!("starting {:?}", command.get_program()))?;
    let status = format!("/proc/{}/status", child.id());
    let mut highest = 0.0_f64;
    let ended = loop {
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        // The kernel keeps the highest value; it is gone with the process, so it is asked for all along.
        if let Some(value) = fs::read_to_string(&status).ok().as_deref().and_then(high_water) {
            highest = highest.max(value);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if !ended.success() {
        bail!("{:?}: {ended}", command.get_program());
    }
    Ok(Cost { seconds: children_seconds()? - before, mebibytes: highest })
}

fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? / 1024.0)
}

/// Processor time of all processes that this one has waited for.
fn children_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat").context("reading /proc/self/stat")?;
    // The name may hold anything, so fields count from behind it.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    let (user, system) = (ticks(13).context("no user time")?, ticks(14).context("no system time")?);
    // Linux shows these in hundredths of a second on every machine.
    Ok((user + system) / 100.0)
}

/// Makes large files of bytes that do not compress, as databases and media have them.
///
/// # Errors
/// When the disk is full.
pub fn make_large(folder: &Path, mebibytes: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut noise = Noise::new(1);
    for index in 0..mebibytes.div_ceil(4) {
        let mut file = File::create(folder.join(format!("large-{index:05}")))?;
        let size = 4.min(mebibytes - index * 4);
        for _ in 0..size {
            file.write_all(&noise.bytes(1 << 20))?;
        }
    }
    Ok(())
}

/// Makes small files of words, a hundred to a folder, and tells their bytes.
///
/// # Errors
/// When the disk is full.
pub fn make_small(folder: &Path, count: u64) -> Result<u64> {
    let mut noise = Noise::new(2);
    let mut bytes = 0;
    for index in 0..count {
        let inner = folder.join(format!("folder-{:04}", index / 100));
        if index % 100 == 0 {
            fs::create_dir_all(&inner)?;
        }
        let length = 200 + usize::try_from(noise.next() % 4000)?;
        let text: Vec<u8> = noise.bytes(length).iter().map(|byte| b'a' + byte % 16).collect();
        fs::write(inner.join(format!("file-{index:06}")), &text)?;
        bytes += text.len() as u64;
    }
    Ok(bytes)
}

/// Changes every hundredth file of both, differently for every turn.
///
/// # Errors
/// When a file cannot be written.
pub fn change(large: &Path, small: &Path, turn: u64) -> Result<()> {
    let mut noise = Noise::new(1000 + turn);
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [large.to_owned()].into_iter().chain(folders(small)?) {
        for entry in fs::read_dir(folder)? {
            files.push(entry?.path());
        }
    }
    files.sort();
    for path in files.iter().step_by(100) {
        let length = usize::try_from(fs::metadata(path)?.len())?;
        fs::write(path, noise.bytes(length))?;
    }
    Ok(())
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Bytes without any order, the same every time.
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read() {
        assert_eq!(high_water("VmPeak:\t 9 kB\nVmHWM:\t   2048 kB\n"), Some(2.0));
        assert_eq!(high_water("Name: x\n"), None);
    }

    #[test]
    fn a_childs_work_is_counted() {
        let mut spin = Command::new("sh");
        spin.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        let cost = measure(spin).unwrap();
        assert!(cost.seconds > 0.0 && cost.mebibytes > 0.0, "{cost:?}");
        assert!(measure(Command::new("false")).is_err());
    }

    #[test]
    fn a_hundredth_of_the_files_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (large, small) = (folder.path().join("large"), folder.path().join("small"));
        make_large(&large, 5).unwrap();
        assert!(make_small(&small, 250).unwrap() > 50_000);
        let read = || -> Vec<Vec<u8>> {
            let folders = [vec![large.clone()], folders(&small).unwrap()].concat();
            let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
            files.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
        };
        let before = read();
        change(&large, &small, 1).unwrap();
        let changed = before.iter().zip(read()).filter(|(before, after)| *before != after).count();
        assert_eq!((before.len(), changed), (252, 3));
    }
}
