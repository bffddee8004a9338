//! One of several leads: at once, after a stop, after a death, and never two at a time.

use crate::Cluster;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_engine::lease::LeaseConfig;
use lifeboat_engine::{Election, Metrics, Outcome};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Who led when, in seconds.
type Reign = Arc<Mutex<Vec<(String, u64, u64)>>>;

/// A network that can be cut.
#[derive(Default)]
struct Cable(AtomicBool);

impl Faults for Cable {
    fn on_request(&self, _: Asked<'_>) -> RequestFault {
        if self.0.load(Ordering::Relaxed) { RequestFault::DropRequest } else { RequestFault::None }
    }
}

struct Candidate {
    stop: CancellationToken,
    cable: Arc<Cable>,
    task: tokio::task::JoinHandle<Outcome>,
}

fn run(cluster: &Cluster, me: &str, began: Instant, reign: &Reign) -> Candidate {
    let (stop, cable) = (CancellationToken::new(), Arc::new(Cable::default()));
    let election = Election {
        client: cluster.client_with(cable.clone()),
        namespace: "default".into(),
        name: "binder".into(),
        me: me.into(),
        config: LeaseConfig::default(),
        clock: cluster.clock.clone(),
        metrics: Metrics::default(),
    };
    let (reign, me, stopped) = (reign.clone(), me.to_owned(), stop.clone());
    let task = tokio::spawn(async move {
        election
            .run(stopped, |stop| async move {
                /// Writes down the end however it comes.
                struct Rule(Reign, String, u64, Instant);
                impl Drop for Rule {
                    fn drop(&mut self) {
                        self.0.lock().push((self.1.clone(), self.2, self.3.elapsed().as_secs()));
                    }
                }
                let _rule = Rule(reign, me, began.elapsed().as_secs(), began);
                stop.cancelled().await;
                // Work that takes a while to finish keeps the lease until it has.
                tokio::time::sleep(Duration::from_secs(20)).await;
            })
            .await
    });
    Candidate { stop, cable, task }
}

async fn until(began: Instant, second: u64) {
    tokio::time::sleep_until(began + Duration::from_secs(second)).await;
}

async fn lease(cluster: &Cluster) -> Lease {
    Api::<Lease>::namespaced(cluster.client(), "default").get("binder").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_hands_over_when_it_is_done() {
    let (cluster, reign, began) = (Cluster::new(), Reign::default(), Instant::now());
    let a = run(&cluster, "a", began, &reign);
    until(began, 1).await;
    let b = run(&cluster, "b", began, &reign);
    until(began, 100).await;
    assert_eq!(lease(&cluster).await.spec.unwrap().holder_identity.as_deref(), Some("a"));
    a.stop.cancel();
    assert_eq!(a.task.await.unwrap(), Outcome::Finished);
    until(began, 130).await;
    b.stop.cancel();
    assert_eq!(b.task.await.unwrap(), Outcome::Finished);
    let reign = reign.lock().clone();
    assert_eq!(reign[0], ("a".into(), 0, 120), "it led until its work was done");
    let (who, from, _) = &reign[1];
    assert!(who == "b" && (120..=122).contains(from), "{reign:?}");
    let spec = lease(&cluster).await.spec.unwrap();
    assert_eq!((spec.holder_identity, spec.lease_transitions), (None, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn after_a_death_the_lease_runs_out_first() {
    let (cluster, reign, began) = (Cluster::new(), Reign::default(), Instant::now());
    let a = run(&cluster, "a", began, &reign);
    until(began, 1).await;
    let b = run(&cluster, "b", began, &reign);
    until(began, 100).await;
    a.task.abort();
    until(began, 130).await;
    b.stop.cancel();
    b.task.await.unwrap();
    let from = reign.lock().iter().find(|(who, ..)| who == "b").unwrap().1;
    assert!((113..=118).contains(&from), "took over at {from}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_starts() {
    let (cluster, reign, began) = (Cluster::new(), Reign::default(), Instant::now());
    let a = run(&cluster, "a", began, &reign);
    until(began, 1).await;
    let b = run(&cluster, "b", began, &reign);
    until(began, 100).await;
    a.cable.0.store(true, Ordering::Relaxed);
    assert_eq!(a.task.await.unwrap(), Outcome::Lost);
    until(began, 130).await;
    b.stop.cancel();
    b.task.await.unwrap();
    let reign = reign.lock().clone();
    let (ended, started) = (reign[0].2, reign[1].1);
    assert!((108..=111).contains(&ended) && ended < started && started <= 118, "{reign:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_deleted_stops() {
    let (cluster, reign, began) = (Cluster::new(), Reign::default(), Instant::now());
    let a = run(&cluster, "a", began, &reign);
    until(began, 10).await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
    leases.delete("binder", &DeleteParams::default()).await.unwrap();
    assert_eq!(a.task.await.unwrap(), Outcome::Lost);
    assert!(began.elapsed().as_secs() <= 13);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_stopped_never_led() {
    let (cluster, reign, began) = (Cluster::new(), Reign::default(), Instant::now());
    let _a = run(&cluster, "a", began, &reign);
    until(began, 1).await;
    let b = run(&cluster, "b", began, &reign);
    until(began, 5).await;
    b.stop.cancel();
    assert_eq!(b.task.await.unwrap(), Outcome::NeverLed);
}

/// A clock that somebody sets, or a machine that sleeps: the time of day jumps while the steady clock does not.
#[tokio::test(start_paused = true)]
async fn a_leader_that_slept_stops_when_it_wakes() {
    let (mut cluster, reign, began) = (Cluster::new(), Reign::default(), Instant::now());
    let (clock, ahead) = (cluster.clock.clone(), Arc::new(Mutex::new(jiff::SignedDuration::ZERO)));
    let jump = ahead.clone();
    cluster.clock = lifeboat_engine::Clock::from_fn(move || clock.now() + *ahead.lock());
    let a = run(&cluster, "a", began, &reign);
    until(began, 101).await;
    *jump.lock() = jiff::SignedDuration::from_mins(10);
    assert_eq!(a.task.await.unwrap(), Outcome::Lost);
    assert!(began.elapsed().as_secs() <= 103);
}
