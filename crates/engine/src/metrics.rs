//! What the engine counts, in Prometheus' form. Serving it over HTTP is left to the binary.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Effect {
    controller: String,
    effect: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Wait {
    controller: String,
    why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lease {
    lease: String,
}

type Seconds = Family<Of, Histogram, fn() -> Histogram>;

/// All metrics of an engine; clones count into the same ones.
#[derive(Debug, Clone)]
pub struct Metrics {
    depth: Family<Of, Gauge>,
    adds: Family<Of, Counter>,
    retries: Family<Of, Counter>,
    overruns: Family<Of, Counter>,
    passes: Seconds,
    effects: Family<Effect, Counter>,
    waits: Family<Wait, Gauge>,
    feed_failures: Family<Kind, Counter>,
    pictures: Family<Kind, Counter>,
    events_dropped: Counter,
    leader: Family<Lease, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            overruns: Family::default(),
            passes: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 16))),
            effects: Family::default(),
            waits: Family::default(),
            feed_failures: Family::default(),
            pictures: Family::default(),
            events_dropped: Counter::default(),
            leader: Family::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("lifeboat");
        registry.register("queue_depth", "Keys ready to be looked at", self.depth.clone());
        registry.register("queue_adds", "Keys put in line", self.adds.clone());
        registry.register(
            "queue_retries",
            "Keys that failed and come back after a pause",
            self.retries.clone(),
        );
        registry.register(
            "pass_overruns",
            "Passes ended because they would not settle",
            self.overruns.clone(),
        );
        registry.register("reconcile_seconds", "How long one pass over a key takes", self.passes.clone());
        registry.register("effects", "Effects by kind and result", self.effects.clone());
        registry.register("waits", "Keys that wait, by what for", self.waits.clone());
        registry.register(
            "watch_failures",
            "Failed lists and watches, unreadable objects",
            self.feed_failures.clone(),
        );
        registry.register("watch_pictures", "Full pictures taken", self.pictures.clone());
        registry.register("events_dropped", "Events not written", self.events_dropped.clone());
        registry.register("leader", "1 where this process leads", self.leader.clone());
    }

    pub(crate) fn added(&self, controller: &str) {
        self.adds.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn depth(&self, controller: &str, depth: usize) {
        self.depth.get_or_create(&of(controller)).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    pub(crate) fn retried(&self, controller: &str) {
        self.retries.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn overran(&self, controller: &str) {
        self.overruns.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn passed(&self, controller: &str, took: Duration) {
        self.passes.get_or_create(&of(controller)).observe(took.as_secs_f64());
    }

    pub(crate) fn acted(&self, controller: &str, effect: &str, result: &'static str) {
        let labels = Effect { controller: controller.to_owned(), effect: effect.to_owned(), result };
        self.effects.get_or_create(&labels).inc();
    }

    pub(crate) fn waits(&self, controller: &str, why: &str, change: i64) {
        let labels = Wait { controller: controller.to_owned(), why: why.to_owned() };
        self.waits.get_or_create(&labels).inc_by(change);
    }

    pub(crate) fn feed_failed(&self, kind: &str) {
        self.feed_failures.get_or_create(&Kind { kind: kind.to_owned() }).inc();
    }

    pub(crate) fn picture_taken(&self, kind: &str) {
        self.pictures.get_or_create(&Kind { kind: kind.to_owned() }).inc();
    }

    pub(crate) fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    pub(crate) fn leads(&self, lease: &str, leads: bool) {
        self.leader.get_or_create(&Lease { lease: lease.to_owned() }).set(i64::from(leads));
    }
}

fn of(controller: &str) -> Of {
    Of { controller: controller.to_owned() }
}

/// The text that Prometheus scrapes.
pub fn expose(registry: &Registry) -> String {
    let mut exposed = String::new();
    text::encode(&mut exposed, registry).expect("invariant: writing into a String does not fail");
    exposed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_exposed() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.added("binder");
        metrics.depth("binder", 3);
        metrics.waits("binder", "NoVolume", 1);
        metrics.acted("binder", "Bind", "ok");
        metrics.leads("binder", true);
        metrics.passed("binder", Duration::from_millis(3));
        let text = expose(&registry);
        for line in [
            "lifeboat_queue_adds_total{controller=\"binder\"} 1",
            "lifeboat_queue_depth{controller=\"binder\"} 3",
            "lifeboat_waits{controller=\"binder\",why=\"NoVolume\"} 1",
            "lifeboat_effects_total{controller=\"binder\",effect=\"Bind\",result=\"ok\"} 1",
            "lifeboat_leader{lease=\"binder\"} 1",
            "lifeboat_reconcile_seconds_count{controller=\"binder\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
