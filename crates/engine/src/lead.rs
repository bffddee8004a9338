//! Leader election: carries out what [`lease`](crate::lease) decides. Every write names the version it replaces, so two
//! candidates never both succeed. Whoever loses the lease is stopped by dropping its work, before anybody else can start.

use crate::clock::Clock;
use crate::lease::{LeaseConfig, LeaseView, Verdict, decide, stop_at};
use crate::metrics::Metrics;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// One candidate for one lease.
pub struct Election {
    /// A client of the cluster that has the lease.
    pub client: kube::Client,
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Who this candidate is: different for each process, also for one that is started again.
    pub me: String,
    /// How long leadership lasts.
    pub config: LeaseConfig,
    /// The clock.
    pub clock: Clock,
    /// Told who leads.
    pub metrics: Metrics,
}

/// How leadership ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was asked to stop before it led.
    NeverLed,
    /// The work ended, and the lease was given back.
    Finished,
    /// The lease was lost, and the work was dropped.
    Lost,
}

struct Seen {
    lease: Lease,
    view: LeaseView,
    /// The time of day at `view.seen`.
    wall: Timestamp,
}

impl Election {
    /// Waits until this candidate leads, then does `work`, which is given `stop` and ends in its own time after it. The lease is
    /// kept until the work has ended.
    pub async fn run<F: Future<Output = ()>>(
        &self,
        stop: CancellationToken,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Outcome {
        let Some(mut seen) = stop.run_until_cancelled(self.campaign()).await else {
            return Outcome::NeverLed;
        };
        tracing::info!(lease = self.name, me = self.me, "leads");
        self.metrics.leads(&self.name, true);
        let outcome = {
            let keep = pin!(self.keep(&mut seen));
            let work = pin!(work(stop));
            tokio::select! {
                biased;
                () = keep => Outcome::Lost,
                () = work => Outcome::Finished,
            }
        };
        self.metrics.leads(&self.name, false);
        match outcome {
            Outcome::Lost => tracing::warn!(lease = self.name, me = self.me, "leads no more"),
            _ => self.give_back(seen).await,
        }
        outcome
    }

    async fn campaign(&self) -> Seen {
        let mut seen: Option<Seen> = None;
        loop {
            // What cannot be read cannot be judged, but nor can it be taken: a lease that exists refuses to be created.
            seen = self.look(seen.take(), false).await.unwrap_or_default();
            let now = self.clock.steady();
            let view = seen.as_ref().map(|seen| &seen.view);
            let soon = now + self.config.every;
            let until = match decide(now, view, &self.me, false, &self.config) {
                Verdict::Acquire | Verdict::Renew => match self.write(seen.as_ref(), now).await {
                    Some(led) => return led,
                    None => soon,
                },
                Verdict::Wait { until } => until.min(soon),
                Verdict::Lost => soon,
            };
            tokio::time::sleep_until(self.instant(until)).await;
        }
    }

    /// Renews until the lease is lost.
    async fn keep(&self, seen: &mut Seen) {
        loop {
            let now = self.leaders_time(seen);
            let deadline = self.instant(stop_at(seen.view.seen, &self.config));
            match decide(now, Some(&seen.view), &self.me, true, &self.config) {
                Verdict::Wait { until } => {
                    tokio::time::sleep_until(self.instant(until).min(deadline)).await;
                }
                Verdict::Renew | Verdict::Acquire => {
                    let sent = self.clock.steady();
                    if let Ok(Some(renewed)) = timeout_at(deadline, self.write(Some(seen), sent)).await {
                        *seen = renewed;
                        continue;
                    }
                    let looked = timeout_at(deadline, self.look_again(seen)).await;
                    match looked {
                        Ok(Ok(Some(newer))) => *seen = newer,
                        Ok(Ok(None)) => return,
                        Ok(Err(())) | Err(_) => {}
                    }
                    let soon = Instant::now() + self.config.every / 2;
                    tokio::time::sleep_until(soon.min(deadline)).await;
                }
                Verdict::Lost => return,
            }
        }
    }

    /// The later of what both clocks say: a machine that was asleep has a steady clock that slept too, and its lease did not.
    fn leaders_time(&self, seen: &Seen) -> Timestamp {
        let by_wall = Duration::try_from(self.clock.now().duration_since(seen.wall)).unwrap_or_default();
        self.clock.steady().max(crate::clock::after(seen.view.seen, by_wall))
    }

    async fn look_again(&self, seen: &Seen) -> Result<Option<Seen>, ()> {
        let known = Seen { lease: seen.lease.clone(), view: seen.view.clone(), wall: seen.wall };
        self.look(Some(known), true).await
    }

    /// Reads the lease; a version already seen keeps the time it was seen first.
    async fn look(&self, seen: Option<Seen>, leads: bool) -> Result<Option<Seen>, ()> {
        let read = tokio::time::timeout(self.config.lasts, self.api().get_opt(&self.name)).await;
        let lease = match read {
            Ok(Ok(lease)) => lease,
            Ok(Err(error)) => {
                tracing::debug!(%error, lease = self.name, "the lease cannot be read");
                return seen.map(Some).ok_or(());
            }
            Err(_) => return seen.map(Some).ok_or(()),
        };
        let Some(lease) = lease else { return Ok(None) };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        let known = seen.filter(|seen| {
            let same = seen.lease.metadata.resource_version == lease.metadata.resource_version
                && seen.lease.metadata.uid == lease.metadata.uid;
            // A renewal of ours whose answer was lost counts from no later than the one before it.
            same || (leads && holder.as_deref() == Some(self.me.as_str()))
        });
        let (seen_at, wall) = match known {
            Some(known) => (known.view.seen, known.wall),
            None => (self.clock.steady(), self.clock.now()),
        };
        let lasts = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let view =
            LeaseView { holder, lasts: lasts.map_or(self.config.lasts, Duration::from_secs), seen: seen_at };
        Ok(Some(Seen { lease, view, wall }))
    }

    /// Writes the lease as ours, on the version seen; `None` if that did not work.
    async fn write(&self, seen: Option<&Seen>, sent: Timestamp) -> Option<Seen> {
        let lease = self.next(seen);
        let wall = self.clock.now();
        let params = PostParams::default();
        let api = self.api();
        let written = async {
            match seen {
                None => api.create(&params, &lease).await,
                Some(_) => api.replace(&self.name, &params, &lease).await,
            }
        };
        match tokio::time::timeout(self.config.lasts, written).await {
            Ok(Ok(lease)) => {
                let view = LeaseView { holder: Some(self.me.clone()), lasts: self.config.lasts, seen: sent };
                Some(Seen { lease, view, wall })
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, lease = self.name, "the lease was not written");
                None
            }
            Err(_) => None,
        }
    }

    /// The lease as it is when we hold it.
    fn next(&self, seen: Option<&Seen>) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        let mut lease =
            seen.map_or_else(|| Lease { metadata, ..Lease::default() }, |seen| seen.lease.clone());
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        let now = MicroTime(self.clock.now());
        if spec.holder_identity.as_deref() != Some(self.me.as_str()) {
            spec.holder_identity = Some(self.me.clone());
            spec.acquire_time = Some(now.clone());
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count + 1));
        }
        spec.renew_time = Some(now);
        spec.lease_duration_seconds = i32::try_from(self.config.lasts.as_secs()).ok();
        lease
    }

    async fn give_back(&self, seen: Seen) {
        let mut lease = seen.lease;
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(self.clock.now()));
        // Refused or too late: the lease runs out by itself.
        let params = PostParams::default();
        let api = self.api();
        let written = api.replace(&self.name, &params, &lease);
        let _ = tokio::time::timeout(self.config.every, written).await;
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.clock.steady());
        Instant::now() + Duration::try_from(ahead).unwrap_or_default()
    }
}
