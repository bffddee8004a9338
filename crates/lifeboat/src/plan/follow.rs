//! Follows an action on the hub by watching, and tells each step with its time.

use crate::status::say;
use anyhow::Context as _;
use futures::StreamExt as _;
use kube::api::{Api, WatchEvent, WatchParams};
use lifeboat_api::ramen::{DRPlacementControl, DRPlacementControlStatus, DRState, Progression};
use lifeboat_hub::drpc::commission::Act;
use std::time::Duration;
use tokio::time::Instant;

/// How an action came out.
pub struct Came {
    /// Whether the application runs where it should.
    pub done: bool,
    /// The last status seen.
    pub status: DRPlacementControlStatus,
    /// How long it was followed.
    pub took: Duration,
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

/// Follows until it is done or the time is over.
pub async fn follow(
    api: &Api<DRPlacementControl>,
    asked: &DRPlacementControl,
    act: Act,
    within: Duration,
    tell: bool,
) -> anyhow::Result<Came> {
    let began = Instant::now();
    let name = asked.metadata.name.clone().unwrap_or_default();
    let mut came =
        Came { done: false, status: asked.status.clone().unwrap_or_default(), took: Duration::ZERO };
    let mut told = String::new();
    while !came.done && began.elapsed() < within {
        let params = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(290);
        // From the present state on: what is there comes first.
        let mut events = api.watch(&params, "0").await.context("following it")?.boxed();
        loop {
            let left = within.saturating_sub(began.elapsed());
            let Ok(Some(event)) = tokio::time::timeout(left, events.next()).await else { break };
            let (WatchEvent::Added(now) | WatchEvent::Modified(now)) = event.context("following it")? else {
                continue;
            };
            if now.metadata.generation < asked.metadata.generation {
                continue;
            }
            came.status = now.status.unwrap_or_default();
            let line = step(&came.status);
            if tell && line != told {
                say(&format!("  {:>6.1} s  {line}\n", began.elapsed().as_secs_f64()))?;
                told = line;
            }
            if is_done(&came.status, asked.metadata.generation, act) {
                came.done = true;
                break;
            }
        }
    }
    came.took = began.elapsed();
    Ok(came)
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
}
