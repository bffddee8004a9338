//! What every long-running command shares: its identity, its signals, and leading while a lease is held.

use crate::cluster::Target;
use crate::connect::connect;
use anyhow::{Context as _, bail};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use lifeboat_engine::lease::LeaseConfig;
use lifeboat_engine::{Clock, Election, Metrics, Outcome};
use std::io::Write as _;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs a controller to its end, on all cores.
pub fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(work)
}

/// Runs a controller to its end, on one thread: one that does nothing but read, decide and write over its connections would spend a third of
/// its time, and keep more memory, on handing things from thread to thread.
pub fn block_on_one_thread(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(work)
}

/// A client of a cluster that answers.
pub async fn client(target: &Target) -> anyhow::Result<kube::Client> {
    let config = target.config().await?;
    let address = config.cluster_url.clone();
    let client = connect(config)?;
    client.apiserver_version().await.with_context(|| format!("reaching the cluster at {address}"))?;
    Ok(client)
}

/// Work of which several processes are ready for, and one does it.
pub struct Lead {
    /// Where the lease is.
    pub client: kube::Client,
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: &'static str,
    /// Without a lease: the user says that there is no other.
    pub alone: bool,
    /// Told of the lease.
    pub metrics: Metrics,
}

impl Lead {
    /// Works while the lease is held, until a signal: the first stops the work, the second gives up on it.
    pub async fn run<F>(self, work: impl FnOnce(CancellationToken) -> F) -> anyhow::Result<()>
    where
        F: Future<Output = ()>,
    {
        let stop = CancellationToken::new();
        let signals = signals(stop.clone())?;
        tokio::select! {
            done = self.hold(stop, work) => done,
            () = signals => Ok(()),
        }
    }

    /// Waits until the lease has a place, and says what is lacking: somebody may be about to make it.
    async fn lease_place(&self) {
        let mut told = None;
        // A server that does not answer is the election's to wait for.
        let look = || tokio::time::timeout(LOOK_FOR, lacks(&self.client, &self.namespace, self.name));
        while let Ok(Some(lacking)) = look().await {
            if told.as_ref() != Some(&lacking) {
                // Without a terminal there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "{lacking}");
                told = Some(lacking);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn hold<F>(
        self,
        stop: CancellationToken,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> anyhow::Result<()>
    where
        F: Future<Output = ()>,
    {
        if self.alone {
            work(stop).await;
            return Ok(());
        }
        if stop.run_until_cancelled(self.lease_place()).await.is_none() {
            return Ok(());
        }
        let election = Election {
            client: self.client,
            namespace: self.namespace,
            name: self.name.to_owned(),
            me: identity(),
            config: LeaseConfig::default(),
            clock: Clock::system(),
            metrics: self.metrics,
        };
        match election.run(stop, work).await {
            // Whoever started this starts it again, with nothing left over from before.
            Outcome::Lost => bail!("the lease {}/{} was lost", election.namespace, election.name),
            Outcome::NeverLed | Outcome::Finished => Ok(()),
        }
    }
}

/// How long it may take to look whether the lease can be kept, and how long to wait before it is looked again.
const LOOK_FOR: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What keeps a lease from being held, with the remedy. An election only tries again, and says nothing.
async fn lacks(client: &kube::Client, namespace: &str, name: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    if let Err(kube::Error::Api(status)) = leases.get_opt(name).await
        && status.code == 403
    {
        return Some(format!(
            "the lease {namespace}/{name} may not be read, so nothing begins: {}",
            status.message
        ));
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    // Who may not look at namespaces runs in one, as a rule.
    matches!(namespaces.get_opt(namespace).await, Ok(None)).then(|| {
        format!(
            "there is no namespace {namespace} for the lease {name}, so nothing begins: `kubectl create namespace {namespace}` \
             makes it; options name another one, or start without a lease (--help)"
        )
    })
}

/// Different for each process, also for one that is started again under the same number.
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "lifeboat".to_owned());
    let started = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    format!("{host}_{}_{started}", std::process::id())
}

/// Stops the work at the first signal and gives up on it at the second.
pub fn signals(stop: CancellationToken) -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
    Ok(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.cancel();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use kube::api::PostParams;
    use lifeboat_apiserver::User;
    use serde_json::json;

    #[tokio::test]
    async fn what_keeps_a_lease_from_being_held_is_told() {
        let server = embedded::server();
        let admin = embedded::client(&server);
        let found = lacks(&admin, "lifeboat-system", "lifeboat-agent").await;
        let remedy = "`kubectl create namespace lifeboat-system`";
        assert!(found.as_ref().is_some_and(|lacking| lacking.contains(remedy)), "{found:?}");
        let space = serde_json::from_value(json!({"metadata": {"name": "lifeboat-system"}})).unwrap();
        let namespaces: Api<Namespace> = Api::all(admin.clone());
        namespaces.create(&PostParams::default(), &space).await.unwrap();
        assert_eq!(lacks(&admin, "lifeboat-system", "lifeboat-agent").await, None);

        let nobody = User::service_account("lifeboat-system", "nobody", "");
        let nobody = kube::Client::new(server.service_as(nobody), "default");
        let found = lacks(&nobody, "lifeboat-system", "lifeboat-agent").await;
        assert!(found.as_ref().is_some_and(|lacking| lacking.contains("may not be read")), "{found:?}");
    }
}
