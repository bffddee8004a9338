//! Starts and stops a control plane.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binaries::{Binaries, Missing};
use crate::credentials::Credentials;
use crate::folder;
use crate::process::Process;
use crate::ready::Probe;

/// How long a control plane may take to become ready: far more than it needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);
/// A port is free when it is picked, and may be taken by someone else when it is used.
const ATTEMPTS: usize = 3;

/// Why a control plane did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program is not in the cache.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Something could not be written.
    #[error("preparing {}", path.display())]
    Folder {
        /// What was to be written.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A program could not be started, or no port could be had.
    #[error("starting {program}")]
    Start {
        /// Name of the program.
        program: &'static str,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A program ended by itself.
    #[error("{program} ended before it was ready; its last words:\n{log}")]
    Ended {
        /// Name of the program.
        program: &'static str,
        /// The end of its output.
        log: String,
    },
    /// A program did not become ready in time.
    #[error("{program} was not ready after {PATIENCE:?}; its last words:\n{log}")]
    NotReady {
        /// Name of the program.
        program: &'static str,
        /// The end of its output.
        log: String,
    },
    /// A key or certificate could not be made.
    #[error("making certificates")]
    Certificates(#[from] rcgen::Error),
}

/// Whether etcd waits for the disk before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// No fsync: the data folder is thrown away with the cluster anyway. Right for tests.
    #[default]
    Relaxed,
    /// As in production. Right for benchmarks.
    Synced,
}

/// What kind of control plane to start.
#[derive(Clone, Debug)]
pub struct Builder {
    binaries: Binaries,
    durability: Durability,
    controllers: Vec<String>,
    data: Option<PathBuf>,
}

/// A running control plane; dropping it ends its processes and removes its data.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields are dropped in this order: clients of etcd before etcd, the folder last.
    controller_manager: Option<Process>,
    apiserver: Process,
    etcd: Process,
    address: SocketAddr,
    ca_pem: String,
    kubeconfig: PathBuf,
    time_to_ready: Duration,
    folder: TempDir,
}

impl ControlPlane {
    /// A bare etcd and kube-apiserver from the cache, without controllers.
    pub fn builder() -> Builder {
        Builder {
            binaries: Binaries::in_cache(),
            durability: Durability::default(),
            controllers: Vec::new(),
            data: None,
        }
    }

    /// Where the API server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Certificate of the CA that signed the server's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Folder with the certificates and logs; removed with the control plane.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// From the start of etcd until `/readyz` of kube-apiserver answered 200.
    pub fn time_to_ready(&self) -> Duration {
        self.time_to_ready
    }

    /// Process ids of etcd and of kube-apiserver.
    pub fn pids(&self) -> [(&'static str, u32); 2] {
        [("etcd", self.etcd.pid()), ("kube-apiserver", self.apiserver.pid())]
    }
}

impl Builder {
    /// Runs kube-controller-manager as well, with only these controllers.
    #[must_use]
    pub fn controllers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.controllers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Chooses whether etcd waits for the disk.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Makes the data folder below `parent` and not in the system's folder for temporary files, which may be in memory.
    #[must_use]
    pub fn data_below(mut self, parent: &Path) -> Self {
        self.data = Some(parent.to_owned());
        self
    }

    /// Takes the programs from somewhere else than the cache.
    #[must_use]
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = binaries;
        self
    }

