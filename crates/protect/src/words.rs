//! Reading groups, claims, volumes and what belongs to them without saying `Option` at every step.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Resource;
use lifeboat_api::ramen::{DRAction, ReplicationState, VolumeReplicationGroup};
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::ObjectKey;
pub use lifeboat_engine::Words;
use lifeboat_schema::quantity::Quantity;
use lifeboat_schema::selector;
use serde_json::json;
use std::collections::BTreeMap;

/// What is asked of any object that may belong to a group.
pub trait OwnedWords: Resource {
    /// The group that its owner labels name, where they do.
    fn owner(&self) -> Option<ObjectKey> {
        let (namespace, name) = labels::group(self.meta().labels.as_ref()?)?;
        Some(ObjectKey::new(namespace, name))
    }
    /// Whether its owner labels name this group.
    fn is_owned_by(&self, group: &ObjectKey) -> bool {
        self.owner().as_ref() == Some(group)
    }
}

impl<K: Resource> OwnedWords for K {}

/// What is asked of a group.
pub trait GroupWords {
    /// Its key.
    fn key(&self) -> ObjectKey;
    /// Whether it asks to be primary.
    fn wants_primary(&self) -> bool;
    /// Whether it asks to be secondary.
    fn wants_secondary(&self) -> bool;
    /// Whether a last copy is prepared or run.
    fn in_final_sync(&self) -> bool;
    /// The action that its role follows from.
    fn action(&self) -> Option<&DRAction>;
    /// The epoch that the hub gave it: nothing, a number, or a text that is none.
    fn given_epoch(&self) -> Option<Result<i64, String>>;
    /// The fleet that it belongs to, where its hub has said so.
    fn fleet(&self) -> Option<&str>;
    /// Whether a claim with these labels is selected.
    fn selects(&self, claim: &PersistentVolumeClaim) -> bool;
    /// Whether movers are used at all.
    fn uses_volsync(&self) -> bool;
    /// Whether names of services reach across clusters.
    fn names_reach(&self) -> bool;
}

impl GroupWords for VolumeReplicationGroup {
    fn key(&self) -> ObjectKey {
        ObjectKey::of(self)
    }

    fn wants_primary(&self) -> bool {
        self.spec.replication_state == ReplicationState::Primary
    }

    fn wants_secondary(&self) -> bool {
        self.spec.replication_state == ReplicationState::Secondary
    }

    fn in_final_sync(&self) -> bool {
        self.spec.prepare_for_final_sync || self.spec.run_final_sync
    }

    fn action(&self) -> Option<&DRAction> {
        self.spec.action.as_ref().filter(|action| !action.as_str().is_empty())
    }

    fn given_epoch(&self) -> Option<Result<i64, String>> {
        let text = self.note(annotations::EPOCH)?;
        Some(text.parse::<i64>().ok().filter(|epoch| *epoch > 0).ok_or_else(|| text.to_owned()))
    }

    fn fleet(&self) -> Option<&str> {
        self.note(annotations::FLEET).filter(|fleet| !fleet.is_empty())
    }

    fn selects(&self, claim: &PersistentVolumeClaim) -> bool {
        claim.space() == self.space()
            && !(self.uses_volsync() && is_movers_own(claim))
            && selected(Some(&self.spec.pvc_selector), claim.metadata.labels.as_ref())
    }

    fn uses_volsync(&self) -> bool {
        !self.spec.vol_sync.as_ref().is_some_and(|volsync| volsync.disabled)
    }

    fn names_reach(&self) -> bool {
        self.note(annotations::IS_SUBMARINER_ENABLED) != Some("false")
    }
}

/// Whether a claim is one that a mover made for itself, which no group protects.
pub fn is_movers_own(claim: &PersistentVolumeClaim) -> bool {
    // Ramen puts its label also on claims of the application that it made from an image: those it marks as restored, or holds.
    let restored = claim.note(annotations::RESTORE).is_some() || claim.has_finalizer(finalizers::PVC_VOLSYNC);
    claim.label(labels::CREATED_BY) == Some(labels::CREATED_BY_VOLSYNC)
        || claim.label(labels::CREATED_BY_RAMEN) == Some(labels::CREATED_BY_RAMEN_VALUE) && !restored
}

