//! Writing a change to all stores: what it amounts to, and each store's outcome. `keep` does it in one store.
//!
//! A crash between any two writes leaves the generation before in force, and the next pass goes on from what lies there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;

use super::reach::Reach;
use super::read::{lies, ramens, reached, set, since};
use super::{Observed, Stores, observe};
use crate::decide::admit::{Admission, to_write};
use crate::decide::newest::{buried, candidates};
use crate::decide::plan::{Author, Change, next, says};
use crate::decide::ramen::flaw;
use crate::decide::shelf::Shelf;
use crate::{ClusterId, Digest, Epoch, Error, Generation, Group, Listed, Manifest, Record, RecordId};

/// How sure to be that a store has what it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The list says so: every key is there with its length. What is written now is read back and its checksum compared, so that a change costs
    /// what it changes.
    Written,
    /// Every object is read back and its checksum compared; what is wrong is written again. After a start, after a failure and from time to time.
    ReadBack,
}

/// A change of a group's records.
#[derive(Clone, Debug)]
pub struct Writing {
    /// Whose records.
    pub group: Group,
    /// The epoch in which we are the primary.
    pub epoch: Epoch,
    /// This cluster.
    pub writer: ClusterId,
    /// The time now, by this cluster's clock.
    pub time: Timestamp,
    /// The highest generation that is remembered, such as from the group's status.
    pub after: Option<Generation>,
    /// Records that are new or may have changed. What is not named stays as it is.
    pub put: Vec<Record>,
    /// Records that go, named one by one.
    pub removed: BTreeSet<RecordId>,
    /// How sure to be.
    pub check: Check,
}

/// What a store has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The generation that is in force there.
    pub generation: Generation,
    /// How many objects were written or removed; none where everything was there already.
    pub changes: usize,
    /// Whether every object was read back, and not only what was written.
    pub read_back: bool,
    /// Whether the store can keep two primaries apart.
    pub fenced: bool,
    /// Keys of records that are in no manifest: left alone, but Ramen would restore them.
    pub foreign: Vec<String>,
    /// Why old generations were not swept, where that failed.
    pub sweep: Option<Error>,
}

/// One store's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The profile.
    pub store: String,
    /// What it has now, or why not.
    pub outcome: Result<Kept, Error>,
}

/// The outcome of a change, one for each store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a store that failed is told here and nowhere else"]
pub struct Written {
    /// The generation to remember.
    pub generation: Option<Generation>,
    /// Each store in the order of the profiles.
    pub stores: Vec<Told>,
}

impl Written {
    /// How many stores have it.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.stores.iter().filter(|told| told.outcome.is_ok()).count()
    }

    /// Whether at least one store was asked and every one has it.
    #[must_use]
    pub fn everywhere(&self) -> bool {
        !self.stores.is_empty() && self.kept() == self.stores.len()
    }
}

/// What all stores should have.
pub(super) struct Job<'j> {
    pub(super) author: Author<'j>,
    pub(super) time: Timestamp,
    pub(super) check: Check,
    pub(super) target: Manifest,
    pub(super) contents: BTreeMap<Digest, Bytes>,
    /// Whether it only takes over what Ramen has written, and the change is still to come.
    pub(super) adopts: bool,
}

impl Job<'_> {
    /// The manifest that all stores should have.
    pub(super) fn newest(&self) -> (Epoch, Generation) {
        (self.target.epoch, self.target.generation)
    }
}

impl Stores {
    /// Writes a change to all stores side by side.
    ///
    /// # Errors
    /// Only for what is wrong with the change itself; what happened in each store is in the outcome.
    pub async fn write(&self, writing: &Writing) -> Result<Written, Error> {
        let (written, adopted) = self.step(writing).await?;
        if adopted && written.generation.is_some() {
            return Ok(self.step(writing).await?.0);
        }
        Ok(written)
    }

    /// Writes a change, or what comes before it: the second says that what Ramen has written since our newest manifest is in one of ours now. The
    /// change may replace the group's record, by which alone that is known, and a death before its manifest would hide the rest.
    async fn step(&self, writing: &Writing) -> Result<(Written, bool), Error> {
        if self.profiles.is_empty() {
            return Err(Error::NoStores);
        }
        let reaches = self.reaches(&writing.group);
        let observed = observe(&reaches, Some(writing.epoch)).await;
        let author = Author { epoch: writing.epoch, writer: &writing.writer, fleet: self.fleet.as_ref() };
        if let Some(refused) = refusal(&reaches, &observed, author).await {
            let stores = self.profiles.iter().zip(&observed).map(|(profile, observed)| Told {
                store: profile.name.clone(),
                outcome: Err(observed.as_ref().err().unwrap_or(&refused).clone()),
            });
            return Ok((Written { generation: None, stores: stores.collect() }, false));
        }
        let job = self.job(writing, author, &reaches, &observed).await?;
        let sources: Vec<_> = reaches.iter().flatten().collect();
        let outcomes = join_all(reaches.iter().zip(&observed).map(|(reach, observed)| async {
            let (reach, observed) =
                (reach.as_ref().map_err(Clone::clone)?, observed.as_ref().map_err(Clone::clone)?);
            let late = || Error::OutOfTime {
                store: reach.name.to_owned(),
                what: "writing the records; the next pass goes on".into(),
            };
            timeout(self.settings.whole, reach.keep(observed, &job, &sources)).await.map_err(|_| late())?
        }))
        .await;
        let stores: Vec<_> = self
            .profiles
            .iter()
            .zip(outcomes)
            .map(|(profile, outcome)| Told { store: profile.name.clone(), outcome })
            .collect();
        let written = stores.iter().any(|told| told.outcome.is_ok());
        Ok((Written { generation: written.then_some(job.target.generation), stores }, job.adopts))
    }

