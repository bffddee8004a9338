//! Which cluster a command works on, named as kubectl names it.

use anyhow::Context as _;
use kube::api::{PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::PathBuf;

/// Who `managedFields` says has written what a command writes; a server that is told nothing takes the name of the client's library.
const FIELD_MANAGER: &str = "lifeboat";

/// How a command changes an object.
pub fn patched() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// How a command makes an object.
pub fn posted() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// Whether a write came too late: the object is another one by now, or gone.
pub fn is_lost_race(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}

/// Options that name a cluster.
#[derive(clap::Args)]
pub struct Target {
    /// Kubeconfig of the cluster; without it $KUBECONFIG, ~/.kube/config or the cluster that this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; the current one when not given.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Target {
    /// A cluster named by a program.
    pub fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    /// How to reach the cluster.
    pub async fn config(&self) -> anyhow::Result<kube::Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        match (&self.kubeconfig, &self.context) {
            (Some(file), _) => {
                let read =
                    Kubeconfig::read_from(file).with_context(|| format!("reading {}", file.display()))?;
                kube::Config::from_custom_kubeconfig(read, &options).await.context("reading the kubeconfig")
            }
            (None, Some(_)) => {
                kube::Config::from_kubeconfig(&options).await.context("reading the kubeconfig")
            }
            (None, None) => kube::Config::infer().await.context("finding a cluster"),
        }
    }
}

/// An API server in this process, with every kind of ours.
#[cfg(test)]
pub mod embedded {
    use lifeboat_apiserver::{ApiServer, Config, User};

    /// An empty one.
    pub fn server() -> ApiServer {
        let server = ApiServer::new(Config::default()).unwrap();
        server.install(&lifeboat_api::crds()).unwrap();
        server
    }

    /// A client that may do everything.
    pub fn client(server: &ApiServer) -> kube::Client {
        kube::Client::new(server.service_as(User::admin()), "default")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_conflict_and_an_object_that_is_gone_are_lost_races() {
        let check = |code: u16, expected: bool| {
            let status = kube::core::Status::failure("no", "Reason").with_code(code).boxed();
            assert_eq!(is_lost_race(&kube::Error::Api(status)), expected, "{code}");
        };
        check(404, true);
        check(409, true);
        check(403, false);
        check(422, false);
        check(500, false);
    }
}
