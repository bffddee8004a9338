//! The two sides: `lifeboat up --data` and kube-apiserver with etcd, both durable, on the same file system.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use lifeboat_reference::{ControlPlane, Durability, Process};
use tempfile::TempDir;

use crate::client::Access;

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);
/// Parts of an embedded cluster that no benchmark of the server or the binder wants.
const NOT_MEASURED: &str = "storage,mover,mirror,runner,protector,store,agent,membership,hub";

/// A running server that is ready.
pub struct Server {
    /// How to reach it.
    pub access: Access,
    /// From the start of its first process until `/readyz` answered 200.
    pub time_to_ready: Duration,
    kind: Kind,
}

enum Kind {
    Embedded { process: Process, folder: TempDir },
    Real(Box<ControlPlane>),
}

impl Server {
    /// Starts the embedded server of the given binary, with its data below `parent` and no controller.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn embedded(program: &Path, parent: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("lifeboat-bench-").tempdir_in(parent)?;
        Self::on(program, folder, &format!("binder,{NOT_MEASURED}")).await
    }

    /// The same embedded server started again on what it has, this time with its own binder.
    ///
    /// # Errors
    /// When it does not become ready, or is not embedded.
    pub async fn with_its_binder(self, program: &Path) -> Result<Self> {
        let Kind::Embedded { process, folder } = self.kind else { bail!("kube-apiserver has no binder") };
        drop(process);
        std::fs::remove_file(folder.path().join("data").join("kubeconfig"))?;
        Self::on(program, folder, NOT_MEASURED).await
    }

    async fn on(program: &Path, folder: TempDir, without: &str) -> Result<Self> {
        let data = folder.path().join("data");
        let mut args =
            ["up", "--clusters", "hub", "--without", without, "--data"].map(str::to_owned).to_vec();
        args.push(data.display().to_string());
        let begin = Instant::now();
        let mut process = Process::start(program, &args, &folder.path().join("log"))?;
        let kubeconfig = data.join("kubeconfig");
        let access = loop {
            if let Some(access) = ready(&kubeconfig).await {
                break access;
            }
            if process.has_exited() || begin.elapsed() > PATIENCE {
                bail!("lifeboat up is not ready; it said:\n{}", process.log_tail());
            }
            tokio::time::sleep(PAUSE).await;
        };
        let time_to_ready = begin.elapsed();
        Ok(Self { access, time_to_ready, kind: Kind::Embedded { process, folder } })
    }

    /// Starts kube-apiserver and etcd, with their data below `parent`; etcd syncs every write to the disk.
    ///
    /// # Errors
    /// When they do not become ready, or are not built.
    pub async fn real(parent: &Path) -> Result<Self> {
        let parent: PathBuf = parent.to_owned();
        let start =
            move || ControlPlane::builder().durability(Durability::Synced).data_below(&parent).start();
        let plane = tokio::task::spawn_blocking(start).await??;
        let access = Access::read(plane.kubeconfig())?;
        Ok(Self { access, time_to_ready: plane.time_to_ready(), kind: Kind::Real(Box::new(plane)) })
    }

    /// Kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        match &self.kind {
            Kind::Embedded { folder, .. } => folder.path().join("data").join("kubeconfig"),
            Kind::Real(plane) => plane.kubeconfig().to_owned(),
        }
    }

    /// Resident memory of each of its processes, in bytes.
    ///
    /// # Errors
    /// When a process is gone.
    pub fn memory(&self) -> Result<Vec<(&'static str, u64)>> {
        self.pids().into_iter().map(|(name, pid)| Ok((name, resident(pid)?))).collect()
    }

    /// Processor time that its processes have used so far.
    ///
    /// # Errors
    /// When a process is gone.
    pub fn processor_time(&self) -> Result<Duration> {
        self.pids().into_iter().map(|(_, pid)| processor_time(&pid.to_string())).sum()
    }

    /// Its processes, by name.
    pub fn pids(&self) -> Vec<(&'static str, u32)> {
        match &self.kind {
            Kind::Embedded { process, .. } => vec![("lifeboat", process.pid())],
            Kind::Real(plane) => plane.pids().to_vec(),
        }
    }
}

/// Access to a server whose kubeconfig is written and whose `/readyz` answers.
async fn ready(kubeconfig: &Path) -> Option<Access> {
    if !kubeconfig.is_file() {
        return None;
    }
    let access = Access::read(kubeconfig).ok()?;
    let mut connection = access.connect().await.ok()?;
    connection.call(Method::GET, "/readyz", Bytes::new(), StatusCode::OK).await.ok()?;
    Some(access)
}

/// Processor time of this process: the client.
///
/// # Errors
/// When the system does not tell.
pub fn own_processor_time() -> Result<Duration> {
    processor_time("self")
}

/// Processor time that a process, by its number or `self`, has used so far.
///
/// # Errors
/// When it is gone.
pub fn processor_time(process: &str) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    // The name, in parentheses, may hold anything; user and system time are the 12th and 13th field after it.
    let (_, fields) = text.rsplit_once(')').with_context(|| format!("{path} has no name"))?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    // Linux counts in hundredths of a second here, on every machine.
    Ok(Duration::from_millis(ticks * 10))
}

fn resident(pid: u32) -> Result<u64> {
    memory_line(pid, "VmRSS:")
}

/// The most memory that a process has had resident, in bytes.
///
/// # Errors
/// When it is gone.
pub fn peak_memory(pid: u32) -> Result<u64> {
    memory_line(pid, "VmHWM:")
}

fn memory_line(pid: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).context("a process without memory")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}
