//! What the lines of keys count, under the names and labels that every Kubernetes controller uses, so that dashboards
//! and alerts made for those work here too.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    name: &'static str,
}

type Seconds = Family<Of, Histogram, fn() -> Histogram>;

fn seconds() -> Seconds {
    Family::new_with_constructor(|| Histogram::new(exponential_buckets(1e-8, 10.0, 12)))
}

/// The metrics of all lines; clones count into the same ones.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    depth: Family<Of, Gauge>,
    adds: Family<Of, Counter>,
    retries: Family<Of, Counter>,
    waited: Seconds,
    worked: Seconds,
    begun: Begun,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: seconds(),
            worked: seconds(),
            begun: Begun::default(),
        }
    }
}

impl Lines {
    pub(super) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("workqueue");
        registry.register("depth", "Keys ready to be looked at", self.depth.clone());
        registry.register("adds", "Keys put in line", self.adds.clone());
        registry.register("retries", "Keys that failed and come back after a pause", self.retries.clone());
        registry.register(
            "queue_duration_seconds",
            "How long a key stood in line before it was looked at",
            self.waited.clone(),
        );
        registry.register("work_duration_seconds", "How long one pass over a key takes", self.worked.clone());
        registry.register_collector(Box::new(self.begun.clone()));
    }

    pub(super) fn line(&self, name: &'static str) -> LineMetrics {
        let of = Of { name };
        self.begun.0.lock().entry(name).or_default();
        LineMetrics {
            name,
            depth: self.depth.get_or_create(&of).clone(),
            adds: self.adds.get_or_create(&of).clone(),
            retries: self.retries.get_or_create(&of).clone(),
            waited: self.waited.get_or_create(&of).clone(),
            worked: self.worked.get_or_create(&of).clone(),
            begun: self.begun.clone(),
            next: Arc::default(),
        }
    }
}

/// The metrics of one line, found once.
#[derive(Debug, Clone)]
pub(crate) struct LineMetrics {
    name: &'static str,
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
    begun: Begun,
    next: Arc<AtomicU64>,
}

impl LineMetrics {
    pub fn added(&self, depth: usize) {
        self.adds.inc();
        self.deep(depth);
    }

    pub fn taken(&self, since: Instant, depth: usize) {
        self.waited.observe(since.elapsed().as_secs_f64());
        self.deep(depth);
    }

    pub fn retried(&self) {
        self.retries.inc();
    }

    /// A pass begins; it ends when what this returns is dropped.
    pub fn working(&self) -> Working<'_> {
        let (id, began) = (self.next.fetch_add(1, Ordering::Relaxed), Instant::now());
        self.begun.0.lock().entry(self.name).or_default().insert(id, began);
        Working { line: self, id, began }
    }

    fn deep(&self, depth: usize) {
        self.depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}

/// A pass that has not ended.
pub(crate) struct Working<'a> {
    line: &'a LineMetrics,
    id: u64,
    began: Instant,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.line.worked.observe(self.began.elapsed().as_secs_f64());
        if let Some(begun) = self.line.begun.0.lock().get_mut(self.line.name) {
            begun.remove(&self.id);
        }
    }
}

/// When the passes that have not ended began, by line: what they took so far is known when somebody asks.
#[derive(Debug, Clone, Default)]
struct Begun(Arc<Mutex<BTreeMap<&'static str, BTreeMap<u64, Instant>>>>);

impl Begun {
    fn gauge(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: impl Fn(&BTreeMap<u64, Instant>) -> f64,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (line, begun) in self.0.lock().iter() {
            family.encode_family(&Of { name: line })?.encode_gauge(&value(begun))?;
        }
        Ok(())
    }
}

impl Collector for Begun {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.gauge(
            &mut encoder,
            "unfinished_work_seconds",
            "What passes under way took so far, together",
            |begun| begun.values().map(|began| began.elapsed().as_secs_f64()).sum(),
        )?;
        self.gauge(
            &mut encoder,
            "longest_running_processor_seconds",
            "What the longest pass under way took so far",
            |begun| begun.values().map(|began| began.elapsed().as_secs_f64()).fold(0.0, f64::max),
        )
    }
}
