//! What a flow comes to: effects to perform, things to wait for, and what to say about each claim.

use crate::decide::Effect;
use crate::why::Wait;
use crate::world::World;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::Duration;
use lifeboat_api::ramen::Identifier;
use lifeboat_engine::conditions::Holds;
use std::collections::BTreeMap;

/// What is said about one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Whether it holds.
    pub holds: Holds,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, as a sentence.
    pub message: String,
}

impl Said {
    /// It holds.
    pub fn yes(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: Holds::True, reason, message: message.into() }
    }

    /// It does not.
    pub fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: Holds::False, reason, message: message.into() }
    }

    /// Nobody knows.
    pub fn unknown(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: Holds::Unknown, reason, message: message.into() }
    }
}

/// How a claim is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Path {
    /// Its storage replicates it.
    Replicated,
    /// Both clusters see the same storage.
    Shared,
    /// A mover copies it.
    Copied,
}

/// What is said about one claim.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Whether a mover copies it.
    pub copied: bool,
    /// Identity of its storage.
    pub storage_id: Option<Identifier>,
    /// Identity of its replication.
    pub replication_id: Option<Identifier>,
    /// What is said, by type of condition.
    pub said: BTreeMap<&'static str, Said>,
    /// When the newest complete copy was cut.
    pub last_sync: Option<Time>,
    /// How long it took.
    pub duration: Option<Duration>,
    /// Bytes it carried.
    pub bytes: Option<i64>,
    /// Whether that copy is older than was agreed.
    pub late: bool,
}

impl Verdict {
    /// Says something.
    pub fn say(&mut self, type_: &'static str, said: Said) -> &mut Self {
        self.said.insert(type_, said);
        self
    }
}

/// What a flow comes to.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// What to do.
    pub effects: Vec<Effect>,
    /// What is waited for, with the claim that waits.
    pub waits: Vec<(Wait, Option<String>)>,
    /// When to look again though nothing changes.
    pub until: Option<Timestamp>,
    /// What is said about each claim.
    pub verdicts: BTreeMap<String, Verdict>,
    /// Whether the last copy may be prepared for.
    pub prepared: Option<bool>,
    /// Whether the last copy is complete.
    pub final_sync: Option<bool>,
}

impl Plan {
    /// Does something for a claim, unless that went wrong a moment ago.
    pub fn act_for(&mut self, world: &World, now: Timestamp, claim: &str, effect: Effect) {
        match world.mishaps.get(claim) {
            Some(mishap) if mishap.retry_at > now => {
                self.wait_for(claim, Wait::Failed(mishap.message.clone()));
                self.look_at(mishap.retry_at);
            }
            _ => self.effects.push(effect),
        }
    }

    /// The whole group waits.
    pub fn wait(&mut self, why: Wait) {
        self.waits.push((why, None));
    }

    /// A claim waits.
    pub fn wait_for(&mut self, claim: &str, why: Wait) {
        self.waits.push((why, Some(claim.to_owned())));
    }

    /// Looks again at a time, at the latest.
    pub fn look_at(&mut self, at: Timestamp) {
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    /// What is said about a claim.
    pub fn verdict(&mut self, claim: &str) -> &mut Verdict {
        self.verdicts.entry(claim.to_owned()).or_default()
    }
}
