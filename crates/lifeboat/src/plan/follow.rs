//! Follows an action on the hub by watching, and tells each step with its time.

use crate::status::say;
use anyhow::Context as _;
use futures::StreamExt as _;
use kube::api::{Api, WatchEvent, WatchParams};
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
                let line =
                    format!("the hub does not answer and is asked again; what was begun goes on ({error:#})");
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

    /// Follows as long as the hub tells.
    async fn watch(&mut self, api: &Api<DRPlacementControl>, last: Instant) -> anyhow::Result<()> {
        let name = self.asked.metadata.name.clone().unwrap_or_default();
        // What is gone when nobody looked is told by nobody.
        match api.get_opt(&name).await.context("reading the DRPlacementControl")? {
            Some(now) if now.metadata.uid == self.asked.metadata.uid => {}
            _ => {
                self.came.deleted = true;
                return Ok(());
            }
        }
        let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(290);
        // From the present state on: what is there comes first.
        let mut events = api.watch(&params, "0").await.context("following it")?.boxed();
        while let Some(event) = events.next().await {
            match event.context("following it")? {
                WatchEvent::Added(now) | WatchEvent::Modified(now) => {
                    if now.metadata.generation < self.asked.metadata.generation {
                        continue;
                    }
                    let changed = self.take(now.status.unwrap_or_default(), last);
                    let line = match (&self.came.moved, &self.came.pods) {
                        (true, Pods::Missing(why) | Pods::NotReady(why)) => why.clone(),
                        _ => step(&self.came.status),
                    };
                    self.say(line)?;
                    if self.has_ended() || changed {
                        return Ok(());
                    }
                }
                WatchEvent::Deleted(gone) if gone.metadata.uid == self.asked.metadata.uid => {
                    self.came.deleted = true;
                    return Ok(());
                }
                WatchEvent::Error(error) => anyhow::bail!("{}", error.message),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            let status = DRPlacementControlStatus::default();
            let came = Came { moved, pods, had_pods, deleted: false, status, took: Duration::ZERO };
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
