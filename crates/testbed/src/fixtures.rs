//! Objects to start from: whole enough to be accepted by any API server, and changed by [`With::with`] where a test cares.

use k8s_openapi::api::core::v1::{
    Container, HostPathVolumeSource, Node, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimSpec, PersistentVolumeClaimVolumeSource, PersistentVolumeSpec, Pod, PodSpec, Volume,
    VolumeResourceRequirements,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use std::collections::BTreeMap;

/// Changes a value in the middle of an expression: `claim("a", "b").with(|claim| claim.spec = None)`.
pub trait With: Sized {
    /// The same, changed.
    #[must_use]
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl<T> With for T {}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn named_in(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some(namespace.to_owned()), ..named(name) }
}

fn storage(size: &str) -> BTreeMap<String, Quantity> {
    [("storage".to_owned(), Quantity(size.to_owned()))].into()
}

/// A claim of one GiB for one writer, of the class `fast`.
pub fn claim(namespace: &str, name: &str) -> PersistentVolumeClaim {
    let resources = VolumeResourceRequirements { requests: Some(storage("1Gi")), ..Default::default() };
    let spec = PersistentVolumeClaimSpec {
        access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
        resources: Some(resources),
        storage_class_name: Some("fast".to_owned()),
        ..PersistentVolumeClaimSpec::default()
    };
    PersistentVolumeClaim { metadata: named_in(namespace, name), spec: Some(spec), ..Default::default() }
}

/// A volume of one GiB for one writer, of the class `fast`, kept when released.
pub fn volume(name: &str) -> PersistentVolume {
    let spec = PersistentVolumeSpec {
        access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
        capacity: Some(storage("1Gi")),
        host_path: Some(HostPathVolumeSource { path: format!("/volumes/{name}"), type_: None }),
        persistent_volume_reclaim_policy: Some("Retain".to_owned()),
        storage_class_name: Some("fast".to_owned()),
        ..PersistentVolumeSpec::default()
    };
    PersistentVolume { metadata: named(name), spec: Some(spec), ..Default::default() }
}

/// A class that binds at once and whose volumes nobody provisions.
pub fn storage_class(name: &str) -> StorageClass {
    StorageClass {
        metadata: named(name),
        provisioner: "kubernetes.io/no-provisioner".to_owned(),
        volume_binding_mode: Some("Immediate".to_owned()),
        ..StorageClass::default()
    }
}

/// A node without any status.
pub fn node(name: &str) -> Node {
    let labels = [("kubernetes.io/hostname".to_owned(), name.to_owned())].into();
    Node { metadata: ObjectMeta { labels: Some(labels), ..named(name) }, ..Node::default() }
}

/// A pod of one container that mounts these claims.
pub fn pod(namespace: &str, name: &str, claims: &[&str]) -> Pod {
    let volumes = claims.iter().map(|claim| Volume {
        name: (*claim).to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: (*claim).to_owned(),
            read_only: None,
        }),
        ..Volume::default()
    });
    let container =
        Container { name: "main".to_owned(), image: Some("app".to_owned()), ..Container::default() };
    let spec =
        PodSpec { containers: vec![container], volumes: Some(volumes.collect()), ..PodSpec::default() };
    Pod { metadata: named_in(namespace, name), spec: Some(spec), ..Pod::default() }
}

/// Bytes that do not pack, the same for the same seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    std::iter::repeat_with(step).take(length).collect()
}
