//! Finding what to restore: the newest complete manifest over all stores that can be reached.

use futures::FutureExt;
use futures::future::join_all;

use super::reach::Reach;
use super::{Observed, Stores, observe, orphan};
use crate::decide::newest::{Candidate, buried, candidates};
use crate::decide::ramen::{age, flaw, wrote_after};
use crate::decide::shelf::Shelf;
use crate::key::Spot;
use crate::{Epoch, Error, Fault, Flaw, Group, Listed, Manifest, Orphan, Record, RecordId, Records};

/// What was found.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an empty answer is not a success: whoever asked has to decide"]
pub enum Found {
    /// A complete set, vouched for by a manifest. It may be empty: then the manifest says that there was nothing.
    Manifest {
        /// The manifest.
        manifest: Manifest,
        /// Its records, every one read and checked.
        records: Records,
        /// The profile whose manifest it is.
        store: String,
    },
    /// A set that Ramen left, with no manifest anywhere that could be used or after the newest of them.
    Ramen {
        /// Its records.
        records: Records,
        /// The profile that has them.
        store: String,
    },
    /// The group was deleted in this epoch, and nothing newer is there.
    Deleted {
        /// In which epoch.
        epoch: Epoch,
    },
    /// Nothing at all in the stores that answered. Those that did not are named beside it.
    Empty,
    /// Something is there, and nothing of it is whole.
    Unreadable,
}

/// The highest epoch that any store shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The epoch.
    pub epoch: Epoch,
    /// The profile that shows it.
    pub store: String,
    /// The cluster that holds it, where that can be read.
    pub by: Option<String>,
}

/// What one store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Manifests, of any epoch.
    pub manifests: usize,
    /// Records under Ramen's keys.
    pub records: usize,
    /// Objects of captures in Velero's layout.
    pub kube_objects: usize,
}

/// One store's part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The profile.
    pub store: String,
    /// What it has, or why it was not reached.
    pub answer: Result<Reached, Error>,
}

/// The answer to a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// What was found.
    pub found: Found,
    /// Which stores were reached and which were not.
    pub stores: Vec<Seen>,
    /// What could not be used: damaged or missing objects, each with its key.
    pub damage: Vec<Error>,
    /// What is wrong with sets that Ramen left, by profile.
    pub flaws: Vec<(String, Flaw)>,
    /// Manifests that are newer than what was found, and not complete.
    pub passed_over: Vec<(String, Epoch)>,
    /// The highest epoch that any store shows; higher than that of what was found where a primary had no time to write.
    pub held: Option<Held>,
    /// The mark of the group where it was orphaned, and nobody has been primary since.
    pub orphan: Option<Orphan>,
}

impl Search {
    /// Whether every store answered.
    #[must_use]
    pub fn reached_all(&self) -> bool {
        self.stores.iter().all(|seen| seen.answer.is_ok())
    }

    /// Whether it is certain that nothing was ever written: all stores answered, and all are empty.
    #[must_use]
    pub fn is_certainly_new(&self) -> bool {
        self.found == Found::Empty && !self.stores.is_empty() && self.reached_all()
    }
}

/// Sets that Ramen left, at most this many objects each.
const MOST: usize = 100_000;

impl Stores {
    /// Searches all stores for what to restore.
    pub async fn newest(&self, group: &Group) -> Search {
        let reaches = self.reaches(group);
        let observed = observe(&reaches, None).await;
        let reached = reached(&reaches, &observed);
        let mut search = Search {
            found: Found::Empty,
            stores: self.seen(&observed),
            damage: Vec::new(),
            flaws: Vec::new(),
            passed_over: Vec::new(),
            held: held(&reached).await,
            orphan: orphan::found(&reached).await,
        };
        let candidates =
            candidates(reached.iter().enumerate().map(|(index, (_, shelf))| (index, &shelf.ledger)));
        for candidate in &candidates {
            match complete(&reached, candidate, &mut search.damage).await {
                Some((manifest, records, store)) => {
                    search.found = match since(&reached, &manifest, &mut search.flaws).await {
                        Some((records, store)) => Found::Ramen { records, store },
                        None => Found::Manifest { manifest, records, store },
                    };
                    return search;
                }
                None => search.passed_over.extend(
                    candidate.stores.iter().map(|store| (reached[*store].0.name.to_owned(), candidate.epoch)),
                ),
            }
        }
        let buried = buried(reached.iter().map(|(_, shelf)| &shelf.ledger));
        if let Some(epoch) = buried.filter(|_| candidates.is_empty()) {
            search.found = Found::Deleted { epoch };
            return search;
        }
        if let Some((records, store)) = ramens(&reached, &mut search.damage, &mut search.flaws).await {
            search.found = Found::Ramen { records, store };
        } else if reached.iter().any(|(_, shelf)| is_something(shelf)) {
            search.found = Found::Unreadable;
        }
        search
    }

