//! What a new volume is filled with: nothing, a copy of a volume of the same node, or a backup, which goes anywhere.

use crate::handle::Handle;
use crate::provision::words::{
    annotation, claim_of, csi_of, is_going, is_restoring, mode_of, name, storage, uid, volume_id,
};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::topolvm::LogicalVolume;
use std::sync::Arc;

/// On a content: set by the administrator; "true" lets a volume of the other mode be made from it.
pub const ALLOW_MODE_CHANGE: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";

/// What a claim wants to be filled from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace, where it is named.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// What is known of it.
#[derive(Debug, Clone, Default)]
pub struct SourceView {
    /// The VolumeSnapshot.
    pub snapshot: Option<Arc<VolumeSnapshot>>,
    /// The content that it is bound to.
    pub content: Option<Arc<VolumeSnapshotContent>>,
    /// The claim to clone.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// The volume of that claim.
    pub volume: Option<Arc<PersistentVolume>>,
    /// The LogicalVolume that holds the bytes, if it is in this cluster.
    pub logical: Option<Arc<LogicalVolume>>,
}

/// What a new volume is filled with.
#[derive(Debug, Clone)]
pub enum Filling {
    /// Nothing.
    Empty,
    /// A copy of this volume, on its node and in its device class.
    Copy {
        /// The volume.
        of: Arc<LogicalVolume>,
        /// Bytes it must have at least.
        least: u64,
    },
    /// A backup, on any node.
    Backup {
        /// Where it is.
        handle: Handle,
        /// Bytes it must have at least.
        least: u64,
    },
}

/// Why a volume cannot be filled now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfilled {
    /// Somebody else fills claims with such a source.
    Elsewhere(String),
    /// It is not there or not ready yet.
    NotReady(String),
    /// It cannot be done as it is asked for.
    Refused(String),
}

/// What a claim wants to be filled from, if anything.
pub fn wish(claim: &PersistentVolumeClaim) -> Option<Wish> {
    let spec = claim.spec.as_ref()?;
    if let Some(reference) = &spec.data_source_ref {
        return Some(Wish {
            group: reference.api_group.clone().unwrap_or_default(),
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        });
    }
    let reference = spec.data_source.as_ref()?;
    Some(Wish {
        group: reference.api_group.clone().unwrap_or_default(),
        kind: reference.kind.clone(),
        namespace: None,
        name: reference.name.clone(),
    })
}

/// What a claim is filled with.
pub fn filling(claim: &PersistentVolumeClaim, view: &SourceView, driver: &str) -> Result<Filling, Unfilled> {
    let Some(wish) = wish(claim) else { return Ok(Filling::Empty) };
    let own = claim.metadata.namespace.as_deref();
    let known = matches!(
        (&*wish.group, &*wish.kind),
        (lifeboat_api::snapshot::GROUP, "VolumeSnapshot") | ("", "PersistentVolumeClaim")
    );
    if known && wish.namespace.as_deref().is_some_and(|namespace| Some(namespace) != own) {
        return Err(Unfilled::Refused(format!(
            "the data source {}/{} is in another namespace, which is not supported",
            wish.namespace.unwrap_or_default(),
            wish.name
        )));
    }
    match (&*wish.group, &*wish.kind) {
        (lifeboat_api::snapshot::GROUP, "VolumeSnapshot") => of_snapshot(claim, &wish.name, view, driver),
        ("", "PersistentVolumeClaim") => of_claim(claim, &wish.name, view, driver),
        (group, kind) => Err(Unfilled::Elsewhere(format!("{kind}.{group}").trim_end_matches('.').to_owned())),
    }
}

