//! What people are told about a Greeting.

use super::Greeting;
use super::decide::Waits;
use super::world::World;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_engine::conditions::{Conditions, Holds, holds};
use lifeboat_engine::{Trouble, Why};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const READY: &str = "Ready";

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GreetingStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

pub fn is_ready(greeting: &Greeting) -> bool {
    let conditions = greeting.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    holds(conditions, READY, greeting.metadata.generation)
}

pub fn ready(world: &World, now: Timestamp) -> GreetingStatus {
    with(world, now, Holds::True, "Written", "the text is written".to_owned())
}

pub fn waiting(world: &World, why: &Waits, now: Timestamp) -> GreetingStatus {
    with(world, now, Holds::False, &why.reason(), why.to_string())
}

pub fn troubled(world: &World, trouble: &Trouble, now: Timestamp) -> GreetingStatus {
    with(world, now, Holds::False, &format!("{}Failed", trouble.effect), trouble.message.clone())
}

fn with(world: &World, now: Timestamp, ready: Holds, reason: &str, message: String) -> GreetingStatus {
    let mut status = world.greeting.status.clone().unwrap_or_default();
    status.observed_generation = world.greeting.metadata.generation;
    let conditions = Conditions { generation: world.greeting.metadata.generation, now };
    conditions.set(&mut status.conditions, READY, ready, reason, message);
    status
}