    fn seen(&self, observed: &[Result<Observed, Error>]) -> Vec<Seen> {
        let answers = self.profiles.iter().zip(observed);
        answers
            .map(|(profile, observed)| Seen {
                store: profile.name.clone(),
                answer: observed.as_ref().map_err(Clone::clone).map(|observed| Reached {
                    manifests: observed.shelf.ledger.manifests.len(),
                    records: observed.shelf.records.len() + observed.shelf.old_claims.len(),
                    kube_objects: observed.shelf.kube_objects,
                }),
            })
            .collect()
    }
}

/// The stores that answered, each with what it has.
pub(crate) fn reached<'r, 'a>(
    reaches: &'r [Result<Reach<'a>, Error>],
    observed: &'r [Result<Observed, Error>],
) -> Vec<(&'r Reach<'a>, &'r Shelf)> {
    let pairs = reaches.iter().zip(observed);
    pairs
        .filter_map(|(reach, observed)| Some((reach.as_ref().ok()?, &observed.as_ref().ok()?.shelf)))
        .collect()
}

fn is_something(shelf: &Shelf) -> bool {
    shelf.has_ramens() || shelf.kube_objects > 0 || shelf.ledger.highest().is_some()
}

async fn held(reached: &[(&Reach<'_>, &Shelf)]) -> Option<Held> {
    let highest = reached.iter().filter_map(|(reach, shelf)| Some((shelf.ledger.highest()?, reach, shelf)));
    let (epoch, reach, shelf) = highest.max_by_key(|(epoch, _, _)| *epoch)?;
    let by = match shelf.ledger.witness(epoch) {
        Some(witness) => reach.holder(&witness).await.ok().map(|(holder, _)| holder.to_string()),
        None => None,
    };
    Some(Held { epoch, store: reach.name.to_owned(), by })
}

/// Reads a manifest and everything that it names. A content is as good from one store as from another: its checksum says so.
async fn complete(
    reached: &[(&Reach<'_>, &Shelf)],
    candidate: &Candidate,
    damage: &mut Vec<Error>,
) -> Option<(Manifest, Records, String)> {
    for store in &candidate.stores {
        let home = reached[*store].0;
        let manifest = match home.manifest(candidate.epoch, candidate.generation).await {
            Ok(manifest) => manifest,
            Err(error) => {
                damage.push(error);
                continue;
            }
        };
        let others = reached.iter().map(|(reach, _)| *reach).filter(|reach| !std::ptr::eq(*reach, home));
        let sources: Vec<_> = std::iter::once(home).chain(others).collect();
        let reads = manifest.records.iter().map(|(id, listed)| record(&sources, id, *listed).boxed());
        let reads = home.together(reads.collect()).await;
        let mut records = Records::new();
        let mut whole = true;
        for (read, faults) in reads {
            damage.extend(faults);
            match read {
                Some(record) => drop(records.insert(record.id().clone(), record)),
                None => whole = false,
            }
        }
        if whole {
            return Some((manifest, records, home.name.to_owned()));
        }
    }
    None
}

/// Reads one record from the first place that has it whole. A removal that a store carries out after its deadline may take a content that is named again;
/// the same bytes lie under Ramen's key.
async fn record(sources: &[&Reach<'_>], id: &RecordId, listed: Listed) -> (Option<Record>, Vec<Error>) {
    let mut faults = Vec::new();
    for spot in [Spot::Blob(listed.sha256), Spot::Record(id.clone())] {
        for source in sources {
            match source.content(&spot, listed).await {
                Ok(packed) => match Record::read(source.group, id.clone(), packed) {
                    Ok(record) => return (Some(record), faults),
                    Err(fault) => faults.push(source.damaged(&spot, fault)),
                },
                Err(error) => faults.push(error),
            }
        }
    }
    (None, faults)
}

/// Whether any store has a record's content, listed as one or, whole, under Ramen's key.
pub(crate) async fn lies(reached: &[(&Reach<'_>, &Shelf)], id: &RecordId, listed: Listed) -> bool {
    if reached.iter().any(|(_, shelf)| shelf.blobs.get(&listed.sha256) == Some(&listed.size)) {
        return true;
    }
    let spot = Spot::Record(id.clone());
    for (reach, _) in reached.iter().filter(|(_, shelf)| shelf.records.get(id) == Some(&listed.size)) {
        if reach.content(&spot, listed).await.is_ok() {
            return true;
        }
    }
    false
}

/// The newest set that Ramen left in any store, among those without a flaw.
pub(crate) async fn ramens(
    reached: &[(&Reach<'_>, &Shelf)],
    damage: &mut Vec<Error>,
    flaws: &mut Vec<(String, Flaw)>,
) -> Option<(Records, String)> {
    let with = reached.iter().filter(|(_, shelf)| shelf.has_ramens());
    let sets =
        join_all(with.map(|(reach, shelf)| async move { (reach.name, set(reach, shelf).await) })).await;
    let mut best: Option<(Records, String)> = None;
    for (store, (records, faults)) in sets {
        let broken = !faults.is_empty();
        damage.extend(faults);
        if let Some(flaw) = flaw(&records) {
            flaws.push((store.to_owned(), flaw));
        } else if !broken && best.as_ref().is_none_or(|(other, _)| age(&records) > age(other)) {
            best = Some((records, store.to_owned()));
        }
    }
    best
}

/// What Ramen has written since a manifest, where it has: a primary of Ramen's writes no manifest, and a claim that was added under it is in none.
pub(crate) async fn since(
    reached: &[(&Reach<'_>, &Shelf)],
    manifest: &Manifest,
    flaws: &mut Vec<(String, Flaw)>,
) -> Option<(Records, String)> {
    let newest = (manifest.epoch, manifest.generation);
    let with = reached.iter().filter(|(_, shelf)| shelf.ledger.manifests.contains(&newest));
    let changed = join_all(with.map(|(reach, shelf)| async move {
        let size = shelf.records.get(&RecordId::Group)?;
        let packed = reach.read_sized(&Spot::Record(RecordId::Group), *size).await.ok()?;
        wrote_after(manifest, &packed).then_some((*reach, *shelf))
    }));
    let changed: Vec<_> = changed.await.into_iter().flatten().collect();
    ramens(&changed, &mut Vec::new(), flaws).await
}

/// Reads every record that Ramen left in one store; one that cannot be read stops no other.
pub(crate) async fn set(reach: &Reach<'_>, shelf: &Shelf) -> (Records, Vec<Error>) {
    // The newer key of a claim goes before the older one.
    let old = shelf.old_claims.iter().filter(|(id, _)| !shelf.records.contains_key(id));
    let old = old.map(|(id, size)| (id, Spot::OldClaim(id.clone()), *size));
    let new = shelf.records.iter().map(|(id, size)| (id, Spot::Record(id.clone()), *size));
    let read = async |id: RecordId, spot: Spot, size: u64| {
        let packed = reach.read_sized(&spot, size).await?;
        Record::read(reach.group, id, packed).map_err(|fault| reach.damaged(&spot, fault))
    };
    let reads: Vec<_> =
        new.chain(old).take(MOST).map(|(id, spot, size)| read(id.clone(), spot, size).boxed()).collect();
    let reads: Vec<Result<Record, Error>> = reach.together(reads).await;
    let mut records = Records::new();
    let mut faults = Vec::new();
    for read in reads {
        match read {
            Ok(record) => drop(records.insert(record.id().clone(), record)),
            Err(error) => faults.push(error),
        }
    }
    // Several at once finish in any order; what is told does not depend on it.
    faults.sort_by_key(ToString::to_string);
    if shelf.records.len() + shelf.old_claims.len() > MOST {
        faults.push(reach.damaged(&Spot::Record(RecordId::Group), Fault::TooLong));
    }
    (records, faults)
}
