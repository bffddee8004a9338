//! Observe: what a decision about one sender needs.

use crate::jobs::JobView;
use crate::place::{EPOCH_TAG, Place, tags};
use crate::source::failure::Failure;
use jiff::Timestamp;
use lifeboat_api::volsync::ReplicationSource;
use lifeboat_engine::Trouble;
use lifeboat_lvm::Volume;
use lifeboat_stream::Sent;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// All that a decision about a sender needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The sender.
    pub source: Arc<ReplicationSource>,
    /// Where its claim's bytes are.
    pub place: Place,
    /// What was cut and not yet sent.
    pub cut: Option<Cut>,
    /// Where that is mounted by us.
    pub mount: Option<PathBuf>,
    /// The group's epochs, where there is a group: the highest it knows, and the one at which it is primary here.
    pub epochs: Option<(u64, Option<u64>)>,
    /// Whether it has a group that was not seen.
    pub orphan: bool,
    /// Whether the claim holds copies back.
    pub held: bool,
    /// What this process does about it.
    pub job: Option<JobView<Sent, Failure>>,
    /// Whether this process may begin another job.
    pub room: bool,
    /// Whether a VolSync runs here.
    pub rival: bool,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// A snapshot that is being sent. All that has to be known of it is in its tags, so that it is never without them.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// A name that no other state of the volume ever has.
    pub generation: String,
    /// When it was cut.
    pub cut: Timestamp,
    /// The epoch it was cut at.
    pub epoch: u64,
    /// The manual trigger that it answers, which was seen before it was cut.
    pub token: Option<String>,
    /// The volume that its content descends from.
    pub lineage: Option<String>,
    /// Whether files were copied while they may have been written.
    pub fuzzy: bool,
    /// The snapshot.
    pub volume: Volume,
}

const GENERATION_TAG: &str = "lifeboat.send";
const CUT_TAG: &str = "lifeboat.cut";
const TOKEN_TAG: &str = "lifeboat.token";
const LINEAGE_TAG: &str = "lifeboat.lineage";

/// On a snapshot: files were copied while they may have been written, or nobody knows yet whether they were.
pub const FUZZY_TAG: &str = "lifeboat.fuzzy";

/// What such a copy may be, and what helps.
pub const FUZZY: &str = "files were copied while they may have been written: the copy may hold writes of different moments; use a thin device class, or run the application's pods through Lifeboat";

/// How the snapshots of senders begin.
pub const CUT_PREFIX: &str = "send-";

/// What the snapshot of a sender is called.
#[must_use]
pub fn cut_name(uid: &str) -> String {
    format!("{CUT_PREFIX}{uid}")
}

impl Cut {
    /// Reads the tags; a volume without them is none of ours.
    #[must_use]
    pub fn of(volume: Volume) -> Option<Self> {
        let said = tags(&volume);
        let (generation, cut) = (said.get(GENERATION_TAG)?, said.get(CUT_TAG)?.parse().ok()?);
        let epoch = said.get(EPOCH_TAG).and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        let token = said.get(TOKEN_TAG).map(|token| (*token).to_owned());
        let lineage = said.get(LINEAGE_TAG).map(|lineage| (*lineage).to_owned());
        let (generation, fuzzy) = ((*generation).to_owned(), volume.tags.contains(FUZZY_TAG));
        Some(Self { generation, cut, epoch, token, lineage, fuzzy, volume })
    }

    /// The tag that says which volume the content descends from.
    #[must_use]
    pub fn lineage_tag(lineage: &str) -> String {
        format!("{LINEAGE_TAG}={lineage}")
    }

    /// Why its content may show different moments, where it may.
    #[must_use]
    pub fn why_fuzzy(&self) -> Option<String> {
        self.fuzzy.then(|| FUZZY.to_owned())
    }

    /// The tags that say the rest.
    #[must_use]
    pub fn tags(generation: &str, cut: Timestamp, epoch: u64, token: Option<&str>) -> BTreeSet<String> {
        let token = token.map(|token| format!("{TOKEN_TAG}={token}"));
        let said = [
            format!("{GENERATION_TAG}={generation}"),
            format!("{CUT_TAG}={cut}"),
            format!("{EPOCH_TAG}={epoch}"),
        ];
        said.into_iter().chain(token).collect()
    }
}
