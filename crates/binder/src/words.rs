//! The names on the wire, and what the fields of claims, volumes and classes mean. No rules: only how to read and compare.

use crate::lean::{PersistentVolume, PersistentVolumeClaim, Quantities};
use k8s_openapi::api::core::v1::{ObjectReference, Pod, Volume};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lifeboat_engine::ObjectKey;
use lifeboat_schema::quantity::Quantity;
use std::fmt;

/// On a claim: it was fully bound once.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or a volume: this side of the link was chosen by a controller, not by a person.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a claim: the node that the scheduler has chosen; starts delayed provisioning.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: who is to provision it.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The older name of [`STORAGE_PROVISIONER`], which provisioners still read.
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a volume: who provisioned it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On a claim or a volume: the CSI driver that took over from an in-tree plugin.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// The older way to name a class; where present, it counts, even if empty.
pub const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// On a class: "true" makes it the default.
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// The older name of [`DEFAULT_CLASS`].
pub const BETA_DEFAULT_CLASS: &str = "storageclass.beta.kubernetes.io/is-default-class";
/// On a volume that is being grown: the size it had before.
pub const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// On a claim: the CSI driver that is to grow a volume which an in-tree plugin made.
pub const STORAGE_RESIZER: &str = "volume.kubernetes.io/storage-resizer";
/// Keeps an in-tree provisioned volume of policy Delete until its storage is gone.
pub const IN_TREE_FINALIZER: &str = "kubernetes.io/pv-controller";
/// The same for volumes of external provisioners, who own it.
pub const EXTERNAL_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Where names of in-tree plugins begin.
pub const IN_TREE: &str = "kubernetes.io/";

/// In-tree plugins and the CSI drivers that have taken over from them.
pub const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// Who has taken over from a plugin; [`migrated_to`] unless a test has its own idea.
pub type Migration = fn(&str) -> Option<&'static str>;

/// The CSI driver that has taken over from an in-tree plugin.
pub fn migrated_to(plugin: &str) -> Option<&'static str> {
    MIGRATED.iter().find(|(name, _)| *name == plugin).map(|(_, driver)| *driver)
}

/// An annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Sets an annotation.
pub fn annotate(meta: &mut ObjectMeta, key: &str, value: &str) {
    meta.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
}

/// Takes an annotation off, and the map with the last one.
pub fn unannotate(meta: &mut ObjectMeta, key: &str) {
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(key);
        if annotations.is_empty() {
            meta.annotations = None;
        }
    }
}

/// A text that may be missing, missing being empty.
pub fn text(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}

/// Access modes as a set: one bit each, so that "contains" is an `and`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Modes(u8);

