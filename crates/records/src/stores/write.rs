//! Writing a change to all stores: contents, Ramen's keys, the manifest last.
//!
//! A crash between any two writes leaves the generation before in force, and the next pass goes on from what lies there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use tokio::time::timeout;

use super::reach::Reach;
use super::read::{ramens, reached, set};
use super::{Observed, Stores, observe};
use crate::decide::admit::{Admission, to_write};
use crate::decide::newest::{buried, candidates};
use crate::decide::plan::{Author, Change, Plan, next, plan, says};
use crate::decide::ramen::flaw;
use crate::decide::shelf::Shelf;
use crate::key::Spot;
use crate::manifest::{HoldKind, Latest};
use crate::{ClusterId, Digest, Epoch, Error, Fault, Generation, Group, Listed, Manifest, Record, RecordId};

/// How sure to be that a store has what it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The list says so: every key is there with its length.
    Listed,
    /// Every object is read back and its checksum compared; what is wrong is written again. Before "protected" is said.
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
    /// Whether every object was read back.
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
    time: Timestamp,
    check: Check,
    target: Manifest,
    contents: BTreeMap<Digest, Bytes>,
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
        if self.profiles.is_empty() {
            return Err(Error::NoStores);
        }
        let reaches = self.reaches(&writing.group);
        let observed = observe(&reaches, Some(writing.epoch)).await;
        let author = Author { epoch: writing.epoch, writer: &writing.writer };
        if let Some(refused) = refusal(&reaches, &observed, author).await {
            let stores = self.profiles.iter().zip(&observed).map(|(profile, observed)| Told {
                store: profile.name.clone(),
                outcome: Err(observed.as_ref().err().unwrap_or(&refused).clone()),
            });
            return Ok(Written { generation: None, stores: stores.collect() });
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
        Ok(Written { generation: written.then_some(job.target.generation), stores })
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
        let change = Change { put, removed: writing.removed.clone() };
        let newest = base(&reached).await;
        let before = match &newest {
            Some(newest) => newest.records.clone(),
            None => adopted(&reached).await.iter().map(take).collect(),
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
                let earlier = newest.map(|newest| newest.removed).unwrap_or_default();
                let removed = earlier.into_iter().filter(lies).chain(change.removed);
                Manifest {
                    group: writing.group.clone(),
                    epoch: writing.epoch,
                    generation: next(seen.unwrap_or_default(), after, clock),
                    writer: writing.writer.clone(),
                    time: writing.time,
                    removed: removed.filter(|id| !records.contains_key(id)).collect(),
                    records,
                }
            }
        };
        Ok(Job { author, time: writing.time, check: writing.check, target, contents })
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

