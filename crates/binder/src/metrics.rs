//! What kube-controller-manager's binder counts, under its names and labels, so that dashboards and alerts go on working. How
//! the controllers themselves run is counted by the engine.
//!
//! Volumes and claims are counted when somebody asks; nothing is kept for it.

use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::words::{ClaimWords, VolumeWords, text};
use lifeboat_engine::{Clock, Objects};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Bounds of the time that making or deleting a volume takes, in seconds, as Kubernetes has them.
const SECONDS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];

/// Where a plugin is asked for and there is none.
pub const NO_PLUGIN: &str = "N/A";

/// What others do for a claim or a volume, from when it was asked for to when it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct Operation {
    plugin_name: String,
    operation_name: &'static str,
}

/// The counts of a binder; clones count into the same ones.
#[derive(Clone)]
pub struct Metrics {
    volumes: Objects<PersistentVolume>,
    claims: Objects<PersistentVolumeClaim>,
    clock: Clock,
    retroactive: Counter,
    retroactive_errors: Counter,
    ephemeral: Counter,
    ephemeral_failures: Counter,
    seconds: Family<Operation, Histogram, fn() -> Histogram>,
    errors: Arc<Mutex<BTreeMap<Operation, u64>>>,
    running: Arc<Mutex<BTreeMap<String, (Operation, jiff::Timestamp)>>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new(
        volumes: Objects<PersistentVolume>,
        claims: Objects<PersistentVolumeClaim>,
        clock: Clock,
    ) -> Self {
        Self {
            volumes,
            claims,
            clock,
            retroactive: Counter::default(),
            retroactive_errors: Counter::default(),
            ephemeral: Counter::default(),
            ephemeral_failures: Counter::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            errors: Arc::default(),
            running: Arc::default(),
        }
    }

    /// Adds the counts to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "retroactive_storageclass",
            "Default classes given to claims that said nothing of one",
            self.retroactive.clone(),
        );
        registry.register(
            "retroactive_storageclass_errors",
            "Default classes that could not be given",
            self.retroactive_errors.clone(),
        );
        registry.register(
            "ephemeral_volume_controller_create",
            "Claims to be made for volumes that live with a pod",
            self.ephemeral.clone(),
        );
        registry.register(
            "ephemeral_volume_controller_create_failures",
            "Claims for volumes that live with a pod that could not be made",
            self.ephemeral_failures.clone(),
        );
        registry.register(
            "volume_operation_total_seconds",
            "Seconds until a volume that was asked for is bound, or one that was released is gone",
            self.seconds.clone(),
        );
        registry.register_collector(Box::new(self.clone()));
    }

    /// A claim was to be given a default class.
    pub(crate) fn assigned(&self, went_well: bool) {
        self.retroactive.inc();
        if !went_well {
            self.retroactive_errors.inc();
        }
    }

    /// A claim was to be made for a volume that lives with a pod.
    pub(crate) fn made_ephemeral(&self, went_well: bool) {
        self.ephemeral.inc();
        if !went_well {
            self.ephemeral_failures.inc();
        }
    }

    /// Somebody is asked to do something about a claim or a volume, unless that was asked before.
    pub(crate) fn begin(&self, about: String, plugin: &str, operation: &'static str) {
        let operation = Operation { plugin_name: plugin.to_owned(), operation_name: operation };
        let now = self.clock.now();
        self.running.lock().entry(about).or_insert((operation, now));
    }

    /// A step of it failed.
    pub(crate) fn failed(&self, about: &str) {
        let operation = self.running.lock().get(about).map(|(operation, _)| operation.clone());
        if let Some(operation) = operation {
            *self.errors.lock().entry(operation).or_default() += 1;
        }
    }

    /// It is done.
    pub(crate) fn done(&self, about: &str) {
        let ended = self.running.lock().remove(about);
        if let Some((operation, began)) = ended {
            let took = self.clock.now().duration_since(began).as_secs_f64();
            self.seconds.get_or_create(&operation).observe(took);
        }
    }

    /// Nobody waits for it any more.
    pub(crate) fn dropped(&self, about: &str) {
        self.running.lock().remove(about);
    }

    fn count_volumes(&self) -> VolumeCounts {
        let mut counts = VolumeCounts::default();
        for volume in self.volumes.all() {
            let spec = volume.spec.as_ref();
            let mode = spec.and_then(|spec| spec.volume_mode.as_deref()).unwrap_or("Filesystem");
            *counts.all.entry((plugin(&volume), mode.to_owned())).or_default() += 1;
            let class = text(spec.and_then(|spec| spec.storage_class_name.as_ref())).to_owned();
            let by_class = if volume.phase() == "Bound" { &mut counts.bound } else { &mut counts.unbound };
            *by_class.entry(class).or_default() += 1;
        }
        counts
    }

    fn count_claims(&self) -> [BTreeMap<[String; 3], i64>; 2] {
        let mut counts = [BTreeMap::new(), BTreeMap::new()];
        for claim in self.claims.all() {
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            let of = [claim.key().namespace, claim.class().to_owned(), claim.sort().attributes];
            *counts[usize::from(phase != Some("Bound"))].entry(of).or_default() += 1;
        }
        counts
    }
}

