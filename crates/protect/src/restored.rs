//! What a recorded volume or claim looks like where it is restored, and which volumes are ours to take up again.

use crate::words::Words as _;
use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim,
    VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::{annotations, labels};
use lifeboat_records::restored::{self, Sharing};
use std::collections::BTreeMap;

type Notes = BTreeMap<String, String>;

/// A volume as it is made here: under its handle at this side, free to be bound by its claim.
pub fn volume(recorded: &PersistentVolume, class: Option<&StorageClass>, shared: bool) -> PersistentVolume {
    let sharing = if shared { Sharing::Shared } else { Sharing::Copied };
    restored::volume(recorded.clone(), class, sharing)
}

/// Whether a volume is on the disks of one node, so that only pods there can use it.
pub fn is_local(volume: &PersistentVolume) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    let terms = affinity.into_iter().flat_map(|required| &required.node_selector_terms);
    let mut asked = terms.flat_map(|term| term.match_expressions.iter().flatten());
    asked.any(|one| one.key == labels::TOPOLOGY_NODE)
}

/// Ties a volume to the node that has it, under the handle that it has there.
pub fn put(volume: &mut PersistentVolume, handle: &str, node: &str) {
    let Some(spec) = &mut volume.spec else { return };
    if let Some(csi) = &mut spec.csi {
        csi.volume_handle = handle.to_owned();
    }
    let here = NodeSelectorRequirement {
        key: labels::TOPOLOGY_NODE.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![here]), match_fields: None };
    let required = Some(NodeSelector { node_selector_terms: vec![term] });
    spec.node_affinity = Some(VolumeNodeAffinity { required });
}

/// A claim as it is made here, bound to its volume by name.
pub fn claim(recorded: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut claim = restored::claim(recorded.clone());
    // It gets another UID here, and the data descends from the same volume.
    let notes = claim.metadata.annotations.get_or_insert_default();
    if !recorded.uid().is_empty() && !notes.contains_key(annotations::LINEAGE) {
        notes.insert(annotations::LINEAGE.to_owned(), recorded.uid().to_owned());
    }
    // When an earlier restore's content was cut says nothing about this one.
    notes.remove(annotations::IMAGE_CUT);
    // What it was once filled from need not exist here, and its volume has the data.
    if let Some(spec) = &mut claim.spec {
        spec.data_source = None;
        spec.data_source_ref = None;
    }
    claim
}

/// Whether a claim was made from an image that a mover had received.
pub fn is_of_an_image(claim: &PersistentVolumeClaim) -> bool {
    let source = claim.spec.as_ref().and_then(|spec| spec.data_source.as_ref());
    claim.note(annotations::RESTORE).is_some() && source.is_some_and(|source| source.kind == "VolumeSnapshot")
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
    let marks = [
        annotations::RESTORE,
        annotations::VR_RETAINED,
        annotations::VOLSYNC_RETAINED,
        annotations::ORPHANED_FROM,
    ];
    marks.iter().any(|marker| volume.note(marker).is_some())
}
