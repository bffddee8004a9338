//! A real cluster for a test: kube-apiserver and etcd on loopback, seen through a [`kube::Client`].
//!
//! The processes, ports and certificates are the business of `lifeboat_reference`; here are the client, one cluster
//! that the tests of a binary share, and the skip where the programs are not built.

use std::path::Path;
use std::sync::OnceLock;

use kube::config::{KubeConfigOptions, Kubeconfig};
use lifeboat_apiserver::User;
pub use lifeboat_reference::{ControlPlane, Durability, Lack, Missing, StartError, skip, skip_for};

/// What kube-controller-manager does for every namespace, and what the embedded server does by itself: without these a
/// bare kube-apiserver never finishes deleting a namespace and collects no garbage.
const CONTROLLERS: [&str; 4] = [
    "namespace-controller",
    "serviceaccount-controller",
    "garbage-collector-controller",
    "root-ca-certificate-publisher-controller",
];

/// A real control plane, with the controllers that belong to the API itself.
#[derive(Debug)]
pub struct RealCluster {
    plane: ControlPlane,
}

/// Why there is no real cluster, or no client of it.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// The control plane did not start.
    #[error("starting a real control plane")]
    Start(#[from] StartError),
    /// Its kubeconfig could not be used.
    #[error("reading the kubeconfig of a real control plane")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// No client could be made of it.
    #[error("making a client of a real control plane")]
    Client(#[source] Box<kube::Error>),
}

impl RealCluster {
    /// Starts a cluster of its own; most tests want [`shared`].
    ///
    /// # Errors
    /// [`RealError::Start`] with [`StartError::Missing`] inside where the programs are not built.
    pub fn start() -> Result<Self, RealError> {
        let plane = ControlPlane::builder().controllers(CONTROLLERS).start()?;
        Ok(Self { plane })
    }

    /// A new client with an administrator's rights. It belongs to the runtime it is made in, so every test makes its own.
    ///
    /// # Errors
    /// [`RealError`] when the kubeconfig cannot be used.
    pub async fn client(&self) -> Result<kube::Client, RealError> {
        self.client_as(None).await
    }

    /// A new client that acts as a user; as the administrator where none is given.
    pub(crate) async fn client_as(&self, user: Option<&User>) -> Result<kube::Client, RealError> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig())?;
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        if let Some(user) = user {
            config.auth_info.impersonate = Some(user.name.clone());
            config.auth_info.impersonate_groups = Some(user.groups.clone());
        }
        // Objects of no namespace of their own go to the same one as on the embedded cluster.
        config.default_namespace = "default".to_owned();
        kube::Client::try_from(config).map_err(|error| RealError::Client(Box::new(error)))
    }

    /// Kubeconfig of an administrator, for `kubectl` and Go programs.
    pub fn kubeconfig(&self) -> &Path {
        self.plane.kubeconfig()
    }

    /// The processes behind it.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }
}

/// A real cluster of its own for one test, where it needs several; it ends with the test binary.
///
/// Gives `None` where the programs are not built, and has reported `test` as skipped then.
///
/// # Panics
/// When the programs are there but do not start.
pub fn another(test: &str) -> Option<&'static RealCluster> {
    match RealCluster::start() {
        Ok(cluster) => Some(Box::leak(Box::new(cluster))),
        Err(RealError::Start(StartError::Missing(missing))) => {
            skip(test, &missing);
            None
        }
        Err(other) => panic!("{other}: {:?}", std::error::Error::source(&other).map(ToString::to_string)),
    }
}

/// The real cluster that all tests of this binary share, started by the first that asks; tests keep apart by namespace.
///
/// Gives `None` where the programs are not built, and has reported `test` as skipped then. The processes end with the
/// test binary, however it ends.
///
/// # Panics
/// When the programs are there but do not start: that is a failure, not a skip.
pub fn shared(test: &str) -> Option<&'static RealCluster> {
    static SHARED: OnceLock<Result<RealCluster, Missing>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| match RealCluster::start() {
        Ok(cluster) => Ok(cluster),
        Err(RealError::Start(StartError::Missing(missing))) => Err(missing),
        Err(other) => panic!("{other}: {:?}", std::error::Error::source(&other).map(ToString::to_string)),
    });
    match shared {
        Ok(cluster) => Some(cluster),
        Err(missing) => {
            skip(test, missing);
            None
        }
    }
}
