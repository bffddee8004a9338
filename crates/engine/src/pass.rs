//! One pass over a key: observe, decide, act, and again, as far as it goes.

use crate::clock::Clock;
use crate::controller::{Controller, DecisionOf};
use crate::decision::{Level, Next, Why as _, variant};
use crate::error::{Class, EffectError, Trouble};
use crate::events::Recorder;
use crate::metrics::Metrics;
use crate::queue::Ended;
use crate::run::{Line, Settings};
use crate::waits::{Wait, Waits};
use futures::StreamExt;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How soon a key comes again that waits for a time in the past.
const SOONEST: jiff::SignedDuration = jiff::SignedDuration::from_secs(1);

/// What writing a status is called where effects are named.
const STATUS: &str = "Status";

/// A controller and all that its passes need.
pub(crate) struct Passes<C: Controller> {
    pub controller: C,
    pub line: Arc<Line<C::Key>>,
    pub clock: Clock,
    pub settings: Settings,
    pub metrics: Metrics,
    pub waits: Waits,
    pub recorder: Recorder,
    pub troubles: Mutex<BTreeMap<C::Key, Trouble>>,
}

/// What came of a turn's effects.
enum Turn {
    Done,
    Stale,
    Failed(Trouble),
}

impl<C: Controller> Passes<C> {
    pub async fn pass(&self, key: &C::Key) -> Ended<Instant> {
        let _working = self.line.metrics.working();
        let ended = self.turns(key).await;
        if matches!(ended, Ended::Failed { .. }) {
            self.line.metrics.retried();
        }
        ended
    }

    async fn turns(&self, key: &C::Key) -> Ended<Instant> {
        let mut stale = 0;
        let mut last = String::new();
        for _ in 0..self.settings.turns {
            self.line.looking(key);
            let trouble = self.troubles.lock().get(key).cloned();
            let Some(world) = self.controller.observe(key, trouble.as_ref()) else {
                return self.gone(key);
            };
            let decision = C::decide(&world, self.clock.now());
            let turn = match decision.next {
                Next::Do(effects) if !effects.is_empty() => {
                    last = effects.iter().map(variant).collect::<Vec<_>>().join(", ");
                    let turn = self.act(key, &world, effects, decision.status, decision.on_record).await;
                    if let Turn::Done = turn {
                        self.troubles.lock().remove(key);
                    }
                    turn
                }
                next => {
                    if trouble.is_some() {
                        // Nothing is left that could fail, so nothing is told of it any more.
                        self.troubles.lock().remove(key);
                        continue;
                    }
                    match self.show(&world, decision.status).await {
                        Ok(()) => return self.rest(key, &world, next),
                        Err(error) => self.judge(STATUS, &error),
                    }
                }
            };
            match turn {
                Turn::Done => {}
                Turn::Stale => {
                    stale += 1;
                    if stale > self.settings.stale_turns {
                        return self.pause(key, "ChangesTooFast", "others keep changing what it works on");
                    }
                }
                Turn::Failed(trouble) => return self.fail(key, trouble).await,
            }
        }
        self.metrics.overran(C::NAME);
        tracing::error!(controller = C::NAME, %key, turns = self.settings.turns, last, "a pass would not settle");
        self.pause(key, "WouldNotSettle", &format!("it kept going without an end, last with {last}"))
    }

    /// Writes the status that goes with a turn, then runs its effects, all at the same time. The status comes first: people
    /// see what is being tried, and effects on the same object build on the version that the status made.
    async fn act(
        &self,
        key: &C::Key,
        world: &C::World,
        effects: Vec<C::Effect>,
        status: Option<C::Status>,
        on_record: bool,
    ) -> Turn {
        let shown = match self.show(world, status).await {
            Ok(()) => Turn::Done,
            Err(error) => self.judge(STATUS, &error),
        };
        match shown {
            Turn::Stale => return shown,
            Turn::Failed(_) if on_record => return shown,
            Turn::Failed(_) | Turn::Done => {}
        }
        let acted = futures::stream::iter(effects)
            .map(|effect| self.perform(key, effect))
            .buffer_unordered(self.settings.effects_at_once)
            .collect::<Vec<_>>()
            .await;
        // The worst news decides what comes next; all effects have run to their end anyway.
        let mut turn = Turn::Done;
        for news in acted.into_iter().chain([shown]) {
            turn = match (turn, news) {
                (Turn::Failed(first), Turn::Failed(second)) if second.class > first.class => {
                    Turn::Failed(second)
                }
                (Turn::Failed(trouble), _) | (_, Turn::Failed(trouble)) => Turn::Failed(trouble),
                (Turn::Stale, _) | (_, Turn::Stale) => Turn::Stale,
                (Turn::Done, Turn::Done) => Turn::Done,
            };
        }
        turn
    }