fn of_snapshot(
    claim: &PersistentVolumeClaim,
    wanted: &str,
    view: &SourceView,
    driver: &str,
) -> Result<Filling, Unfilled> {
    let not_ready = |what: String| Err(Unfilled::NotReady(what));
    let Some(snapshot) = view.snapshot.as_deref() else {
        return not_ready(format!("VolumeSnapshot {wanted:?} does not exist"));
    };
    if is_going(&snapshot.metadata) {
        return Err(Unfilled::Refused(format!("VolumeSnapshot {wanted:?} is being deleted")));
    }
    let status = snapshot.status.as_ref();
    if status.and_then(|status| status.ready_to_use) != Some(true) {
        let error = status.and_then(|status| status.error.as_ref()?.message.clone());
        let detail = error.map_or_else(String::new, |error| format!(": {error}"));
        return not_ready(format!("VolumeSnapshot {wanted:?} is not ready to use{detail}"));
    }
    let Some(content) = view.content.as_deref() else {
        return not_ready(format!("the content of VolumeSnapshot {wanted:?} does not exist"));
    };
    let back = &content.spec.volume_snapshot_ref;
    if back.uid.as_deref() != Some(uid(snapshot)) || back.name.as_deref() != Some(wanted) {
        return Err(Unfilled::Refused(format!(
            "VolumeSnapshotContent {:?} is not bound to VolumeSnapshot {wanted:?}",
            name(content)
        )));
    }
    if content.spec.driver != driver {
        return Err(Unfilled::Refused(format!(
            "VolumeSnapshot {wanted:?} is of driver {:?}, not of {driver:?}",
            content.spec.driver
        )));
    }
    let mode = content.spec.source_volume_mode.as_deref();
    let may_change = annotation(&content.metadata, ALLOW_MODE_CHANGE) == Some("true");
    if mode.is_some_and(|mode| mode != mode_of(claim)) && !may_change {
        return Err(Unfilled::Refused(format!(
            "VolumeSnapshot {wanted:?} was taken of a {} volume, the claim asks for a {} volume",
            mode.unwrap_or_default(),
            mode_of(claim)
        )));
    }
    let content_status = content.status.as_ref();
    let handle = content_status.and_then(|status| status.snapshot_handle.as_deref()).unwrap_or_default();
    let handle: Handle = match handle.parse() {
        Ok(handle) => handle,
        Err(error) => {
            return Err(Unfilled::Refused(format!("VolumeSnapshotContent {:?}: {error}", name(content))));
        }
    };
    let least = content_status.and_then(|status| status.restore_size).unwrap_or_default();
    let least = u64::try_from(least).unwrap_or_default();
    match (handle, view.logical.as_ref()) {
        (handle @ Handle::Remote { .. }, _) => Ok(Filling::Backup { handle, least }),
        (Handle::Local(_), Some(of)) => copy(of, least),
        (Handle::Local(id), None) => {
            not_ready(format!("the LogicalVolume {id} of VolumeSnapshot {wanted:?} does not exist"))
        }
    }
}

fn of_claim(
    claim: &PersistentVolumeClaim,
    wanted: &str,
    view: &SourceView,
    driver: &str,
) -> Result<Filling, Unfilled> {
    let not_ready = |what: String| Err(Unfilled::NotReady(what));
    let Some(source) = view.claim.as_deref() else {
        return not_ready(format!("claim {wanted:?} does not exist"));
    };
    if is_going(&source.metadata) {
        return Err(Unfilled::Refused(format!("claim {wanted:?} is being deleted")));
    }
    if mode_of(source) != mode_of(claim) {
        return Err(Unfilled::Refused(format!(
            "claim {wanted:?} is of mode {}, not {}",
            mode_of(source),
            mode_of(claim)
        )));
    }
    let bound = source.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    let Some(volume) = view.volume.as_deref().filter(|_| bound) else {
        return not_ready(format!("claim {wanted:?} is not bound yet"));
    };
    if claim_of(volume).is_none_or(|(_, uid_of)| uid_of != uid(source)) {
        return not_ready(format!("claim {wanted:?} is not bound yet"));
    }
    if csi_of(volume).is_none_or(|(by, _)| by != driver) {
        return Err(Unfilled::Refused(format!("the volume of claim {wanted:?} is not of driver {driver:?}")));
    }
    let least = storage(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref())).unwrap_or_default();
    match view.logical.as_ref() {
        Some(of) if is_restoring(of) => {
            not_ready(format!("claim {wanted:?} is still being restored from a backup"))
        }
        Some(of) => copy(of, least),
        None => not_ready(format!("the LogicalVolume of claim {wanted:?} does not exist")),
    }
}

fn copy(of: &Arc<LogicalVolume>, least: u64) -> Result<Filling, Unfilled> {
    if is_going(&of.metadata) {
        return Err(Unfilled::Refused(format!(
            "the LogicalVolume {} of the data source is being deleted",
            name(&**of)
        )));
    }
    if volume_id(of).is_none() {
        return Err(Unfilled::NotReady(format!(
            "the LogicalVolume {} of the data source does not exist on its node yet",
            name(&**of)
        )));
    }
    Ok(Filling::Copy { of: of.clone(), least })
}
