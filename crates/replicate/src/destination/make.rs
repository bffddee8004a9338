//! The objects that are made for a receiver: claim, service, where that leads, and images. Pure.

use super::world::World;
use crate::kinds::{claim_of_receiver, fitting};
use crate::resolve::PORT;
use crate::words::{Words as _, owned_by};
use jiff::tz::TimeZone;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, Service, ServicePort, ServiceSpec,
    VolumeResourceRequirements,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotSource, VolumeSnapshotSpec};
use lifeboat_api::volsync::{ReplicationDestination, service_name};
use lifeboat_api::{annotations, labels};
use lifeboat_node::provision::words::bytes;
use lifeboat_stream::Completed;
use std::collections::BTreeMap;

fn meta(receiver: &ReplicationDestination, name: String, by: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: receiver.metadata.namespace.clone(),
        labels: Some([(labels::CREATED_BY.to_owned(), by.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

fn capacity(receiver: &ReplicationDestination) -> Option<&Quantity> {
    receiver.spec.rsync_tls.as_ref()?.volume.capacity.as_ref()
}

fn asked(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")
}

/// The claim that a receiver writes to, made on this node. It is no application's, so it goes with the receiver.
pub fn claim(receiver: &ReplicationDestination, node: &str) -> PersistentVolumeClaim {
    let tls = receiver.spec.rsync_tls.clone().unwrap_or_default();
    let mut metadata = meta(receiver, claim_of_receiver(receiver).name, labels::CREATED_BY_VOLSYNC);
    metadata.owner_references = Some(vec![owned_by(receiver)]);
    metadata.annotations = Some([(annotations::SELECTED_NODE.to_owned(), node.to_owned())].into());
    let requests = tls.volume.capacity.map(|size| BTreeMap::from([("storage".to_owned(), size)]));
    PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(tls.volume.access_modes),
            storage_class_name: tls.volume.storage_class_name,
            volume_mode: tls.volume_mode,
            resources: Some(VolumeResourceRequirements { requests, limits: None }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

/// Whether the claim that was made is smaller than what the receiver shall hold now.
pub fn is_short(world: &World, receiver: &ReplicationDestination) -> bool {
    let has = world.claim.as_deref().and_then(asked).map_or(0, bytes);
    capacity(receiver).is_some_and(|wanted| bytes(wanted) > has)
}

/// The service of a receiver. It selects no pods: the node itself listens.
pub fn receiver_service(world: &World, receiver: &ReplicationDestination) -> Service {
    let tls = receiver.spec.rsync_tls.clone().unwrap_or_default();
    let mut metadata = meta(receiver, service_name(receiver.name()), labels::CREATED_BY_MOVER);
    metadata.owner_references = Some(vec![owned_by(receiver)]);
    metadata.annotations = Some(tls.service_annotations).filter(|notes| !notes.is_empty());
    let port = ServicePort {
        name: Some("rsync-tls".to_owned()),
        port: i32::from(PORT),
        target_port: Some(IntOrString::Int(i32::from(world.advertise.port()))),
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    Service {
        metadata,
        spec: Some(ServiceSpec {
            type_: Some(tls.service_type.unwrap_or_else(|| "ClusterIP".to_owned())),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Whether a service is as it shall be, in what is ours of it.
pub fn is_right_service(world: &World, receiver: &ReplicationDestination, has: &Service) -> bool {
    let wanted = receiver_service(world, receiver);
    let of = |service: &Service| {
        let spec = service.spec.clone().unwrap_or_default();
        let port = spec.ports.into_iter().flatten().next();
        (spec.type_, port.map(|port| (port.port, port.target_port)))
    };
    let owner = |service: &Service| {
        service.metadata.owner_references.iter().flatten().map(|one| one.uid.clone()).next()
    };
    of(has) == of(&wanted) && owner(has) == owner(&wanted)
}

/// Where the service of a receiver leads: to this node.
pub fn slice(world: &World, receiver: &ReplicationDestination) -> EndpointSlice {
    let name = service_name(receiver.name());
    let mut metadata = meta(receiver, name.clone(), labels::CREATED_BY_MOVER);
    metadata.labels.get_or_insert_default().insert("kubernetes.io/service-name".to_owned(), name);
    metadata.owner_references = Some(vec![owned_by(receiver)]);
    let ip = world.advertise.ip();
    // A loopback address may not stand there, and only clusters of one machine have it.
    let (type_, address) = match ip {
        ip if ip.is_loopback() => ("FQDN", "localhost".to_owned()),
        ip if ip.is_ipv6() => ("IPv6", ip.to_string()),
        ip => ("IPv4", ip.to_string()),
    };
    EndpointSlice {
        metadata,
        address_type: type_.to_owned(),
        endpoints: Some(vec![Endpoint {
            addresses: vec![address],
            conditions: Some(EndpointConditions { ready: Some(true), ..EndpointConditions::default() }),
            ..Endpoint::default()
        }]),
        ports: Some(vec![EndpointPort {
            name: Some("rsync-tls".to_owned()),
            port: Some(i32::from(world.advertise.port())),
            protocol: Some("TCP".to_owned()),
            ..EndpointPort::default()
        }]),
    }
}

/// Whether a service leads here.
pub fn is_right_slice(world: &World, receiver: &ReplicationDestination, has: &EndpointSlice) -> bool {
    let wanted = slice(world, receiver);
    let of = |slice: &EndpointSlice| {
        let addresses: Vec<String> =
            slice.endpoints.iter().flatten().flat_map(|endpoint| endpoint.addresses.clone()).collect();
        let ports: Vec<Option<i32>> = slice.ports.iter().flatten().map(|port| port.port).collect();
        (slice.address_type.clone(), addresses, ports)
    };
    of(has) == of(&wanted)
}

/// What the image of a copy is called: by when it was cut and what it is a copy of, so that it is the same after a restart and no other's.
pub fn image_name(receiver: &ReplicationDestination, completed: &Completed) -> String {
    let at = completed.cut.to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%S%3f").to_string();
    fitting(receiver.name(), &format!("-dst-{at}-{:08x}", fold(&completed.generation)))
}

/// A name folded into a number (FNV-1a).
fn fold(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |number, byte| (number ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The image of a copy. Nobody owns it: an image that somebody keeps outlives its receiver.
pub fn image(receiver: &ReplicationDestination, name: String, completed: &Completed) -> VolumeSnapshot {
    let tls = receiver.spec.rsync_tls.clone().unwrap_or_default();
    let mut metadata = meta(receiver, name, labels::CREATED_BY_MOVER);
    let uid = receiver.uid().to_owned();
    metadata.labels.get_or_insert_default().insert(labels::RECEIVER_UID.to_owned(), uid);
    let notes = [
        (annotations::RECEIVER, Some(receiver.name().to_owned())),
        (annotations::IMAGE_CUT, Some(completed.cut.to_string())),
        (annotations::IMAGE_GENERATION, Some(completed.generation.clone())),
        (annotations::IMAGE_EPOCH, Some(completed.epoch.to_string())),
        (annotations::LINEAGE, completed.lineage.clone()),
    ];
    let notes = notes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    metadata.annotations = Some(notes.collect());
    VolumeSnapshot {
        metadata,
        spec: VolumeSnapshotSpec {
            source: VolumeSnapshotSource {
                persistent_volume_claim_name: Some(claim_of_receiver(receiver).name),
                ..VolumeSnapshotSource::default()
            },
            volume_snapshot_class_name: tls.volume.volume_snapshot_class_name,
        },
        status: None,
    }
}
