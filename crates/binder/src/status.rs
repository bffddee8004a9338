//! What people are told: phases, and why a claim or a volume waits. The words are Kubernetes' own.

use crate::decide::matching::Lack;
use crate::lean::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus};
use crate::words::{ClaimWords, IN_TREE_FINALIZER, PRE_RESIZE_CAPACITY, VolumeWords, annotation};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lifeboat_engine::{Level, ObjectKey, Why};
use std::fmt;

/// A claim's status: the fields that binding owns, among those that it leaves alone.
pub type ClaimStatus = PersistentVolumeClaimStatus;

/// A claim without a volume: what it had of one is cleared.
pub fn without_volume(claim: &PersistentVolumeClaim, phase: &str) -> ClaimStatus {
    let mut status = claim.status.clone().unwrap_or_default();
    status.phase = Some(phase.to_owned());
    status.access_modes = None;
    status.capacity = None;
    status.current_volume_attributes_class_name = None;
    status
}

/// A claim bound to a volume. The size is taken over only when it becomes bound: later differences are a resize under way.
pub fn bound_to(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> ClaimStatus {
    let mut status = claim.status.clone().unwrap_or_default();
    let spec = volume.spec.clone().unwrap_or_default();
    let becomes = status.phase.as_deref() != Some("Bound");
    status.phase = Some("Bound".to_owned());
    status.access_modes = spec.access_modes;
    if becomes {
        let mut capacity = spec.capacity.unwrap_or_default();
        if let Some(before) = annotation(&volume.metadata, PRE_RESIZE_CAPACITY) {
            capacity.put("storage", Quantity(before.to_owned()));
        }
        let differs = |status: &ClaimStatus| {
            let bytes = |amount: Option<&Quantity>| {
                amount.and_then(|amount| lifeboat_schema::quantity::Quantity::parse(&amount.0).ok())
            };
            let shown = status.capacity.as_ref().and_then(|capacity| capacity.get("storage"));
            shown.is_none() || bytes(shown) != bytes(capacity.get("storage"))
        };
        if differs(&status) {
            status.capacity = Some(capacity);
        }
        status.current_volume_attributes_class_name =
            spec.volume_attributes_class_name.filter(|name| !name.is_empty());
    }
    status
}

/// A volume's status: its phase, and a word about it, which does not count when two are compared.
#[derive(Debug, Clone, serde::Serialize)]
pub struct VolumeStatus {
    /// The phase.
    pub phase: Phase,
    /// What is the matter, where something is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl PartialEq for VolumeStatus {
    fn eq(&self, other: &Self) -> bool {
        self.phase == other.phase
    }
}

/// The phases of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Phase {
    /// Nobody's, or reserved.
    Available,
    /// A claim's.
    Bound,
    /// Its claim is gone.
    Released,
    /// It could not be reclaimed.
    Failed,
}

impl Phase {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Bound => "Bound",
            Self::Released => "Released",
            Self::Failed => "Failed",
        }
    }

    /// This phase as a status, with nothing to say about it.
    pub fn plain(self) -> VolumeStatus {
        VolumeStatus { phase: self, message: String::new() }
    }

    /// The phase of a volume, unless it is still pending.
    pub fn of(volume: &PersistentVolume) -> Option<Self> {
        let all = [Self::Available, Self::Bound, Self::Released, Self::Failed];
        all.into_iter().find(|phase| phase.as_str() == volume.phase())
    }
}

/// A volume showing a status.
pub fn volume_showing(volume: &PersistentVolume, status: &VolumeStatus) -> PersistentVolume {
    let mut volume = volume.clone();
    let shown = volume.status.get_or_insert_default();
    shown.phase = Some(status.phase.as_str().to_owned());
    shown.message = (!status.message.is_empty()).then(|| status.message.clone());
    volume
}

/// A claim showing a status.
pub fn claim_showing(claim: &PersistentVolumeClaim, status: ClaimStatus) -> PersistentVolumeClaim {
    PersistentVolumeClaim { status: Some(status), ..claim.clone() }
}