    async fn job<'j>(
        &self,
        writing: &Writing,
        author: Author<'j>,
        reaches: &[Result<Reach<'_>, Error>],
        observed: &[Result<Observed, Error>],
    ) -> Result<Job<'j>, Error> {
        let reached = reached(reaches, observed);
        let mut contents: BTreeMap<Digest, Bytes> = BTreeMap::new();
        let mut take = |record: &Record| {
            contents.insert(record.listed().sha256, record.packed().clone());
            (record.id().clone(), record.listed())
        };
        let put: BTreeMap<RecordId, Listed> = writing.put.iter().map(&mut take).collect();
        let mut change = Change { put, removed: writing.removed.clone() };
        let newest = base(&reached).await;
        let since = match &newest {
            // Within an epoch nobody else writes.
            Some(newest) if newest.epoch < writing.epoch => since(&reached, newest, &mut Vec::new()).await,
            _ => None,
        };
        let adopts = since.is_some() && change != Change::default();
        if adopts {
            change = Change::default();
        }
        let before = match (&newest, since) {
            (_, Some((records, _))) => records.values().map(take).collect(),
            (Some(newest), None) => newest.records.clone(),
            (None, None) => adopted(&reached).await.iter().map(take).collect(),
        };
        let records = change.apply(&before)?;
        let after = writing.after.unwrap_or_default();
        let target = match newest {
            Some(newest) if says(&newest, author, &records, after) => newest,
            newest => {
                let seen = reached.iter().map(|(_, shelf)| shelf.ledger.generation()).max();
                let clock = u64::try_from(writing.time.as_millisecond()).unwrap_or_default();
                let lies = |id: &RecordId| {
                    let on =
                        |shelf: &Shelf| shelf.records.contains_key(id) || shelf.old_claims.contains_key(id);
                    reached.iter().any(|(_, shelf)| on(shelf))
                };
                let fleet =
                    author.fleet.or(newest.as_ref().and_then(|newest| newest.fleet.as_ref())).cloned();
                let earlier = newest.map(|newest| newest.removed).unwrap_or_default();
                let removed = earlier.into_iter().filter(lies).chain(change.removed);
                Manifest {
                    group: writing.group.clone(),
                    epoch: writing.epoch,
                    generation: next(seen.unwrap_or_default(), after, clock),
                    writer: writing.writer.clone(),
                    fleet,
                    time: writing.time,
                    removed: removed.filter(|id| !records.contains_key(id)).collect(),
                    records,
                }
            }
        };
        Ok(Job { author, time: writing.time, check: writing.check, target, contents, adopts })
    }
}

/// Whether any store shows that we are not, or no longer, the one who writes. Then nothing is written anywhere.
async fn refusal(
    reaches: &[Result<Reach<'_>, Error>],
    observed: &[Result<Observed, Error>],
    author: Author<'_>,
) -> Option<Error> {
    for (reach, observed) in reaches.iter().zip(observed) {
        let (Ok(reach), Ok(observed)) = (reach, observed) else { continue };
        let ledger = &observed.shelf.ledger;
        let admission = to_write(ledger, author.epoch, observed.holder.as_ref(), author.writer);
        if let Admission::Refused(epoch) = admission {
            return Some(reach.refused(ledger, epoch, author.epoch).await);
        }
    }
    None
}

/// The newest manifest that can be read and whose contents all lie somewhere.
async fn base(reached: &[(&Reach<'_>, &Shelf)]) -> Option<Manifest> {
    let candidates = candidates(reached.iter().enumerate().map(|(index, (_, shelf))| (index, &shelf.ledger)));
    for candidate in candidates {
        for store in candidate.stores {
            let Ok(manifest) = reached[store].0.manifest(candidate.epoch, candidate.generation).await else {
                continue;
            };
            let mut whole = true;
            for (id, listed) in &manifest.records {
                whole = whole && lies(reached, id, *listed).await;
            }
            if whole {
                return Some(manifest);
            }
        }
    }
    None
}

/// What Ramen left, for the first manifest of a group: it must not hide what only Ramen has written.
async fn adopted(reached: &[(&Reach<'_>, &Shelf)]) -> Vec<Record> {
    if buried(reached.iter().map(|(_, shelf)| &shelf.ledger)).is_some() {
        return Vec::new();
    }
    if let Some((records, _)) = ramens(reached, &mut Vec::new(), &mut Vec::new()).await {
        return records.into_values().collect();
    }
    // No set is whole; then what can be read of the first is better than nothing, unless it contradicts itself.
    for (reach, shelf) in reached.iter().filter(|(_, shelf)| shelf.has_ramens()) {
        let (records, _) = set(reach, shelf).await;
        if !records.is_empty() && !matches!(flaw(&records), Some(crate::Flaw::TwoVolumes { .. })) {
            return records.into_values().collect();
        }
    }
    Vec::new()
}
