//! Follows an action on the hub by watching, and tells each step with its time.

use crate::status::say;
use anyhow::Context as _;
use futures::StreamExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use lifeboat_api::conditions::vrg;
use lifeboat_api::ramen::{DRPlacementControl, DRPlacementControlStatus, DRState, Progression};
use lifeboat_engine::conditions::find;
use lifeboat_hub::drpc::commission::Act;
use std::time::Duration;
use tokio::time::Instant;

/// How an action came out.
pub struct Came {
    /// Whether the hub has brought the application where it should run.
    pub moved: bool,
    /// What is known of its pods there.
    pub pods: Pods,
    /// Whether pods used its PVCs where it came from, as far as is known. One without any is there without any.
    pub had_pods: bool,
    /// Whether the object that was followed is gone.
    pub deleted: bool,
    /// The status when it was asked for.
    pub before: DRPlacementControlStatus,
    /// The last status seen.
    pub status: DRPlacementControlStatus,
    /// How long it was followed.
    pub took: Duration,
}

impl Came {
    /// Whether the application runs where it should.
    pub fn is_done(&self) -> bool {
        let run = match self.pods {
            Pods::Ready | Pods::NotTold => true,
            Pods::Missing(_) => !self.had_pods,
            Pods::NotReady(_) => false,
        };
        self.moved && run
    }
}

/// What the cluster that the application runs on says of the pods that use its PVCs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pods {
    /// They are ready.
    Ready,
    /// Nobody there tells: the cluster has another operator, or the application has no PVC.
    NotTold,
    /// There is none.
    Missing(String),
    /// They are there and not ready.
    NotReady(String),
}

/// What a status says of the application's pods.
pub fn pods(status: &DRPlacementControlStatus) -> Pods {
    let group = status.resource_conditions.as_ref();
    let generation = group.and_then(|group| group.resource_meta.as_ref()).map(|meta| meta.generation);
    let said = group.and_then(|group| find(&group.conditions, vrg::TYPE_PODS_READY));
    match said {
        None => Pods::NotTold,
        Some(said) if said.observed_generation < generation => {
            Pods::NotReady("The VRG's last change is not observed yet.".to_owned())
        }
        Some(said) if said.status == "True" => Pods::Ready,
        Some(said) if said.reason == vrg::REASON_NO_PODS => Pods::Missing(said.message.clone()),
        Some(said) => Pods::NotReady(said.message.clone()),
    }
}

/// Whether a status says that the action of this generation has brought the application where it should run.
pub fn is_done(status: &DRPlacementControlStatus, generation: Option<i64>, act: Act) -> bool {
    let rests = match act {
        Act::Deploy => DRState::Deployed,
        Act::Failover => DRState::FailedOver,
        Act::Relocate => DRState::Relocated,
    };
    status.observed_generation >= generation && status.phase == Some(rests)
}

/// What is told of a status while it is followed.
pub fn step(status: &DRPlacementControlStatus) -> String {
    let phase = status.phase.as_ref().map_or("", DRState::as_str);
    let step = status.progression.as_ref().map_or("", Progression::as_str);
    let blocker = status.blockers.first().map(|blocker| format!(", waits: {}", blocker.message));
    format!("{phase} {step}{}", blocker.unwrap_or_default())
}

/// How long to wait before a hub that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long somebody may take to make pods after the hub has placed the application. An application that is scaled to zero has none.
const MAKING_PODS: Duration = Duration::from_secs(60);

/// Follows until it is done, the object is gone or the time is over. A hub that does not answer is asked again: the action goes on without us.
pub async fn follow(
    api: &Api<DRPlacementControl>,
    asked: &DRPlacementControl,
    act: Act,
    had_pods: bool,
    within: Duration,
    tell: bool,
) -> anyhow::Result<Came> {
    let mut followed = Followed {
        asked,
        act,
        tell,
        began: Instant::now(),
        told: String::new(),
        until: Instant::now() + within,
        came: Came {
            moved: false,
            pods: Pods::NotTold,
            had_pods,
            deleted: false,
            before: asked.status.clone().unwrap_or_default(),
            status: asked.status.clone().unwrap_or_default(),
            took: Duration::ZERO,
        },
    };
    let last = followed.until;
    while !followed.has_ended() {
        let deadline = followed.until.min(last);
        match tokio::time::timeout_at(deadline, followed.watch(api, last)).await {
            // The time is over.
            Err(_) => break,
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let why = crate::causes(&error).join(": ");
                let line =
                    format!("the hub does not answer and is asked again; what was begun goes on ({why})");
                followed.say(line)?;
                if tokio::time::timeout_at(deadline, tokio::time::sleep(AGAIN)).await.is_err() {
                    break;
                }
            }
        }
    }
    let Followed { mut came, began, .. } = followed;
    came.took = began.elapsed();
    Ok(came)
}