/// What a claim waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ClaimWhy {
    /// Nothing fits and nobody is asked to make something.
    NothingFits,
    /// The volume it names does not exist.
    VolumeMissing(String),
    /// The volume it names does not fit.
    VolumeUnfit(String, Lack),
    /// The volume it names is another's.
    VolumeTaken(String),
    /// The volume it names is another's though a controller chose it: somebody changed the claim by hand.
    VolumeTakenFromUs(String),
    /// A volume that carries its uid is of another mode.
    ReservedUnfit(String),
    /// Somebody else is just taking the one that fits.
    OthersChoose,
    /// Nothing is bound before a pod needs it.
    FirstConsumer,
    /// Pods need it and have no node yet.
    PodsScheduled(Vec<String>),
    /// Its class does not exist.
    ClassMissing(String),
    /// Nobody in this cluster provisions for its class.
    NoProvisioner(String),
    /// A provisioner was asked.
    Provisioner(String),
    /// It was bound and names no volume any more.
    LostName,
    /// It was bound and its volume is gone.
    LostVolume,
    /// It was bound to a volume that is another's.
    Misbound,
}

impl fmt::Display for ClaimWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingFits => {
                f.write_str("no persistent volumes available for this claim and no storage class is set")
            }
            Self::VolumeMissing(volume) => write!(f, "the volume {volume:?} that it names does not exist"),
            Self::VolumeUnfit(volume, lack) => {
                write!(f, "Cannot bind to requested volume {volume:?}: {lack}")
            }
            Self::VolumeTaken(volume) | Self::VolumeTakenFromUs(volume) => {
                write!(f, "volume {volume:?} already bound to a different claim.")
            }
            Self::ReservedUnfit(volume) => write!(
                f,
                "Cannot bind PersistentVolume {volume:?} to requested PersistentVolumeClaim due to incompatible volumeMode."
            ),
            Self::OthersChoose => f.write_str("another claim is just taking the volume that fits"),
            Self::FirstConsumer => f.write_str("waiting for first consumer to be created before binding"),
            Self::PodsScheduled(pods) => match pods.as_slice() {
                [pod] => write!(f, "waiting for pod {pod} to be scheduled"),
                pods => write!(f, "waiting for pods {} to be scheduled", pods.join(",")),
            },
            Self::ClassMissing(class) => write!(f, "storageclass.storage.k8s.io {class:?} not found"),
            Self::NoProvisioner(name) => write!(f, "no volume plugin matched name: {name}"),
            Self::Provisioner(name) => write!(
                f,
                "Waiting for a volume to be created either by the external provisioner '{name}' or manually by the system \
                 administrator. If volume creation is delayed, please verify that the provisioner is running and correctly \
                 registered."
            ),
            Self::LostName => {
                f.write_str("Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
            }
            Self::LostVolume => {
                f.write_str("Bound claim has lost its PersistentVolume. Data on the volume is lost!")
            }
            Self::Misbound => {
                f.write_str("Two claims are bound to the same volume, this one is bound incorrectly")
            }
        }
    }
}

impl Why for ClaimWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::NothingFits | Self::VolumeTaken(_) | Self::VolumeTakenFromUs(_) => "FailedBinding",
            Self::VolumeUnfit(..) | Self::ReservedUnfit(_) => "VolumeMismatch",
            Self::FirstConsumer => "WaitForFirstConsumer",
            Self::PodsScheduled(_) => "WaitForPodScheduled",
            Self::ClassMissing(_) | Self::NoProvisioner(_) => "ProvisioningFailed",
            Self::Provisioner(_) => "ExternalProvisioning",
            Self::LostName | Self::LostVolume => "ClaimLost",
            Self::Misbound => "ClaimMisbound",
            Self::VolumeMissing(_) => "VolumeMissing",
            Self::OthersChoose => "OthersChoose",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        match self {
            Self::VolumeMissing(_) | Self::OthersChoose => None,
            Self::NothingFits | Self::FirstConsumer | Self::PodsScheduled(_) | Self::Provisioner(_) => {
                Some(Level::Normal)
            }
            _ => Some(Level::Warning),
        }
    }
}