impl Modes {
    const ALL: [&'static str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];

    /// The set of these words.
    pub fn of(words: Option<&[String]>) -> Self {
        let bit = |word: &String| Self::ALL.iter().position(|mode| mode == word).map_or(0, |at| 1 << at);
        Self(words.into_iter().flatten().map(bit).fold(0, |all, bit| all | bit))
    }

    /// Whether all of the other's modes are among these.
    pub fn contain(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those that the other lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many modes there are.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// All sets that contain these modes, in groups of equal size, the smallest first.
    pub fn supersets(self) -> impl Iterator<Item = Vec<Self>> {
        (self.count()..=4).map(move |size| {
            (0..16).map(Self).filter(|modes| modes.contain(self) && modes.count() == size).collect()
        })
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Self::ALL.iter().enumerate().filter(|(at, _)| self.0 & (1 << at) != 0);
        f.write_str(&words.map(|(_, word)| *word).collect::<Vec<_>>().join(", "))
    }
}

/// What a claim wants and a volume offers, apart from size and modes: they match only when equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sort {
    /// Storage class, empty for none.
    pub class: String,
    /// Whether it is a block device.
    pub block: bool,
    /// VolumeAttributesClass, empty for none.
    pub attributes: String,
}

/// An amount of storage; nothing where none is given.
pub fn storage(amounts: Option<&Quantities>) -> Quantity {
    let zero = || Quantity::parse("0").expect("invariant: zero is a quantity");
    let amount = amounts.and_then(|amounts| amounts.get("storage"));
    amount.and_then(|amount| Quantity::parse(&amount.0).ok()).unwrap_or_else(zero)
}

/// How a claim reads.
pub trait ClaimWords {
    /// Namespace and name.
    fn key(&self) -> ObjectKey;
    /// Uid, empty where there is none.
    fn uid(&self) -> &str;
    /// The volume it names, empty for none.
    fn volume_name(&self) -> &str;
    /// Class, empty for none.
    fn class(&self) -> &str;
    /// Whether it says anything about its class, be it that there is none.
    fn names_class(&self) -> bool;
    /// What it wants apart from size and modes.
    fn sort(&self) -> Sort;
    /// Modes it wants.
    fn modes(&self) -> Modes;
    /// Bytes it wants.
    fn request(&self) -> Quantity;
    /// Whether it was bound once.
    fn bind_completed(&self) -> bool;
    /// Whether it takes any volume that fits.
    fn waits(&self) -> bool {
        !self.bind_completed() && self.volume_name().is_empty()
    }
}

impl ClaimWords for PersistentVolumeClaim {
    fn key(&self) -> ObjectKey {
        ObjectKey::of(self)
    }
    fn uid(&self) -> &str {
        text(self.metadata.uid.as_ref())
    }
    fn volume_name(&self) -> &str {
        text(self.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()))
    }
    fn class(&self) -> &str {
        annotation(&self.metadata, BETA_STORAGE_CLASS)
            .unwrap_or_else(|| text(self.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref())))
    }
    fn names_class(&self) -> bool {
        annotation(&self.metadata, BETA_STORAGE_CLASS).is_some()
            || self.spec.as_ref().is_some_and(|spec| spec.storage_class_name.is_some())
    }
    fn sort(&self) -> Sort {
        let spec = self.spec.as_ref();
        Sort {
            class: self.class().to_owned(),
            block: spec.and_then(|spec| spec.volume_mode.as_deref()) == Some("Block"),
            attributes: text(spec.and_then(|spec| spec.volume_attributes_class_name.as_ref())).to_owned(),
        }
    }
    fn modes(&self) -> Modes {
        Modes::of(self.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()))
    }
    fn request(&self) -> Quantity {
        let resources = self.spec.as_ref().and_then(|spec| spec.resources.as_ref());
        storage(resources.and_then(|resources| resources.requests.as_ref()))
    }
    fn bind_completed(&self) -> bool {
        annotation(&self.metadata, BIND_COMPLETED).is_some()
    }
}

/// How a volume reads.
pub trait VolumeWords {
    /// Name.
    fn name(&self) -> &str;
    /// The claim it is for.
    fn claim_ref(&self) -> Option<&ObjectReference>;
    /// Namespace and name of the claim it is for.
    fn claim_key(&self) -> Option<ObjectKey>;
    /// The uid of the claim it is for, empty for none.
    fn claim_uid(&self) -> &str;
    /// Phase, empty for none.
    fn phase(&self) -> &str;
    /// What it offers apart from size and modes.
    fn sort(&self) -> Sort;
    /// Modes it offers.
    fn modes(&self) -> Modes;
    /// Bytes it has.
    fn capacity(&self) -> Quantity;
    /// Whether it is for this claim: by name, and by uid if it names one.
    fn is_for(&self, claim: &PersistentVolumeClaim) -> bool;
    /// Reclaim policy; Retain where none is given.
    fn policy(&self) -> &str;
}

