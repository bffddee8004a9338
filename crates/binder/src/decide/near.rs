//! Which volumes nearly fit a claim, and what each of them lacks: told in an event where a claim waits, and at length by
//! [`explain`](crate::explain).

use crate::decide::matching::{Lack, Place, lacks};
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::words::{ClaimWords, VolumeWords};
use lifeboat_engine::Index;
use std::cell::{Cell, RefCell};

/// A volume that a claim cannot have, and what it would need.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Miss {
    /// Its name.
    pub volume: String,
    /// All that it lacks, each in a few words.
    pub lacks: Vec<String>,
}

/// What a free volume lacks, with figures.
pub fn miss(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Miss {
    let lacks = lacks(volume, claim);
    Miss {
        volume: volume.name().to_owned(),
        lacks: lacks.iter().map(|lack| words(lack, volume, claim)).collect(),
    }
}

fn words(lack: &Lack, volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> String {
    let (has, wants) = (VolumeWords::sort(volume), ClaimWords::sort(claim));
    let mode = |block: bool| if block { "Block" } else { "Filesystem" };
    match lack {
        Lack::Size => format!("too small, {} of {}", volume.capacity(), claim.request()),
        Lack::Class if has.class.is_empty() => "of no class".to_owned(),
        Lack::Class => format!("of class {:?}", has.class),
        Lack::Attributes => format!("of attributes {:?}, not {:?}", has.attributes, wants.attributes),
        Lack::VolumeMode => format!("{}, not {}", mode(has.block), mode(wants.block)),
        Lack::AccessMode => {
            let (has, wants) = (VolumeWords::modes(volume), ClaimWords::modes(claim));
            format!("lacks the access mode {}", wants.without(has))
        }
        Lack::Selector => "its labels are not those selected".to_owned(),
        Lack::Deleting(_) => "being deleted".to_owned(),
    }
}

/// Free volumes that lack but one thing, a few of them, as one sentence; `None` where there are none. Looks at no more than a
/// bounded number.
pub fn near_misses(free: &Index<Place, PersistentVolume>, claim: &PersistentVolumeClaim) -> Option<String> {
    const LOOKED_AT: usize = 200;
    const TOLD: usize = 3;
    let (looked, misses) = (Cell::new(0), RefCell::new(Vec::new()));
    free.find(.., |volume| {
        if let Miss { volume, lacks } = miss(volume, claim)
            && let [lack] = lacks.as_slice()
        {
            misses.borrow_mut().push(format!("{volume} ({lack})"));
        }
        looked.set(looked.get() + 1);
        looked.get() >= LOOKED_AT || misses.borrow().len() >= TOLD
    });
    let misses = misses.into_inner();
    (!misses.is_empty()).then(|| format!("no free volume fits; nearest: {}", misses.join(", ")))
}
