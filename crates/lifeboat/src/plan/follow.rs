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
    /// Whether the object that was followed is gone.
    pub deleted: bool,
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

/// How long to wait before a hub that does not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Follows until it is done, the object is gone or the time is over. A hub that does not answer is asked again: the action goes on without us.
pub async fn follow(
    api: &Api<DRPlacementControl>,
    asked: &DRPlacementControl,
    act: Act,
    within: Duration,
    tell: bool,
) -> anyhow::Result<Came> {
    let mut followed = Followed {
        asked,
        act,
        tell,
        began: Instant::now(),
        told: String::new(),
        came: Came {
            done: false,
            deleted: false,
            status: asked.status.clone().unwrap_or_default(),
            took: Duration::ZERO,
        },
    };
    let deadline = followed.began + within;
    while !followed.has_ended() {
        match tokio::time::timeout_at(deadline, followed.watch(api)).await {
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
    came: Came,
}

impl Followed<'_> {
    fn has_ended(&self) -> bool {
        self.came.done || self.came.deleted
    }

    fn say(&mut self, line: String) -> anyhow::Result<()> {
        if self.tell && line != self.told {
            say(&format!("  {:>6.1} s  {line}\n", self.began.elapsed().as_secs_f64()))?;
            self.told = line;
        }
        Ok(())
    }

    /// Follows as long as the hub tells.
    async fn watch(&mut self, api: &Api<DRPlacementControl>) -> anyhow::Result<()> {
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
                    self.came.status = now.status.unwrap_or_default();
                    let line = step(&self.came.status);
                    self.say(line)?;
                    if is_done(&self.came.status, self.asked.metadata.generation, self.act) {
                        self.came.done = true;
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
}