/// What a volume waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum VolumeWhy {
    /// A claim is just taking it.
    BeingTaken,
    /// A claim that it fits has been woken.
    Offered(#[serde(serialize_with = "as_text")] ObjectKey),
    /// The claims that it fits have been offered other volumes.
    OthersOffered,
    /// Its claim completes the binding.
    Claim(#[serde(serialize_with = "as_text")] ObjectKey),
    /// It is reserved for a claim of another mode.
    ClaimUnfit(String),
    /// Somebody else deletes it and its storage.
    Deleter(String),
    /// Its storage is deleted by nobody here.
    NoDeleter {
        /// Its name.
        volume: String,
        /// What would have to delete it.
        lack: DeleterLack,
    },
    /// It is being deleted, and kept because its storage is deleted by nobody here.
    StorageLeft(DeleterLack),
    /// Nobody here recycles.
    NoRecycler,
    /// Pods still use it.
    Pods(Vec<String>),
    /// Its reclaim policy is none that is known.
    UnknownPolicy,
}

/// What would have to delete a volume's storage and is not here.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum DeleterLack {
    /// The in-tree plugin that made it.
    Plugin(String),
    /// A plugin for its kind of storage.
    Source,
    /// Anything at all: Kubernetes knows its kind of storage and does not delete it either.
    Deletable,
}

fn as_text<S: serde::Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

impl fmt::Display for VolumeWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingTaken => f.write_str("a claim is just taking it"),
            Self::Offered(claim) => write!(f, "the claim {claim}, which it fits, is asked to take it"),
            Self::OthersOffered => f.write_str("the claims that it fits are asked to take others"),
            Self::Claim(claim) => write!(f, "the claim {claim} completes the binding"),
            Self::ClaimUnfit(claim) => write!(
                f,
                "Cannot bind PersistentVolume to requested PersistentVolumeClaim {claim:?} due to incompatible volumeMode."
            ),
            Self::Deleter(name) => write!(f, "{name} deletes it and its storage"),
            Self::NoDeleter { lack: DeleterLack::Plugin(plugin), .. } => {
                write!(f, "no volume plugin matched name: {plugin}")
            }
            Self::NoDeleter { volume, lack } => {
                let kind = if *lack == DeleterLack::Deletable { "deletable volume" } else { "volume" };
                write!(
                    f,
                    "error getting deleter volume plugin for volume {volume:?}: no {kind} plugin matched"
                )
            }
            Self::StorageLeft(lack) => {
                let who = match lack {
                    DeleterLack::Plugin(plugin) => plugin,
                    DeleterLack::Source | DeleterLack::Deletable => "its plugin",
                };
                write!(
                    f,
                    "kept by the finalizer {IN_TREE_FINALIZER}: {who} is not here to delete its storage. Delete the storage by \
                     hand, then set persistentVolumeReclaimPolicy to Retain, and the volume goes"
                )
            }
            Self::NoRecycler => f.write_str("No recycler plugin found for the volume!"),
            Self::Pods(pods) => write!(f, "Volume is used by pods: {}", pods.join(",")),
            Self::UnknownPolicy => f.write_str("Volume has unrecognized PersistentVolumeReclaimPolicy"),
        }
    }
}

impl Why for VolumeWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::BeingTaken => "BeingTaken",
            Self::Offered(_) => "Offered",
            Self::OthersOffered => "OthersOffered",
            Self::Claim(_) => "WaitForClaim",
            Self::ClaimUnfit(_) => "VolumeMismatch",
            Self::Deleter(_) => "WaitForDeleter",
            Self::NoDeleter { .. } => "VolumeFailedDelete",
            Self::StorageLeft(_) => "StorageLeftBehind",
            Self::NoRecycler | Self::Pods(_) => "VolumeFailedRecycle",
            Self::UnknownPolicy => "VolumeUnknownReclaimPolicy",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        match self {
            Self::BeingTaken | Self::Offered(_) | Self::OthersOffered | Self::Claim(_) | Self::Deleter(_) => {
                None
            }
            Self::Pods(_) => Some(Level::Normal),
            _ => Some(Level::Warning),
        }
    }
}

/// The reference that events about a claim carry, and that a volume carries of its claim.
pub fn claim_reference(claim: &PersistentVolumeClaim) -> k8s_openapi::api::core::v1::ObjectReference {
    let key = claim.key();
    k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: Some(key.namespace),
        name: Some(key.name),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        field_path: None,
    }
}

/// The reference that events about a volume carry.
pub fn volume_reference(volume: &PersistentVolume) -> k8s_openapi::api::core::v1::ObjectReference {
    k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolume".to_owned()),
        name: volume.metadata.name.clone(),
        uid: volume.metadata.uid.clone(),
        resource_version: volume.metadata.resource_version.clone(),
        ..Default::default()
    }
}