/// The newest manifest that can be read and whose contents are all listed somewhere.
async fn base(reached: &[(&Reach<'_>, &Shelf)]) -> Option<Manifest> {
    let candidates = candidates(reached.iter().enumerate().map(|(index, (_, shelf))| (index, &shelf.ledger)));
    for candidate in candidates {
        for store in candidate.stores {
            let Ok(manifest) = reached[store].0.manifest(candidate.epoch, candidate.generation).await else {
                continue;
            };
            let there = |listed: &Listed| {
                reached.iter().any(|(_, shelf)| shelf.blobs.get(&listed.sha256) == Some(&listed.size))
            };
            if manifest.records.values().all(there) {
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

impl Reach<'_> {
    /// Brings this store to where it should be.
    async fn keep(&self, observed: &Observed, job: &Job<'_>, sources: &[&Reach<'_>]) -> Result<Kept, Error> {
        let (target, shelf) = (&job.target, &observed.shelf);
        let claim = to_write(&shelf.ledger, job.author.epoch, observed.holder.as_ref(), job.author.writer);
        let fenced = match claim {
            Admission::Held => observed.fenced,
            _ => self.hold(HoldKind::Claim, job.author, job.time).await?,
        };
        let own = self.own(shelf, target).await;
        let plan = plan(shelf, own.as_ref(), target);
        let mut changes = 0;
        let mut after = None;
        if !plan.is_empty() {
            changes = self.carry_out(&plan, job, sources, fenced).await?;
            after = Some(self.confirm(job, sources).await?);
        }
        if job.check == Check::ReadBack {
            changes += self.read_back(job, sources).await?;
        }
        let shelf = after.as_ref().unwrap_or(shelf);
        let sweep = self.sweep(shelf, job).await.err();
        let known = |id: &&RecordId| target.records.contains_key(*id);
        let foreign = shelf.records.keys().filter(|id| !known(id)).map(ToString::to_string);
        let old = shelf.old_claims.keys().filter(|id| !known(id));
        let old = old.map(|id| Spot::OldClaim(id.clone()).to_string());
        Ok(Kept {
            generation: target.generation,
            changes,
            read_back: job.check == Check::ReadBack,
            fenced,
            foreign: foreign.chain(old).collect(),
            sweep,
        })
    }

    /// The newest manifest in this store that can be read.
    async fn own(&self, shelf: &Shelf, target: &Manifest) -> Option<Manifest> {
        let buried = shelf.ledger.tombstones.last().copied();
        let living = shelf.ledger.manifests.iter().rev().filter(|(epoch, _)| Some(*epoch) > buried);
        for (epoch, generation) in living {
            if (*epoch, *generation) == (target.epoch, target.generation) {
                return Some(target.clone());
            }
            if let Ok(manifest) = self.manifest(*epoch, *generation).await {
                return Some(manifest);
            }
        }
        None
    }

    async fn carry_out(
        &self,
        plan: &Plan,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        fenced: bool,
    ) -> Result<usize, Error> {
        let target = &job.target;
        self.put_contents(job, sources, &plan.blobs).await?;
        // Ramen's keys carry no epoch: the last moment to see that somebody else has taken over.
        self.still_ours(job.author).await?;
        self.put_keys(job, sources, &plan.keys).await?;
        if plan.manifest {
            let spot = Spot::Manifest(target.epoch, target.generation);
            let content = target.encode().map_err(|fault| self.damaged(&spot, fault))?;
            self.put_new(&spot, content, fenced).await?;
            let latest =
                Latest { group: target.group.clone(), epoch: target.epoch, generation: target.generation };
            let latest = latest.encode().map_err(|fault| self.damaged(&Spot::Latest, fault))?;
            self.put(&Spot::Latest, latest).await?;
        }
        self.each(
            &plan.remove,
            |key| async move { self.delete(&format!("{}{key}", self.group.prefix())).await },
        )
        .await?;
        Ok(plan.blobs.len() + plan.keys.len() + usize::from(plan.manifest) + plan.remove.len())
    }

    async fn put_contents(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        blobs: &BTreeSet<Digest>,
    ) -> Result<(), Error> {
        let wanted: BTreeMap<_, _> =
            job.target.records.iter().map(|(id, listed)| (listed.sha256, (id, *listed))).collect();
        self.each(blobs, |digest| {
            let (id, listed) = wanted[digest];
            async move { self.put(&Spot::Blob(*digest), self.find(job, sources, id, listed).await?).await }
        })
        .await
    }

    async fn put_keys(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        keys: &BTreeSet<RecordId>,
    ) -> Result<(), Error> {
        self.each(keys, |id| async move {
            let content = self.find(job, sources, id, job.target.records[id]).await?;
            self.put(&Spot::Record(id.clone()), content).await
        })
        .await
    }

    /// A record's content: given with the change, or from whichever store has it whole.
    async fn find(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        id: &RecordId,
        listed: Listed,
    ) -> Result<Bytes, Error> {
        if let Some(content) = job.contents.get(&listed.sha256) {
            return Ok(content.clone());
        }
        for source in sources {
            for spot in [Spot::Blob(listed.sha256), Spot::Record(id.clone())] {
                if let Ok(content) = source.content(&spot, listed).await {
                    return Ok(content);
                }
            }
        }
        Err(Error::Incomplete { store: self.name.to_owned(), keys: vec![id.to_string()] })
    }

    /// Lists again after writing: a write that was lost, or a rival who came meanwhile, shows here.
    async fn confirm(&self, job: &Job<'_>, sources: &[&Reach<'_>]) -> Result<Shelf, Error> {
        let target = &job.target;
        for last in [false, true] {
            let shelf = self.shelf().await?;
            if let Some(highest) = shelf.ledger.highest().filter(|highest| *highest > job.author.epoch) {
                return Err(self.refused(&shelf.ledger, highest, job.author.epoch).await);
            }
            let missing = plan(&shelf, Some(target), target);
            if missing.is_empty() {
                return Ok(shelf);
            }
            if last || missing.manifest {
                let manifest = missing.manifest.then(|| Spot::Manifest(target.epoch, target.generation));
                let contents = missing.blobs.iter().map(|digest| Spot::Blob(*digest).to_string());
                let keys = missing.keys.iter().map(ToString::to_string);
                let keys = manifest
                    .iter()
                    .map(ToString::to_string)
                    .chain(contents)
                    .chain(keys)
                    .chain(missing.remove);
                return Err(Error::Lost { store: self.name.to_owned(), keys: keys.collect() });
            }
            self.put_contents(job, sources, &missing.blobs).await?;
            self.put_keys(job, sources, &missing.keys).await?;
        }
        Err(Error::Lost { store: self.name.to_owned(), keys: Vec::new() })
    }

    /// Reads everything back. What is wrong is written once more, then it must be right.
    async fn read_back(&self, job: &Job<'_>, sources: &[&Reach<'_>]) -> Result<usize, Error> {
        let target = &job.target;
        let mut repaired = 0;
        for last in [false, true] {
            let found = self.manifest(target.epoch, target.generation).await?;
            if found != *target {
                let spot = Spot::Manifest(target.epoch, target.generation);
                return Err(self.damaged(&spot, Fault::Other("another set of records".into())));
            }
            let bad = unlike(self, target).await?;
            if bad.is_empty() {
                return Ok(repaired);
            }
            if last {
                let keys = bad.iter().map(ToString::to_string).collect();
                return Err(Error::Lost { store: self.name.to_owned(), keys });
            }
            repaired += bad.len();
            let blobs = bad.iter().filter_map(|spot| match spot {
                Spot::Blob(digest) => Some(*digest),
                _ => None,
            });
            let keys = bad.iter().filter_map(|spot| match spot {
                Spot::Record(id) => Some(id.clone()),
                _ => None,
            });
            self.put_contents(job, sources, &blobs.collect()).await?;
            self.still_ours(job.author).await?;
            self.put_keys(job, sources, &keys.collect()).await?;
        }
        Ok(repaired)
    }
}

/// What does not read back as the manifest says.
async fn unlike(reach: &Reach<'_>, target: &Manifest) -> Result<BTreeSet<Spot>, Error> {
    let spots = target
        .records
        .iter()
        .flat_map(|(id, listed)| [(Spot::Blob(listed.sha256), *listed), (Spot::Record(id.clone()), *listed)]);
    let reads = spots.map(|(spot, listed)| async move {
        match reach.content(&spot, listed).await {
            Ok(_) => Ok(None),
            Err(Error::Damaged { .. }) => Ok(Some(spot)),
            Err(error) => Err(error),
        }
    });
    let reads = stream::iter(reads).buffer_unordered(reach.settings.at_once.max(1));
    reads.try_filter_map(async |bad| Ok(bad)).try_collect().await
}
