//! What a recorded volume or claim looks like where it is restored, and which volumes are ours to take up again.

use crate::words::Words as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::annotations;
use lifeboat_records::restored::{self, Sharing};
use std::collections::BTreeMap;

type Notes = BTreeMap<String, String>;

/// A volume as it is made here: under its handle at this side, free to be bound by its claim.
pub fn volume(recorded: &PersistentVolume, class: Option<&StorageClass>, shared: bool) -> PersistentVolume {
    let sharing = if shared { Sharing::Shared } else { Sharing::Copied };
    restored::volume(recorded.clone(), class, sharing)
}

/// A claim as it is made here, bound to its volume by name.
pub fn claim(recorded: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut claim = restored::claim(recorded.clone());
    // What it was once filled from need not exist here, and its volume has the data.
    if let Some(spec) = &mut claim.spec {
        spec.data_source = None;
        spec.data_source_ref = None;
    }
    claim
}

/// Annotations that go with a claim to another cluster.
pub fn carried_over(notes: Option<&Notes>) -> Notes {
    let ours = |key: &String| annotations::NOT_CARRIED_OVER.iter().any(|prefix| key.starts_with(prefix));
    notes
        .into_iter()
        .flatten()
        .filter(|(key, _)| !ours(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether a volume is one that a group restored or kept, and so may be taken up again.
pub fn is_ours(volume: &PersistentVolume) -> bool {
    [annotations::RESTORE, annotations::VR_RETAINED, annotations::VOLSYNC_RETAINED]
        .iter()
        .any(|marker| volume.note(marker).is_some())
}
