//! Bringing one store to where it should be: contents, Ramen's keys, the manifest last, then a look at what is really there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::FutureExt;

use super::Observed;
use super::reach::Reach;
use super::write::{Check, Job, Kept};
use crate::decide::admit::{Admission, to_write};
use crate::decide::plan::{Plan, plan};
use crate::decide::shelf::Shelf;
use crate::key::Spot;
use crate::manifest::{HoldKind, Latest};
use crate::{Digest, Error, Fault, Listed, Manifest, RecordId};

impl Reach<'_> {
    /// Brings this store to where it should be.
    pub(super) async fn keep(
        &self,
        observed: &Observed,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
    ) -> Result<Kept, Error> {
        let (target, shelf) = (&job.target, &observed.shelf);
        self.take(&observed.owner).await?;
        let claim = to_write(&shelf.ledger, job.author.epoch, observed.holder.as_ref(), job.author.writer);
        let fenced = match claim {
            Admission::Held => observed.fenced,
            _ => self.hold(HoldKind::Claim, job.author, job.time).await?,
        };
        let own = self.own(shelf, target).await;
        let mut plan = plan(shelf, own.as_ref(), target);
        let mut changes = 0;
        let mut after = None;
        if !plan.is_empty() {
            changes = self.carry_out(&plan, job, sources, fenced).await?;
            after = Some(self.confirm(job, sources, &mut plan).await?);
        }
        changes += match job.check {
            Check::ReadBack => self.read_back(job, sources, None).await?,
            Check::Written if plan.is_empty() => 0,
            Check::Written => self.read_back(job, sources, Some(&plan)).await?,
        };
        let shelf = after.as_ref().unwrap_or(shelf);
        let sweep = self.sweep(shelf, job).await.err();
        self.unorphan(&observed.shelf).await?;
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
        self.remove_keys(&plan.remove).await?;
        Ok(plan.blobs.len() + plan.keys.len() + usize::from(plan.manifest) + plan.remove.len())
    }

    async fn remove_keys(&self, keys: &BTreeSet<String>) -> Result<(), Error> {
        let removals = keys.iter().map(|key| format!("{}{key}", self.group.prefix()));
        let removals = removals.map(|key| async move { self.delete(&key).await }.boxed());
        self.each(removals.collect()).await
    }

    async fn put_contents(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        blobs: &BTreeSet<Digest>,
    ) -> Result<(), Error> {
        let wanted: BTreeMap<_, _> =
            job.target.records.iter().map(|(id, listed)| (listed.sha256, (id, *listed))).collect();
        let puts: Vec<_> = blobs.iter().map(|digest| (wanted[digest], Spot::Blob(*digest))).collect();
        let puts = puts.iter().map(|((id, listed), spot)| self.copy(job, sources, id, *listed, spot).boxed());
        self.each(puts.collect()).await
    }

    async fn put_keys(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        keys: &BTreeSet<RecordId>,
    ) -> Result<(), Error> {
        let put = |id: &RecordId| {
            let spot = Spot::Record(id.clone());
            (id.clone(), job.target.records[id], spot)
        };
        // Claims come last: who reads half of a first set without a manifest misses claims, and notices by their number.
        let (claims, others): (Vec<_>, Vec<_>) =
            keys.iter().map(put).partition(|(id, ..)| matches!(id, RecordId::Claim { .. }));
        for part in [&others, &claims] {
            let puts =
                part.iter().map(|(id, listed, spot)| self.copy(job, sources, id, *listed, spot).boxed());
            self.each(puts.collect()).await?;
        }
        Ok(())
    }

    /// Writes a record's content to one of its places.
    async fn copy(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        id: &RecordId,
        listed: Listed,
        to: &Spot,
    ) -> Result<(), Error> {
        self.put(to, self.find(job, sources, id, listed).await?).await
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

    /// Lists again after writing: a write that was lost, or a rival who came meanwhile, shows here. What is written once more joins what was
    /// written.
    async fn confirm(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        written: &mut Plan,
    ) -> Result<Shelf, Error> {
        let target = &job.target;
        for last in [false, true] {
            let shelf = self.shelf().await?;
            self.still_our_fleet().await?;
            if let Some(highest) = shelf.ledger.highest().filter(|highest| *highest > job.author.epoch) {
                return Err(self.refused(&shelf.ledger, highest, job.author.epoch).await);
            }
            let missing = plan(&shelf, Some(target), target);
            if missing.is_empty() {
                return Ok(shelf);
            }
            if last || missing.manifest {
                let manifest = missing.manifest.then_some(Spot::Manifest(target.epoch, target.generation));
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
            self.remove_keys(&missing.remove).await?;
            written.blobs.extend(missing.blobs);
            written.keys.extend(missing.keys);
        }
        Err(Error::Lost { store: self.name.to_owned(), keys: Vec::new() })
    }

    /// Reads back the manifest and what was written, or everything. What is wrong is written once more, then it must be right.
    async fn read_back(
        &self,
        job: &Job<'_>,
        sources: &[&Reach<'_>],
        written: Option<&Plan>,
    ) -> Result<usize, Error> {
        let target = &job.target;
        let mut repaired = 0;
        for last in [false, true] {
            let found = self.manifest(target.epoch, target.generation).await?;
            if found != *target {
                let spot = Spot::Manifest(target.epoch, target.generation);
                return Err(self.damaged(&spot, Fault::Other("another set of records".into())));
            }
            let bad = unlike(self, target, written).await?;
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

/// What of a plan, or of everything, does not read back as the manifest says.
async fn unlike(
    reach: &Reach<'_>,
    target: &Manifest,
    written: Option<&Plan>,
) -> Result<BTreeSet<Spot>, Error> {
    let spots = target
        .records
        .iter()
        .flat_map(|(id, listed)| [(Spot::Blob(listed.sha256), *listed), (Spot::Record(id.clone()), *listed)])
        .filter(|(spot, _)| written.is_none_or(|plan| plan.writes(spot)));
    let read = async |spot: Spot, listed: Listed| match reach.content(&spot, listed).await {
        Ok(_) => Ok(None),
        Err(Error::Damaged { .. }) => Ok(Some(spot)),
        Err(error) => Err(error),
    };
    let reads = reach.together(spots.map(|(spot, listed)| read(spot, listed).boxed()).collect()).await;
    reads.into_iter().filter_map(Result::transpose).collect()
}
