//! Removing generations that nobody needs any more.

use std::collections::BTreeSet;

use super::reach::Reach;
use super::write::Job;
use crate::decide::plan::sweep;
use crate::decide::shelf::Shelf;
use crate::key::Spot;
use crate::{Digest, Error};

impl Reach<'_> {
    /// Sweeps old manifests and what only they named. `shelf` must have been seen complete with the newest manifest.
    pub(super) async fn sweep(&self, shelf: &Shelf, job: &Job<'_>) -> Result<(), Error> {
        if shelf.ledger.manifests.len() <= self.settings.keep.max(1) {
            return Ok(());
        }
        let sweep = sweep(shelf, job.newest(), self.settings.keep);
        if sweep.manifests.is_empty() {
            return Ok(());
        }
        let mut named: BTreeSet<Digest> = BTreeSet::new();
        for (epoch, generation) in &sweep.kept {
            // One that cannot be read may name anything: then nothing is swept.
            let manifest = self.manifest(*epoch, *generation).await?;
            named.extend(manifest.records.values().map(|listed| listed.sha256));
        }
        // Who comes with a higher epoch may rely on contents that nothing names yet.
        self.still_ours(job.author).await?;
        let prefix = self.group.prefix();
        let manifests = sweep.manifests.iter().map(|(epoch, generation)| Spot::Manifest(*epoch, *generation));
        let manifests: Vec<_> = manifests.map(|spot| format!("{prefix}{spot}")).collect();
        // Manifests first: one that is there must not name what is gone.
        self.delete_many(&manifests).await?;
        let unnamed = shelf.blobs.keys().filter(|digest| !named.contains(digest));
        let unnamed: Vec<_> = unnamed.map(|digest| format!("{prefix}{}", Spot::Blob(*digest))).collect();
        self.delete_many(&unnamed).await
    }
}