impl VolumeWords for PersistentVolume {
    fn name(&self) -> &str {
        text(self.metadata.name.as_ref())
    }
    fn claim_ref(&self) -> Option<&ObjectReference> {
        self.spec.as_ref()?.claim_ref.as_ref()
    }
    fn claim_key(&self) -> Option<ObjectKey> {
        let claim = self.claim_ref()?;
        Some(ObjectKey::new(text(claim.namespace.as_ref()), text(claim.name.as_ref())))
    }
    fn claim_uid(&self) -> &str {
        text(self.claim_ref().and_then(|claim| claim.uid.as_ref()))
    }
    fn phase(&self) -> &str {
        text(self.status.as_ref().and_then(|status| status.phase.as_ref()))
    }
    fn sort(&self) -> Sort {
        let spec = self.spec.as_ref();
        let class = annotation(&self.metadata, BETA_STORAGE_CLASS)
            .unwrap_or_else(|| text(spec.and_then(|spec| spec.storage_class_name.as_ref())));
        Sort {
            class: class.to_owned(),
            block: spec.and_then(|spec| spec.volume_mode.as_deref()) == Some("Block"),
            attributes: text(spec.and_then(|spec| spec.volume_attributes_class_name.as_ref())).to_owned(),
        }
    }
    fn modes(&self) -> Modes {
        Modes::of(self.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()))
    }
    fn capacity(&self) -> Quantity {
        storage(self.spec.as_ref().and_then(|spec| spec.capacity.as_ref()))
    }
    fn is_for(&self, claim: &PersistentVolumeClaim) -> bool {
        self.claim_ref().is_some_and(|reference| {
            let uid = text(reference.uid.as_ref());
            self.claim_key() == Some(claim.key()) && (uid.is_empty() || uid == claim.uid())
        })
    }
    fn policy(&self) -> &str {
        let policy = self.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        policy.unwrap_or("Retain")
    }
}

/// Whether unclaimed volumes of a class are left to the scheduler.
pub fn delays_binding(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// Whether a class is marked as the default.
pub fn is_default(class: &StorageClass) -> bool {
    [DEFAULT_CLASS, BETA_DEFAULT_CLASS].iter().any(|key| annotation(&class.metadata, key) == Some("true"))
}

/// The claims that a pod names, those of its ephemeral volumes included.
pub fn claims_of(pod: &Pod) -> Vec<ObjectKey> {
    let namespace = text(pod.metadata.namespace.as_ref());
    let ephemeral = ephemeral_claims(pod).map(|(_, claim)| claim);
    named_claims(pod)
        .map(str::to_owned)
        .chain(ephemeral)
        .map(|claim| ObjectKey::new(namespace, claim))
        .collect()
}

fn volumes_of(pod: &Pod) -> impl Iterator<Item = &Volume> {
    pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten()
}

/// The claims that a pod names itself.
pub fn named_claims(pod: &Pod) -> impl Iterator<Item = &str> {
    volumes_of(pod).filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

/// The volumes that live with a pod, each with the name that its claim must have.
pub fn ephemeral_claims(pod: &Pod) -> impl Iterator<Item = (&str, String)> {
    let name = text(pod.metadata.name.as_ref());
    let ephemeral = |volume: &&Volume| volume.persistent_volume_claim.is_none() && volume.ephemeral.is_some();
    volumes_of(pod)
        .filter(ephemeral)
        .map(move |volume| (volume.name.as_str(), format!("{name}-{}", volume.name)))
}

/// Whether a claim was made for a volume of this very pod.
pub fn is_made_for(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let owns = |owner: &OwnerReference| {
        owner.controller == Some(true) && Some(&owner.uid) == pod.metadata.uid.as_ref()
    };
    claim.metadata.namespace == pod.metadata.namespace
        && claim.metadata.owner_references.iter().flatten().any(owns)
}

/// Whether a node is done with a pod, or somebody has said so by force: only its finalizers keep it.
pub fn is_shut_down(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0)
}

/// Whether a pod has ended.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a pod has a node.
pub fn is_scheduled(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| !text(spec.node_name.as_ref()).is_empty())
}