struct Followed<'a> {
    asked: &'a DRPlacementControl,
    act: Act,
    tell: bool,
    began: Instant,
    told: String,
    /// Until when it is followed. Without pods that is not for long.
    until: Instant,
    came: Came,
}

impl Followed<'_> {
    fn has_ended(&self) -> bool {
        self.came.is_done() || self.came.deleted
    }

    /// Takes a status in; whether the time to follow it has changed with it.
    fn take(&mut self, status: DRPlacementControlStatus, within: Instant) -> bool {
        let missed = self.came.moved && matches!(self.came.pods, Pods::Missing(_));
        self.came.moved = is_done(&status, self.asked.metadata.generation, self.act);
        self.came.pods = pods(&status);
        self.came.status = status;
        let misses = self.came.moved && matches!(self.came.pods, Pods::Missing(_));
        self.until = match (misses, missed) {
            (true, true) => self.until,
            (true, false) => Instant::now() + MAKING_PODS,
            (false, _) => within,
        };
        misses != missed
    }

    fn say(&mut self, line: String) -> anyhow::Result<()> {
        if self.tell && line != self.told {
            say(&format!("  {:>6.1} s  {line}\n", self.began.elapsed().as_secs_f64()))?;
            self.told = line;
        }
        Ok(())
    }

    /// Takes in what the hub shows and tells it; whether watching ends with it.
    fn observe(&mut self, now: DRPlacementControl, last: Instant) -> anyhow::Result<bool> {
        if now.metadata.generation < self.asked.metadata.generation {
            return Ok(false);
        }
        let changed = self.take(now.status.unwrap_or_default(), last);
        let line = match (&self.came.moved, &self.came.pods) {
            (true, Pods::Missing(why) | Pods::NotReady(why)) => why.clone(),
            _ => step(&self.came.status),
        };
        self.say(line)?;
        Ok(self.has_ended() || changed)
    }

    /// Follows as long as the hub tells.
    async fn watch(&mut self, api: &Api<DRPlacementControl>, last: Instant) -> anyhow::Result<()> {
        let name = self.asked.metadata.name.clone().unwrap_or_default();
        let named = format!("metadata.name={name}");
        let listed = api.list(&ListParams::default().fields(&named)).await;
        let listed = listed.context("reading the DRPlacementControl")?;
        // What is gone when nobody looked is told by nobody.
        let found = listed.items.into_iter().find(|now| now.metadata.uid == self.asked.metadata.uid);
        let Some(found) = found else {
            self.came.deleted = true;
            return Ok(());
        };
        if self.observe(found, last)? {
            return Ok(());
        }
        // From the very state that was read: what is deleted in between is told, too.
        let version = listed.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().fields(&named).timeout(290);
        let mut events = api.watch(&params, &version).await.context("following it")?.boxed();
        while let Some(event) = events.next().await {
            let ended = match event.context("following it")? {
                WatchEvent::Added(now) | WatchEvent::Modified(now) => self.observe(now, last)?,
                WatchEvent::Deleted(gone) => {
                    self.came.deleted = gone.metadata.uid == self.asked.metadata.uid;
                    self.came.deleted
                }
                WatchEvent::Error(error) => anyhow::bail!("{}", error.message),
                WatchEvent::Bookmark(_) => false,
            };
            if ended {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    use lifeboat_apiserver::{ApiServer, User};
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Semaphore;
    use tower::Service as _;

    /// An application that a failover was asked for.
    async fn asked(client: &kube::Client) -> (Api<DRPlacementControl>, DRPlacementControl) {
        let api: Api<DRPlacementControl> = Api::default_namespaced(client.clone());
        let object = json!({
            "metadata": {"name": "web"},
            "spec": {
                "action": "Failover", "failoverCluster": "west",
                "placementRef": {}, "drPolicyRef": {}, "pvcSelector": {},
            },
        });
        let made =
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        (api, made)
    }

    async fn failed_over(api: &Api<DRPlacementControl>, generation: Option<i64>) {
        let status = json!({"status": {"phase": "FailedOver", "observedGeneration": generation}});
        api.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    async fn came(api: &Api<DRPlacementControl>, asked: &DRPlacementControl) -> Came {
        follow(api, asked, Act::Failover, true, Duration::from_secs(60), false).await.unwrap()
    }

    /// A client of which some requests find nobody, as while a hub is started again.
    fn refusing(server: &ApiServer, refused: &'static [u32]) -> (kube::Client, Arc<Semaphore>) {
        let (service, count) = (server.service_as(User::admin()), Arc::new(AtomicU32::new(0)));
        let refusals = Arc::new(Semaphore::new(0));
        let counted = refusals.clone();
        let service = tower::service_fn(move |request: hyper::Request<kube::client::Body>| {
            let (mut service, count, counted) = (service.clone(), count.clone(), counted.clone());
            async move {
                if refused.contains(&count.fetch_add(1, Ordering::Relaxed)) {
                    counted.add_permits(1);
                    return Err(tower::BoxError::from("connection refused"));
                }
                service.call(request).await.map_err(tower::BoxError::from)
            }
        });
        (kube::Client::new(service, "default"), refusals)
    }

    #[tokio::test]
    async fn a_hub_that_is_started_again_is_followed_on() {
        // Where it reads the object, where it begins to watch, and both.
        for refused in [&[0][..], &[1], &[0, 2]] {
            let server = embedded::server();
            let (api, asked) = asked(&embedded::client(&server)).await;
            let (flaky, refusals) = refusing(&server, refused);
            let flaky = Api::default_namespaced(flaky);
            // The hub goes on when it has been away.
            let hub = async {
                let times = u32::try_from(refused.len()).unwrap();
                refusals.acquire_many(times).await.unwrap().forget();
                failed_over(&api, asked.metadata.generation).await;
            };
            let (came, ()) = tokio::join!(came(&flaky, &asked), hub);
            assert!(came.is_done() && !came.deleted, "{refused:?}");
        }
    }

    #[tokio::test]
    async fn an_object_that_is_deleted_is_followed_no_more() {
        let server = embedded::server();
        let (api, made) = asked(&embedded::client(&server)).await;
        let delete = async {
            api.delete("web", &DeleteParams::default()).await.unwrap();
        };
        let (meanwhile, ()) = tokio::join!(came(&api, &made), delete);
        assert!(meanwhile.deleted && !meanwhile.is_done());
        let (api, another) = asked(&embedded::client(&server)).await;
        failed_over(&api, another.metadata.generation).await;
        assert!(came(&api, &made).await.deleted, "another one of the name is not what was asked for");
    }

    #[test]
    fn done_is_what_the_hub_says_of_this_generation() {
        let check = |phase: &str, seen: i64, act: Act, expected: bool| {
            let status = json!({"phase": phase, "observedGeneration": seen});
            let status: DRPlacementControlStatus = serde_json::from_value(status).unwrap();
            assert_eq!(is_done(&status, Some(3), act), expected, "{phase} {seen} {act}");
        };
        check("FailedOver", 3, Act::Failover, true);
        check("FailedOver", 2, Act::Failover, false);
        check("FailingOver", 3, Act::Failover, false);
        check("Relocated", 3, Act::Failover, false);
        check("Relocated", 4, Act::Relocate, true);
    }

    #[test]
    fn a_move_is_done_when_pods_are_ready_or_were_never_there() {
        let check = |moved: bool, pods: Pods, had_pods: bool, expected: bool| {
            let (before, status) = Default::default();
            let came = Came { moved, pods, had_pods, deleted: false, before, status, took: Duration::ZERO };
            assert_eq!(came.is_done(), expected, "{moved} {:?} {had_pods}", came.pods);
        };
        check(true, Pods::Ready, true, true);
        check(false, Pods::Ready, true, false);
        check(true, Pods::NotTold, true, true);
        check(true, Pods::Missing(String::new()), true, false);
        check(true, Pods::Missing(String::new()), false, true);
        check(true, Pods::NotReady(String::new()), false, false);
    }

    #[test]
    fn pods_are_what_the_vrg_says_of_its_last_generation() {
        let check = |condition: serde_json::Value, expected: Pods| {
            let meta = json!({"kind": "VolumeReplicationGroup", "name": "web", "namespace": "shop", "generation": 4});
            let status = json!({"resourceConditions": {"resourceMeta": meta, "conditions": [condition]}});
            let status: DRPlacementControlStatus = serde_json::from_value(status).unwrap();
            assert_eq!(pods(&status), expected);
        };
        let said = |status: &str, reason: &str, seen: i64| {
            json!({
                "type": "PodsReady", "status": status, "reason": reason, "message": "so", "observedGeneration": seen,
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            })
        };
        check(said("True", "PodsReady", 4), Pods::Ready);
        check(said("False", "NoPods", 4), Pods::Missing("so".to_owned()));
        check(said("False", "PodsNotReady", 4), Pods::NotReady("so".to_owned()));
        let stale = Pods::NotReady("The VRG's last change is not observed yet.".to_owned());
        check(said("True", "PodsReady", 3), stale);
        let mut other = said("True", "Ready", 4);
        other["type"] = json!("DataReady");
        check(other, Pods::NotTold);
        assert_eq!(pods(&DRPlacementControlStatus::default()), Pods::NotTold);
    }
}
