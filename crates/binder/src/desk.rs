//! What is agreed inside this process and not yet on the server: who is just writing a volume, which volume is offered to
//! which claim, and which claims have been read from the server. All of it can be lost at any time: the server's versions guard
//! every write, and offers are made again.

use jiff::Timestamp;
use lifeboat_engine::ObjectKey;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An offer of a volume to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The claim that was woken.
    pub claim: ObjectKey,
    /// When.
    pub made: Timestamp,
}

/// A claim as the server knew it: its uid and version, or that there is none.
pub type Sighting = Option<(String, String)>;

#[derive(Default)]
struct Papers {
    /// Volumes being written, and for which claim; `None` for the volume's own pass.
    held: BTreeMap<String, Option<ObjectKey>>,
    offers: BTreeMap<String, Offer>,
    offered: BTreeMap<ObjectKey, String>,
    sightings: BTreeMap<String, Sighting>,
    told: BTreeMap<ObjectKey, String>,
}

/// The desk that claims and volumes share.
#[derive(Clone, Default)]
pub struct Desk {
    papers: Arc<Mutex<Papers>>,
}

/// A volume that nobody else of this process writes as long as this lives.
pub struct Hold {
    desk: Desk,
    volume: String,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.desk.papers.lock().held.remove(&self.volume);
    }
}

impl Desk {
    /// Takes a volume in hand, for a claim or for itself; `None` where somebody else has it.
    pub fn hold(&self, volume: &str, by: Option<ObjectKey>) -> Option<Hold> {
        let mut papers = self.papers.lock();
        if papers.held.contains_key(volume) {
            return None;
        }
        papers.held.insert(volume.to_owned(), by);
        Some(Hold { desk: self.clone(), volume: volume.to_owned() })
    }

    /// Whether somebody has a volume in hand.
    pub fn is_held(&self, volume: &str) -> bool {
        self.papers.lock().held.contains_key(volume)
    }

    /// Offers a volume to a claim; what was offered of either before is off.
    pub fn offer(&self, volume: &str, offer: Offer) {
        let mut papers = self.papers.lock();
        if let Some(before) = papers.offers.remove(volume) {
            papers.offered.remove(&before.claim);
        }
        if let Some(before) = papers.offered.insert(offer.claim.clone(), volume.to_owned()) {
            papers.offers.remove(&before);
        }
        papers.offers.insert(volume.to_owned(), offer);
    }

    /// The offer of a volume.
    pub fn offer_of(&self, volume: &str) -> Option<Offer> {
        self.papers.lock().offers.get(volume).cloned()
    }

    /// The volume offered to a claim.
    pub fn offered_to(&self, claim: &ObjectKey) -> Option<String> {
        self.papers.lock().offered.get(claim).cloned()
    }

    /// A claim wants nothing any more; gives the volume that was offered to it.
    pub fn decline(&self, claim: &ObjectKey) -> Option<String> {
        let mut papers = self.papers.lock();
        let volume = papers.offered.remove(claim)?;
        papers.offers.remove(&volume);
        Some(volume)
    }

    /// Notes what the server knew of the claim of a volume.
    pub fn note(&self, volume: &str, sighting: Sighting) {
        self.papers.lock().sightings.insert(volume.to_owned(), sighting);
    }

    /// What the server knew of the claim of a volume when it was last asked.
    pub fn sighting(&self, volume: &str) -> Option<Sighting> {
        self.papers.lock().sightings.get(volume).cloned()
    }

    /// What was last told a claim about volumes that nearly fit it.
    pub fn told(&self, claim: &ObjectKey) -> Option<String> {
        self.papers.lock().told.get(claim).cloned()
    }

    /// Notes what a claim is told about volumes that nearly fit it.
    pub fn tell(&self, claim: &ObjectKey, sentence: String) {
        self.papers.lock().told.insert(claim.clone(), sentence);
    }

    /// A claim is gone.
    pub fn forget_claim(&self, claim: &ObjectKey) {
        self.papers.lock().told.remove(claim);
    }

    /// A volume is gone.
    pub fn forget(&self, volume: &str) {
        let mut papers = self.papers.lock();
        papers.sightings.remove(volume);
        if let Some(offer) = papers.offers.remove(volume) {
            papers.offered.remove(&offer.claim);
        }
    }
}
