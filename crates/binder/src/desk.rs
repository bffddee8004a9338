//! What is agreed inside this process and not yet on the server: who is just writing a volume, which volume is offered to
//! which claim, and which claims have been read from the server. All of it can be lost at any time: the server's versions guard
//! every write, and offers are made again.

use crate::lean::PersistentVolumeClaim;
use crate::words::{ClaimWords, Sort};
use jiff::Timestamp;
use lifeboat_engine::{Cache, Change, ObjectKey};
use lifeboat_schema::quantity::Quantity;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
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

/// What a claim without a volume wants, so that the largest come first.
pub type Wish = (Sort, Reverse<Quantity>);

/// What a claim wants, if it is without a volume.
pub fn wish(claim: &PersistentVolumeClaim) -> Option<Wish> {
    claim.waits().then(|| (claim.sort(), Reverse(claim.request())))
}

#[derive(Default)]
struct Papers {
    /// Volumes being written, and for which claim; `None` for the volume's own pass.
    held: BTreeMap<String, Option<ObjectKey>>,
    offers: BTreeMap<String, Offer>,
    offered: BTreeMap<ObjectKey, String>,
    wishes: BTreeMap<ObjectKey, Wish>,
    /// The wishes of those who have been offered nothing.
    unoffered: BTreeSet<(Wish, ObjectKey)>,
    /// What the server said of a volume's claim, and which claim's uid the volume carried then.
    sightings: BTreeMap<String, (String, Sighting)>,
    told: BTreeMap<ObjectKey, String>,
    /// When a claim last took a volume.
    taken: Option<Timestamp>,
}

impl Papers {
    fn wishes_again(&mut self, claim: &ObjectKey) {
        if let Some(wish) = self.wishes.get(claim) {
            self.unoffered.insert((wish.clone(), claim.clone()));
        }
    }

    fn wishes_no_more(&mut self, claim: &ObjectKey) {
        if let Some(wish) = self.wishes.get(claim) {
            self.unoffered.remove(&(wish.clone(), claim.clone()));
        }
    }

    /// Takes back what was offered to a claim.
    fn take_back(&mut self, claim: &ObjectKey) -> Option<String> {
        let volume = self.offered.remove(claim)?;
        self.offers.remove(&volume);
        self.wishes_again(claim);
        Some(volume)
    }

    fn heard(&mut self, change: &Change<PersistentVolumeClaim>) {
        let key = change.key();
        self.wishes_no_more(&key);
        self.wishes.remove(&key);
        if let Some(wish) = change.new.as_deref().and_then(wish) {
            self.wishes.insert(key.clone(), wish);
            if !self.offered.contains_key(&key) {
                self.wishes_again(&key);
            }
        }
    }
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

    /// A desk that hears of claims from now on.
    pub fn over(claims: &Cache<PersistentVolumeClaim>) -> Self {
        let desk = Self::default();
        let papers = desk.papers.clone();
        claims.listen(move |change| papers.lock().heard(change));
        desk
    }

    /// The first claim, the largest first, that is offered nothing, wants just this, no more than `most`, and is `wanted`.
    pub fn unoffered(
        &self,
        sort: &Sort,
        most: Quantity,
        wanted: impl Fn(&ObjectKey) -> bool,
    ) -> Option<ObjectKey> {
        let papers = self.papers.lock();
        let from = ((sort.clone(), Reverse(most)), ObjectKey::new("", ""));
        let fitting = papers.unoffered.range(from..).take_while(|((of, _), _)| of == sort);
        fitting.map(|(_, claim)| claim).find(|claim| wanted(claim)).cloned()
    }

    /// Whether nothing is on offer.
    pub fn nothing_offered(&self) -> bool {
        self.papers.lock().offers.is_empty()
    }

    /// Offers a volume to a claim; what was offered of either before is off.
    pub fn offer(&self, volume: &str, offer: Offer) {
        let mut papers = self.papers.lock();
        if let Some(before) = papers.offers.get(volume).map(|before| before.claim.clone()) {
            papers.take_back(&before);
        }
        papers.take_back(&offer.claim);
        papers.wishes_no_more(&offer.claim);
        papers.offered.insert(offer.claim.clone(), volume.to_owned());
        papers.offers.insert(volume.to_owned(), offer);
    }

    /// A claim has just taken a volume.
    pub fn took(&self, at: Timestamp) {
        self.papers.lock().taken = Some(at);
    }

    /// When a claim last took a volume.
    pub fn taken(&self) -> Option<Timestamp> {
        self.papers.lock().taken
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
        self.papers.lock().take_back(claim)
    }

    /// Notes what the server knew of the claim whose uid a volume carries.
    pub fn note(&self, volume: &str, uid: &str, sighting: Sighting) {
        self.papers.lock().sightings.insert(volume.to_owned(), (uid.to_owned(), sighting));
    }

    /// What the server knew of the claim of a volume when it was last asked, if the volume carried this uid then. What was said
    /// of an earlier claim says nothing about this one: "no such claim" would release the volume of a claim that is just not seen yet.
    pub fn sighting(&self, volume: &str, uid: &str) -> Option<Sighting> {
        let papers = self.papers.lock();
        papers.sightings.get(volume).filter(|(of, _)| of == uid).map(|(_, sighting)| sighting.clone())
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
        if let Some(claim) = papers.offers.get(volume).map(|offer| offer.claim.clone()) {
            papers.take_back(&claim);
        }
    }
}
