//! A controller whose work is a script: each key has a list of things to do, in order.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use lifeboat_engine::{Class, Controller, Decision, EffectError, Next, Trouble, Why};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Thing {
    /// Succeeds.
    Step,
    /// Fails so many times, then succeeds.
    Fail { class: Class, times: u32 },
    /// Succeeds and is never done.
    Endless,
    /// Succeeds, and is not tried unless it is shown.
    OnRecord,
    /// Succeeds after so many seconds.
    Slow { seconds: u64 },
    /// The same, and it is waited for an hour.
    Patient { seconds: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Pause {
    Dinner,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is dinner time")
    }
}

impl Why for Pause {}

#[derive(Debug, Clone, Default)]
pub struct Script {
    pub todo: VecDeque<Thing>,
    /// What it waits for once all is done, and until when.
    pub dinner_until: Option<Timestamp>,
    /// It waits for dinner even when that is over.
    pub dinner_is_late: bool,
    pub shown: Option<String>,
}

#[derive(Debug, Default)]
pub struct State {
    pub scripts: BTreeMap<String, Script>,
    /// When which key was looked at.
    pub looks: Vec<(Duration, String)>,
    /// When which effect of which key began.
    pub acts: Vec<(Duration, String)>,
    /// Every status written.
    pub shows: Vec<String>,
    /// So many statuses cannot be written.
    pub mute: u32,
    /// Statuses are refused rather than not written.
    pub refuses: bool,
    pub running: BTreeMap<String, u32>,
    pub most_at_once: u32,
}

#[derive(Clone)]
pub struct Toy {
    pub state: Arc<Mutex<State>>,
    pub began: Instant,
}

pub struct World {
    script: Script,
    trouble: Option<Trouble>,
}

impl Toy {
    pub fn new(scripts: &[(&str, &[Thing])]) -> Self {
        let scripts = scripts.iter().map(|(key, todo)| {
            let todo = todo.iter().copied().collect();
            ((*key).to_owned(), Script { todo, ..Script::default() })
        });
        let state = State { scripts: scripts.collect(), ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), began: Instant::now() }
    }

    pub fn left(&self, key: &str) -> usize {
        self.state.lock().scripts[key].todo.len()
    }

    /// When each effect of a key began, in milliseconds.
    pub fn act_times(&self, key: &str) -> Vec<u128> {
        let state = self.state.lock();
        state.acts.iter().filter(|(_, acting)| acting == key).map(|(at, _)| at.as_millis()).collect()
    }

    pub fn looks(&self, key: &str) -> usize {
        self.state.lock().looks.iter().filter(|(_, looked)| looked == key).count()
    }

    pub fn edit(&self, key: &str, edit: impl FnOnce(&mut Script)) {
        edit(self.state.lock().scripts.get_mut(key).unwrap());
    }
}

impl Controller for Toy {
    const NAME: &'static str = "toy";
    type Key = String;
    type World = World;
    type Effect = Thing;
    type Why = Pause;
    type Status = String;

    fn observe(&self, key: &String, trouble: Option<&Trouble>) -> Option<World> {
        let mut state = self.state.lock();
        state.looks.push((self.began.elapsed(), key.clone()));
        Some(World { script: state.scripts.get(key)?.clone(), trouble: trouble.cloned() })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Thing, Pause, String> {
        let troubled = world.trouble.as_ref().map(|trouble| trouble.message.clone());
        if let Some(thing) = world.script.todo.front() {
            let on_record = *thing == Thing::OnRecord;
            let status = if on_record { Some("recorded".to_owned()) } else { troubled };
            return Decision { next: Next::Do(vec![*thing]), status, on_record };
        }
        match world.script.dinner_until {
            Some(until) if now < until || world.script.dinner_is_late => {
                Decision::wait_until(Pause::Dinner, until).showing("waits".into())
            }
            _ => Decision::settled().showing(troubled.unwrap_or_else(|| "done".into())),
        }
    }

    async fn act(&self, key: &String, effect: Thing) -> Result<(), EffectError> {
        {
            let mut state = self.state.lock();
            state.acts.push((self.began.elapsed(), key.clone()));
            *state.running.entry(key.clone()).or_default() += 1;
            assert_eq!(state.running[key], 1, "{key} is worked on twice at once");
            state.most_at_once = state.most_at_once.max(state.running.values().sum());
        }
        if let Thing::Slow { seconds } | Thing::Patient { seconds } = effect {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
        let mut state = self.state.lock();
        *state.running.get_mut(key).unwrap() -= 1;
        let todo = &mut state.scripts.get_mut(key).unwrap().todo;
        match effect {
            Thing::Endless => {}
            Thing::Step
            | Thing::OnRecord
            | Thing::Slow { .. }
            | Thing::Patient { .. }
            | Thing::Fail { times: 0, .. } => {
                let _ = todo.pop_front();
            }
            Thing::Fail { class, times } => {
                todo[0] = Thing::Fail { class, times: times - 1 };
                return Err(EffectError::new(class, "trying in vain"));
            }
        }
        Ok(())
    }

    fn effect_within(effect: &Thing, usual: Duration) -> Duration {
        if matches!(effect, Thing::Patient { .. }) { Duration::from_secs(3600) } else { usual }
    }

    fn subject(_: &World) -> Option<ObjectReference> {
        Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: Some("default".to_owned()),
            name: Some("toy".to_owned()),
            ..ObjectReference::default()
        })
    }

    fn shown(world: &World) -> Option<&String> {
        world.script.shown.as_ref()
    }

    async fn show(&self, _: &World, status: String) -> Result<(), EffectError> {
        // The toy has one key wherever a test looks at statuses.
        let mut state = self.state.lock();
        if state.mute > 0 {
            state.mute -= 1;
            let class = if state.refuses { Class::Refused } else { Class::Transient };
            return Err(EffectError::new(class, "nobody writes"));
        }
        state.shows.push(status.clone());
        for script in state.scripts.values_mut() {
            script.shown = Some(status.clone());
        }
        Ok(())
    }
}
