//! Which volume fits a claim: the smallest of those with the fewest access modes, as Kubernetes chooses, ties going to the
//! oldest, then by name. Volumes reserved for the claim come before all others.
//!
//! Free volumes stand on shelves, ordered so that the first one large enough is found without looking at the rest; only a
//! label selector makes it walk.

use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::words::{ClaimWords, Modes, Sort, VolumeWords, text};
use jiff::Timestamp;
use lifeboat_engine::Index;
use lifeboat_schema::quantity::Quantity;
use lifeboat_schema::selector::LabelSelector;
use std::fmt;
use std::sync::Arc;

/// Where a free volume stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    sort: Sort,
    modes: Modes,
    capacity: Quantity,
    created: Timestamp,
}

/// Where a volume stands, if it is free: unclaimed, not being deleted, and Available or so new that it has no phase yet.
pub fn place(volume: &PersistentVolume) -> Option<Place> {
    let fresh = matches!(volume.phase(), "Available" | "Pending" | "");
    let free = fresh && volume.claim_ref().is_none() && volume.metadata.deletion_timestamp.is_none();
    free.then(|| Place {
        sort: volume.sort(),
        modes: VolumeWords::modes(volume),
        capacity: volume.capacity(),
        created: created(volume),
    })
}

fn created(volume: &PersistentVolume) -> Timestamp {
    volume.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0)
}

/// A claim's selector, parsed; one that cannot be parsed matches nothing.
pub fn selects(claim: &PersistentVolumeClaim) -> impl Fn(&PersistentVolume) -> bool + use<> {
    let selector = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let parsed = selector.map(|selector| {
        let json = serde_json::to_value(selector).unwrap_or_default();
        LabelSelector::from_json(&json).ok()
    });
    move |volume| match &parsed {
        None => true,
        Some(None) => false,
        Some(Some(selector)) => {
            selector.matches(&serde_json::to_value(&volume.metadata.labels).unwrap_or_default())
        }
    }
}

/// The best free volume for a claim among those `wanted`.
pub fn best(
    free: &Index<Place, PersistentVolume>,
    claim: &PersistentVolumeClaim,
    wanted: impl Fn(&PersistentVolume) -> bool,
) -> Option<Arc<PersistentVolume>> {
    let (sort, request, selected) = (claim.sort(), claim.request(), selects(claim));
    let at = |modes, capacity, created| Place { sort: sort.clone(), modes, capacity, created };
    let most = Quantity::parse("1e30").expect("invariant: the literal is a quantity");
    ClaimWords::modes(claim).supersets().find_map(|equals| {
        let firsts = equals.into_iter().filter_map(|modes| {
            let shelf = at(modes, request.clone(), Timestamp::MIN)..=at(modes, most.clone(), Timestamp::MAX);
            free.find(shelf, |volume| selected(volume) && wanted(volume))
        });
        firsts.min_by_key(|volume| (volume.capacity(), created(volume), volume.name().to_owned()))
    })
}

/// The volume reserved for a claim that it is bound to: one that already carries its uid, then as among free ones. What is
/// reserved need not have the claim's class or labels, but must be able to serve it.
pub fn reserved(
    volumes: &[Arc<PersistentVolume>],
    claim: &PersistentVolumeClaim,
) -> Option<Arc<PersistentVolume>> {
    let ours = volumes.iter().filter(|volume| volume.is_for(claim) && cannot_serve(volume, claim).is_none());
    let rank = |volume: &&Arc<PersistentVolume>| {
        let uid = text(volume.claim_ref().and_then(|reference| reference.uid.as_ref()));
        (uid.is_empty(), VolumeWords::modes(&***volume).count(), volume.capacity(), volume.name().to_owned())
    };
    ours.min_by_key(rank).cloned()
}

/// What a volume lacks for a claim, in Kubernetes' words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Lack {
    /// It is being deleted.
    Deleting(String),
    /// It is smaller than the request.
    Size,
    /// It has another class.
    Class,
    /// It has other attributes.
    Attributes,
    /// One is a block device and the other a file system.
    VolumeMode,
    /// It lacks an access mode.
    AccessMode,
    /// Its labels are not those selected.
    Selector,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleting(name) => write!(f, "the volume is marked for deletion {name:?}"),
            Self::Size => f.write_str("requested PV is too small"),
            Self::Class => f.write_str("storageClassName does not match"),
            Self::Attributes => f.write_str("volumeAttributesClassName does not match"),
            Self::VolumeMode => f.write_str("incompatible volumeMode"),
            Self::AccessMode => f.write_str("incompatible accessMode"),
            Self::Selector => f.write_str("labels do not match the selector"),
        }
    }
}

/// All that a volume lacks for a claim, in the order in which Kubernetes looks.
pub fn lacks(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Vec<Lack> {
    let (has, wants) = (VolumeWords::sort(volume), ClaimWords::sort(claim));
    let modes = VolumeWords::modes(volume).contain(ClaimWords::modes(claim));
    let deleting = volume.metadata.deletion_timestamp.is_some();
    let found = [
        (deleting, Lack::Deleting(volume.name().to_owned())),
        (volume.capacity() < claim.request(), Lack::Size),
        (has.class != wants.class, Lack::Class),
        (has.attributes != wants.attributes, Lack::Attributes),
        (has.block != wants.block, Lack::VolumeMode),
        (!modes, Lack::AccessMode),
        (!selects(claim)(volume), Lack::Selector),
    ];
    found.into_iter().filter(|(lacking, _)| *lacking).map(|(_, lack)| lack).collect()
}

/// The first thing that a volume lacks for a claim that names it; selectors do not count then.
pub fn lack(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<Lack> {
    lacks(volume, claim).into_iter().find(|lack| *lack != Lack::Selector)
}

/// Why a volume that is reserved for a claim cannot be bound to it. Whoever reserved it may overrule the class.
pub fn cannot_serve(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<Lack> {
    let (has, wants) = (VolumeWords::sort(volume), ClaimWords::sort(claim));
    if volume.metadata.deletion_timestamp.is_some() {
        Some(Lack::Deleting(volume.name().to_owned()))
    } else if has.block != wants.block {
        Some(Lack::VolumeMode)
    } else if volume.capacity() < claim.request() {
        Some(Lack::Size)
    } else if has.attributes != wants.attributes {
        Some(Lack::Attributes)
    } else if !VolumeWords::modes(volume).contain(ClaimWords::modes(claim)) {
        Some(Lack::AccessMode)
    } else {
        None
    }
}