    async fn perform(&self, key: &C::Key, effect: C::Effect) -> Turn {
        let name = variant(&effect);
        tracing::debug!(controller = C::NAME, %key, ?effect, "acting");
        let within = C::effect_within(&effect, self.settings.effect_within);
        let acted = tokio::time::timeout(within, self.controller.act(key, effect)).await;
        let result = acted.unwrap_or_else(|_| Err(late(&name, within)));
        match result {
            Ok(()) => {
                self.metrics.acted(C::NAME, &name, "ok");
                Turn::Done
            }
            Err(error) => self.judge(&name, &error),
        }
    }

    async fn show(&self, world: &C::World, status: Option<C::Status>) -> Result<(), EffectError> {
        let Some(status) = status else { return Ok(()) };
        if C::shown(world) == Some(&status) {
            return Ok(());
        }
        let shown =
            tokio::time::timeout(self.settings.effect_within, self.controller.show(world, status)).await;
        shown.unwrap_or_else(|_| Err(late(STATUS, self.settings.effect_within)))?;
        self.metrics.acted(C::NAME, STATUS, "ok");
        Ok(())
    }

    fn judge(&self, effect: &str, error: &EffectError) -> Turn {
        let result = match error.class {
            Class::Stale => "stale",
            Class::Transient => "failed",
            Class::Refused => "refused",
            Class::BadInput => "bad_input",
        };
        self.metrics.acted(C::NAME, effect, result);
        if error.class == Class::Stale {
            return Turn::Stale;
        }
        Turn::Failed(Trouble {
            effect: effect.to_owned(),
            class: error.class,
            message: error.sentence(),
            since: self.clock.now(),
        })
    }

    /// An effect failed: show it, if the controller does, and come back later.
    async fn fail(&self, key: &C::Key, mut trouble: Trouble) -> Ended<Instant> {
        tracing::warn!(controller = C::NAME, %key, effect = trouble.effect, message = trouble.message, "failed");
        let slowly = matches!(trouble.class, Class::Refused | Class::BadInput);
        let news = {
            let mut troubles = self.troubles.lock();
            let before = troubles
                .get(key)
                .filter(|before| before.effect == trouble.effect && before.class == trouble.class)
                .map(|before| before.since);
            trouble.since = before.unwrap_or(trouble.since);
            troubles.insert(key.clone(), trouble.clone());
            before.is_none()
        };
        if let Some(world) = self.controller.observe(key, Some(&trouble)) {
            let decision: DecisionOf<C> = C::decide(&world, self.clock.now());
            // A status that cannot be written either is written by the next pass.
            let _ = self.show(&world, decision.status).await;
            // A status that is refused cannot tell so itself.
            if news
                && slowly
                && trouble.effect == STATUS
                && let Some(subject) = C::subject(&world)
            {
                self.recorder.record(subject, Level::Warning, "StatusFailed", &trouble.message);
            }
        }
        self.waits_for(key, format!("{}Failed", trouble.effect), trouble.message.clone(), None);
        Ended::Failed { at_least: if slowly { self.settings.slow_retry } else { Duration::ZERO } }
    }

    fn pause(&self, key: &C::Key, reason: &str, sentence: &str) -> Ended<Instant> {
        self.waits_for(key, reason.to_owned(), sentence.to_owned(), None);
        Ended::Failed { at_least: Duration::ZERO }
    }

    fn rest(&self, key: &C::Key, world: &C::World, next: Next<C::Effect, C::Why>) -> Ended<Instant> {
        let Next::Wait { why, until } = next else {
            self.waits.end(C::NAME, &key.to_string());
            return Ended::Quiet;
        };
        let (reason, sentence) = (why.reason(), why.to_string());
        let news = self.waits_for(key, reason.clone(), sentence.clone(), until);
        if news
            && let Some(level) = why.event()
            && let Some(subject) = C::subject(world)
        {
            self.recorder.record(subject, level, &reason, &sentence);
        }
        // A time that has passed already must not make the key spin: whoever decided so decides so again.
        let soonest = self.clock.now() + SOONEST;
        until.map_or(Ended::Quiet, |until| {
            Ended::At(self.clock.instant(if until <= self.clock.now() { soonest } else { until }))
        })
    }

    fn waits_for(
        &self,
        key: &C::Key,
        reason: String,
        sentence: String,
        until: Option<jiff::Timestamp>,
    ) -> bool {
        let since = self.clock.now();
        self.waits.begin(C::NAME, key.to_string(), Wait { reason, sentence, since, until })
    }

    fn gone(&self, key: &C::Key) -> Ended<Instant> {
        self.troubles.lock().remove(key);
        self.waits.end(C::NAME, &key.to_string());
        self.controller.forget(key);
        Ended::Quiet
    }
}

fn late(effect: &str, within: Duration) -> EffectError {
    EffectError::new(Class::Transient, format!("{effect} was not done within {} s", within.as_secs()))
}