#[derive(Default)]
struct VolumeCounts {
    all: BTreeMap<(&'static str, String), i64>,
    bound: BTreeMap<String, i64>,
    unbound: BTreeMap<String, i64>,
}

/// The plugin that Kubernetes counts a volume under: of those that its binder has, none is for CSI.
fn plugin(volume: &PersistentVolume) -> &'static str {
    match volume.spec.as_ref() {
        Some(spec) if spec.has("hostPath") => "kubernetes.io/host-path",
        Some(spec) if spec.has("nfs") => "kubernetes.io/nfs",
        _ => NO_PLUGIN,
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let volumes = self.count_volumes();
        let mut all =
            encoder.encode_descriptor("pv_collector_total_pv_count", "Volumes", None, MetricType::Gauge)?;
        for ((plugin, mode), count) in &volumes.all {
            let labels = [("plugin_name", *plugin), ("volume_mode", mode.as_str())];
            all.encode_family(&labels)?.encode_gauge(count)?;
        }
        for (name, help, counts) in [
            ("pv_collector_bound_pv_count", "Volumes that are bound", &volumes.bound),
            ("pv_collector_unbound_pv_count", "Volumes that are not bound", &volumes.unbound),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (class, count) in counts {
                family.encode_family(&[("storage_class", class.as_str())])?.encode_gauge(count)?;
            }
        }
        let [bound, unbound] = self.count_claims();
        for (name, help, counts) in [
            ("pv_collector_bound_pvc_count", "Claims that are bound", &bound),
            ("pv_collector_unbound_pvc_count", "Claims that are not bound", &unbound),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ([namespace, class, attributes], count) in counts {
                let labels = [
                    ("namespace", namespace.as_str()),
                    ("storage_class", class.as_str()),
                    ("volume_attributes_class", attributes.as_str()),
                ];
                family.encode_family(&labels)?.encode_gauge(count)?;
            }
        }
        self.encode_errors(encoder)
    }
}

impl Metrics {
    /// Errors stand under two names: the older one, which has no suffix that counters have, goes with Kubernetes 1.37.
    fn encode_errors(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let errors = self.errors.lock();
        let help = "Failed steps of making or deleting a volume";
        let mut family =
            encoder.encode_descriptor("volume_operation_errors", help, None, MetricType::Counter)?;
        for (operation, count) in &*errors {
            family.encode_family(operation)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let mut family =
            encoder.encode_descriptor("volume_operation_total_errors", help, None, MetricType::Unknown)?;
        for (operation, count) in &*errors {
            family.encode_family(operation)?.encode_gauge(&i64::try_from(*count).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }
}
