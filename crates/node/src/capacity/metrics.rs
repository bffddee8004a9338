//! The figures of a node's disks, under the names that TopoLVM gives them.

use crate::capacity::decide::ClassReading;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    node: String,
    device_class: String,
}

type Bytes = Family<Labels, Gauge<u64, AtomicU64>>;
type Percent = Family<Labels, Gauge<f64, AtomicU64>>;

/// What a node's disks hold, by device class.
#[derive(Clone, Default)]
pub struct Gauges {
    available: Bytes,
    size: Bytes,
    data: Percent,
    metadata: Percent,
    pool_size: Bytes,
    overprovisioned: Bytes,
}

impl Gauges {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        let group = registry.sub_registry_with_prefix("topolvm");
        group.register(
            "volumegroup_available_bytes",
            "Free bytes that a new volume may have",
            self.available.clone(),
        );
        group.register("volumegroup_size_bytes", "All bytes of the device class", self.size.clone());
        group.register("thinpool_data_percent", "Used data of the thin pool", self.data.clone());
        group.register("thinpool_metadata_percent", "Used metadata of the thin pool", self.metadata.clone());
        group.register("thinpool_size_bytes", "Bytes of the thin pool", self.pool_size.clone());
        group.register(
            "thinpool_overprovisioned_available",
            "Bytes that may still be promised under the overprovision ratio",
            self.overprovisioned.clone(),
        );
    }

    pub(super) fn set(&self, node: &str, class: &ClassReading) {
        let Ok(capacity) = &class.capacity else { return };
        let labels = Labels { node: node.to_owned(), device_class: class.class.name.clone() };
        self.available.get_or_create(&labels).set(capacity.free);
        self.size.get_or_create(&labels).set(capacity.size);
        if let Some(pool) = &capacity.pool {
            self.data.get_or_create(&labels).set(pool.data_percent);
            self.metadata.get_or_create(&labels).set(pool.metadata_percent);
            self.pool_size.get_or_create(&labels).set(pool.size);
            self.overprovisioned.get_or_create(&labels).set(pool.overprovision);
        }
    }
}