/// Whether a selector takes these labels; one that is missing takes all, one that cannot be read takes none.
pub fn selected(selector: Option<&LabelSelector>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(wanted) = selector else { return true };
    let parsed = selector::LabelSelector::from_json(&json!(wanted));
    parsed.is_ok_and(|parsed| parsed.matches(&json!(labels)))
}

/// What is asked of a claim.
pub trait ClaimWords {
    /// Whether it is bound.
    fn is_bound(&self) -> bool;
    /// The volume it is bound to.
    fn volume_name(&self) -> Option<&str>;
    /// Its storage class.
    fn class_name(&self) -> Option<&str>;
    /// Bytes it asks for.
    fn asked(&self) -> i64;
    /// Bytes it has.
    fn has(&self) -> i64;
}

impl ClaimWords for PersistentVolumeClaim {
    fn is_bound(&self) -> bool {
        self.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
    }

    fn volume_name(&self) -> Option<&str> {
        self.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
    }

    fn class_name(&self) -> Option<&str> {
        let said = self.spec.as_ref()?.storage_class_name.as_deref();
        said.or_else(|| self.note(annotations::BETA_STORAGE_CLASS)).filter(|name| !name.is_empty())
    }

    fn asked(&self) -> i64 {
        let requests = self.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.as_ref());
        storage(requests)
    }

    fn has(&self) -> i64 {
        storage(self.status.as_ref().and_then(|status| status.capacity.as_ref()))
    }
}

type Quantities = BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>;

/// Bytes of storage in a list of resources.
pub fn storage(quantities: Option<&Quantities>) -> i64 {
    let text = quantities.and_then(|all| all.get("storage"));
    text.and_then(|text| Quantity::parse(&text.0).ok()).map_or(0, |size| size.value())
}

/// What is asked of a volume.
pub trait VolumeWords {
    /// Its reclaim policy.
    fn policy(&self) -> &str;
    /// Whether it is kept when released.
    fn is_retained(&self) -> bool;
    /// The claim that it is for.
    fn claim_key(&self) -> Option<ObjectKey>;
    /// The UID of the claim it is bound to, empty where none.
    fn claim_uid(&self) -> &str;
    /// Driver and handle of its storage.
    fn handle(&self) -> Option<(&str, &str)>;
    /// Its phase.
    fn phase(&self) -> &str;
}

impl VolumeWords for PersistentVolume {
    fn policy(&self) -> &str {
        let policy = self.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        policy.unwrap_or("Retain")
    }

    fn is_retained(&self) -> bool {
        self.policy() == "Retain"
    }

    fn claim_key(&self) -> Option<ObjectKey> {
        let claim = self.spec.as_ref()?.claim_ref.as_ref()?;
        Some(ObjectKey::new(claim.namespace.clone()?, claim.name.clone()?))
    }

    fn claim_uid(&self) -> &str {
        let claim = self.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        claim.and_then(|claim| claim.uid.as_deref()).unwrap_or_default()
    }

    fn handle(&self) -> Option<(&str, &str)> {
        let csi = self.spec.as_ref()?.csi.as_ref()?;
        Some((&csi.driver, &csi.volume_handle))
    }

    fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}

/// Labels by which a claim names its group.
pub fn owner_labels(group: &ObjectKey) -> BTreeMap<String, String> {
    [
        (labels::OWNER_NAMESPACE_NAME.to_owned(), group.namespace.clone()),
        (labels::OWNER_NAME.to_owned(), group.name.clone()),
    ]
    .into()
}

/// Labels of what a group makes.
pub fn made_labels(group: &ObjectKey) -> BTreeMap<String, String> {
    let mut all = owner_labels(group);
    all.insert(labels::CREATED_BY_RAMEN.to_owned(), labels::CREATED_BY_RAMEN_VALUE.to_owned());
    all
}

/// Labels by which a sender, receiver or image names its group.
pub fn mover_labels(group: &ObjectKey) -> BTreeMap<String, String> {
    let mut all = made_labels(group);
    all.insert(labels::VRG_OWNER.to_owned(), group.name.clone());
    all.insert(labels::VRG_OWNER_NAMESPACE.to_owned(), group.namespace.clone());
    all
}
