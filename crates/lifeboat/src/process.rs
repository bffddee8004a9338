//! What every long-running command shares: its identity, its signals, and leading while a lease is held.

use anyhow::{Context as _, bail};
use lifeboat_engine::{Election, Engine, Outcome};
use tokio_util::sync::CancellationToken;

/// Runs an engine while the lease is held.
pub async fn lead(election: &Election, engine: Engine, stop: CancellationToken) -> anyhow::Result<()> {
    match election.run(stop, |stop| engine.run(stop.cancelled_owned())).await {
        // Whoever started this starts it again, with nothing left over from before.
        Outcome::Lost => bail!("the lease {}/{} was lost", election.namespace, election.name),
        Outcome::NeverLed | Outcome::Finished => Ok(()),
    }
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
