//! What the engine counts, in Prometheus' form. Serving it over HTTP is left to the binary.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

mod lines;

pub(crate) use lines::LineMetrics;
use lines::Lines;

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

/// All metrics of an engine; clones count into the same ones.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    lines: Lines,
    overruns: Family<Of, Counter>,
    effects: Family<Effect, Counter>,
    waits: Family<Wait, Gauge>,
    feed_failures: Family<Kind, Counter>,
    pictures: Family<Kind, Counter>,
    events_dropped: Counter,
    leader: Family<Lease, Gauge>,
}

impl Metrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        self.lines.register(registry);
        let registry = registry.sub_registry_with_prefix("lifeboat");
        registry.register(
            "pass_overruns",
            "Passes ended because they would not settle",
            self.overruns.clone(),
        );
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

    /// The metrics of the line of keys of one controller.
    pub(crate) fn line(&self, controller: &'static str) -> LineMetrics {
        self.lines.line(controller)
    }

    pub(crate) fn overran(&self, controller: &str) {
        self.overruns.get_or_create(&of(controller)).inc();
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
    use std::time::Duration;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn what_is_counted_is_exposed() {
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let line = metrics.line("claims");
        line.added(3);
        let since = Instant::now();
        tokio::time::advance(Duration::from_secs(2)).await;
        line.taken(since, 2);
        line.retried();
        let ended = line.working();
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(ended);
        let _under_way = (line.working(), tokio::time::advance(Duration::from_secs(5)).await, line.working());
        tokio::time::advance(Duration::from_secs(2)).await;
        metrics.waits("binder", "NoVolume", 1);
        metrics.acted("binder", "Bind", "ok");
        metrics.leads("binder", true);
        let text = expose(&registry);
        for line in [
            "workqueue_adds_total{name=\"claims\"} 1",
            "workqueue_depth{name=\"claims\"} 2",
            "workqueue_retries_total{name=\"claims\"} 1",
            "workqueue_queue_duration_seconds_sum{name=\"claims\"} 2.0",
            "workqueue_work_duration_seconds_count{name=\"claims\"} 1",
            "workqueue_work_duration_seconds_sum{name=\"claims\"} 1.0",
            "workqueue_unfinished_work_seconds{name=\"claims\"} 9.0",
            "workqueue_longest_running_processor_seconds{name=\"claims\"} 7.0",
            "lifeboat_waits{controller=\"binder\",why=\"NoVolume\"} 1",
            "lifeboat_effects_total{controller=\"binder\",effect=\"Bind\",result=\"ok\"} 1",
            "lifeboat_leader{lease=\"binder\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