    /// Starts everything and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`] says which part did not start, and why.
    pub fn start(&self) -> Result<ControlPlane, StartError> {
        let mut attempt = 1;
        loop {
            match self.try_start() {
                Err(StartError::Ended { log, .. })
                    if attempt < ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn try_start(&self) -> Result<ControlPlane, StartError> {
        // Look for all programs first: a skip should not cost the start of half a cluster.
        let etcd_program = self.binaries.etcd()?;
        let apiserver_program = self.binaries.kube_apiserver()?;
        let manager_program = match self.controllers.as_slice() {
            [] => None,
            _ => Some(self.binaries.kube_controller_manager()?),
        };

        let folder = self.make_folder()?;
        let credentials = Credentials::make(folder.path())?;
        let log = |name: &str| folder.path().join(format!("{name}.log"));
        let [client_port, peer_port, secure_port] = free_ports()?;

        let begin = Instant::now();
        let run = |program: &'static str, path: &Path, args: &[String]| {
            Process::start(path, args, &log(program)).map_err(|source| StartError::Start { program, source })
        };
        let etcd =
            run("etcd", &etcd_program, &etcd_args(folder.path(), client_port, peer_port, self.durability))?;
        // kube-apiserver waits for etcd by itself.
        let mut apiserver = run(
            "kube-apiserver",
            &apiserver_program,
            &apiserver_args(&credentials, client_port, secure_port),
        )?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, secure_port));
        let probe = Probe::new(address, credentials.ca_pem())
            .map_err(|source| StartError::Start { program: "kube-apiserver", source })?;
        let mut etcd = etcd;
        wait_until_ready(&mut [("etcd", &mut etcd), ("kube-apiserver", &mut apiserver)], &probe, begin)?;
        let time_to_ready = begin.elapsed();

        let kubeconfig = credentials.write_kubeconfig(&format!("https://{address}"))?;
        let controller_manager = match manager_program {
            Some(program) => {
                let args = manager_args(&credentials, &kubeconfig, &self.controllers);
                Some(run("kube-controller-manager", &program, &args)?)
            }
            None => None,
        };
        Ok(ControlPlane {
            controller_manager,
            apiserver,
            etcd,
            address,
            ca_pem: credentials.ca_pem().to_owned(),
            kubeconfig,
            time_to_ready,
            folder,
        })
    }

    fn make_folder(&self) -> Result<TempDir, StartError> {
        let parent = self.data.clone().unwrap_or_else(std::env::temp_dir);
        folder::make(&parent, "reference").map_err(|source| StartError::Folder { path: parent, source })
    }
}

impl ControlPlane {
    /// Whether the chosen controllers still run; false as well when none were asked for.
    pub fn controllers_run(&mut self) -> bool {
        self.controller_manager.as_mut().is_some_and(|process| !process.has_exited())
    }
}

fn wait_until_ready(
    processes: &mut [(&'static str, &mut Process)],
    probe: &Probe,
    begin: Instant,
) -> Result<(), StartError> {
    loop {
        // An error only means that it does not listen yet.
        if probe.answers("/readyz").unwrap_or(false) {
            return Ok(());
        }
        for (program, process) in processes.iter_mut() {
            if process.has_exited() {
                return Err(StartError::Ended { program, log: process.log_tail() });
            }
        }
        if begin.elapsed() > PATIENCE {
            let (program, process) = &processes[processes.len() - 1];
            return Err(StartError::NotReady { program, log: process.log_tail() });
        }
        thread::sleep(PAUSE);
    }
}

fn free_ports<const N: usize>() -> Result<[u16; N], StartError> {
    let failed = |source| StartError::Start { program: "a listener on loopback", source };
    // All are held until the last is picked, so that no two are the same.
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        *port = listener.local_addr().map_err(failed)?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn etcd_args(folder: &Path, client_port: u16, peer_port: u16, durability: Durability) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut args = vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--quota-backend-bytes=8589934592".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    if durability == Durability::Relaxed {
        args.push("--unsafe-no-fsync".to_owned());
    }
    args
}

fn apiserver_args(credentials: &Credentials, etcd_port: u16, secure_port: u16) -> Vec<String> {
    let file = |name| credentials.path(name).display().to_string();
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={secure_port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        format!("--cert-dir={}", credentials.path("").display()),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("accounts.pub")),
        format!("--service-account-signing-key-file={}", file("accounts.key")),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
    ]
}

fn manager_args(credentials: &Credentials, kubeconfig: &Path, controllers: &[String]) -> Vec<String> {
    let file = |name| credentials.path(name).display().to_string();
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={}", controllers.join(",")),
        format!("--service-account-private-key-file={}", file("accounts.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}
