//! Which cluster a command works on, named as kubectl names it.

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::PathBuf;

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
