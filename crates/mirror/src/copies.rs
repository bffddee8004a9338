//! The copies of one mirrored volume on this node, told by the names and tags of the volumes themselves, so that a crash leaves nothing that
//! cannot be read back.
//!
//! | name | what it is |
//! | --- | --- |
//! | `UID` | the live volume of a primary |
//! | `cut-UID` | the snapshot of it that is being sent |
//! | `replica-UID` | the last complete generation that a secondary has |
//! | `filling-UID` | what the next generation is applied to; complete once it is tagged with its generation |
//! | `spare-UID` | the generation before, which the next one is applied to where volumes cannot share blocks |
//! | `diverged-UID` | what a former primary wrote and nobody else has, kept until its replacement is complete |

use jiff::Timestamp;
use lifeboat_lvm::{Error, Volume};
use lifeboat_node::{Disks, Look};
use std::collections::{BTreeMap, BTreeSet};

pub use lifeboat_replicate::place::{EPOCH_TAG, epoch_of, tags};
pub use lifeboat_replicate::source::world::{FUZZY, FUZZY_TAG};

const GENERATION_TAG: &str = "lifeboat.generation";
const CUT_TAG: &str = "lifeboat.cut";
const BASE_TAG: &str = "lifeboat.base";
const INCARNATION_TAG: &str = "lifeboat.incarnation";
const FINAL_TAG: &str = "lifeboat.final";

const CUT: &str = "cut-";
const REPLICA: &str = "replica-";
const FILLING: &str = "filling-";
const SPARE: &str = "spare-";
const DIVERGED: &str = "diverged-";

/// The volume that a name belongs to.
#[must_use]
pub fn uid_of(name: &str) -> &str {
    let kinds = [CUT, REPLICA, FILLING, SPARE, DIVERGED];
    kinds.into_iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name)
}

/// What a kind of copy is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Kind {
    /// The live volume.
    Live,
    /// What is being sent.
    Cut,
    /// The last complete generation.
    Replica,
    /// What is being filled.
    Filling,
    /// The generation before.
    Spare,
    /// What nobody else has.
    Diverged,
}

impl Kind {
    /// Its name for a volume.
    #[must_use]
    pub fn name(self, uid: &str) -> String {
        let kind = match self {
            Self::Live => "",
            Self::Cut => CUT,
            Self::Replica => REPLICA,
            Self::Filling => FILLING,
            Self::Spare => SPARE,
            Self::Diverged => DIVERGED,
        };
        format!("{kind}{uid}")
    }
}

/// A state of the volume that has a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Image {
    /// A name that no other state ever has.
    pub generation: String,
    /// When it was cut.
    pub cut: Timestamp,
    /// The epoch it was written at.
    pub epoch: u64,
    /// Whether files were copied while they may have been written.
    pub fuzzy: bool,
}

impl Image {
    /// Reads the tags.
    #[must_use]
    pub fn of(volume: &Volume) -> Option<Self> {
        let said = tags(volume);
        let (generation, cut) = (said.get(GENERATION_TAG)?, said.get(CUT_TAG)?.parse().ok()?);
        Some(Self {
            generation: (*generation).to_owned(),
            cut,
            epoch: epoch_of(volume),
            fuzzy: volume.tags.contains(FUZZY_TAG),
        })
    }

    /// The tags that say all this.
    #[must_use]
    pub fn tags(&self) -> BTreeSet<String> {
        let said = [
            format!("{GENERATION_TAG}={}", self.generation),
            format!("{CUT_TAG}={}", self.cut),
            format!("{EPOCH_TAG}={}", self.epoch),
        ];
        said.into_iter().chain(self.fuzzy.then(|| FUZZY_TAG.to_owned())).collect()
    }
}

/// What is being sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Which state of the volume it is.
    pub image: Image,
    /// Whether it was cut when nobody could write any more.
    pub last: bool,
    /// The snapshot.
    pub volume: Volume,
}

/// The tag of a cut that holds everything that was ever written.
#[must_use]
pub fn last_tag() -> String {
    format!("{FINAL_TAG}=true")
}

/// What is being filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Filling {
    /// The volume.
    pub volume: Volume,
    /// A name for this very copy.
    pub incarnation: String,
    /// The generation that it is a copy of; nothing for an empty one.
    pub base: Option<String>,
    /// What it holds, once that is complete.
    pub complete: Option<Image>,
}

impl Filling {
    fn of(volume: Volume) -> Self {
        let said = tags(&volume);
        let text = |key: &str| said.get(key).map(|text| (*text).to_owned());
        let incarnation = text(INCARNATION_TAG).unwrap_or_default();
        let (base, complete) = (text(BASE_TAG), Image::of(&volume));
        Self { incarnation, base, complete, volume }
    }

    /// The tags of one that is about to be filled.
    #[must_use]
    pub fn tags(base: Option<&str>, incarnation: &str) -> BTreeSet<String> {
        let base = base.map(|base| format!("{BASE_TAG}={base}"));
        base.into_iter().chain([format!("{INCARNATION_TAG}={incarnation}")]).collect()
    }
}

/// All copies of one volume.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Copies {
    /// The live volume.
    pub live: Option<Volume>,
    /// What is being sent.
    pub cut: Option<Cut>,
    /// The last complete generation.
    pub replica: Option<(Image, Volume)>,
    /// What is being filled.
    pub filling: Option<Filling>,
    /// The generation before.
    pub spare: Option<Volume>,
    /// What nobody else has.
    pub diverged: Option<Volume>,
}

/// What is known of the copies of one volume.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// Nobody has looked yet.
    Unlisted,
    /// They cannot be looked at.
    Unreadable(Error),
    /// These are there.
    Listed(Box<Copies>),
}

impl Copies {
    /// The copies among the volumes of a class.
    #[must_use]
    pub fn of(uid: &str, mut volumes: BTreeMap<String, Volume>) -> Self {
        let mut take = |kind: Kind| volumes.remove(&kind.name(uid));
        let cut = take(Kind::Cut).and_then(|volume| {
            let last = volume.tags.contains(&last_tag());
            Some(Cut { image: Image::of(&volume)?, last, volume })
        });
        let replica = take(Kind::Replica).map(|volume| (Image::of(&volume).unwrap_or_else(nameless), volume));
        Self {
            live: take(Kind::Live),
            cut,
            replica,
            filling: take(Kind::Filling).map(Filling::of),
            spare: take(Kind::Spare),
            diverged: take(Kind::Diverged),
        }
    }

    /// Whether nothing of it is there.
    #[must_use]
    pub fn are_gone(&self) -> bool {
        *self == Self { live: self.live.clone(), ..Self::default() }
    }

    /// The highest epoch that any copy carries.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        let received = [
            self.replica.as_ref().map(|(image, _)| image.epoch),
            self.filling.as_ref().and_then(|filling| filling.complete.as_ref()).map(|image| image.epoch),
        ];
        let others = [&self.live, &self.spare, &self.diverged].into_iter().flatten().map(epoch_of);
        others.chain(received.into_iter().flatten()).max().unwrap_or(0)
    }
}

/// A replica whose tags were lost is still a complete copy, of a generation that nobody knows.
fn nameless() -> Image {
    Image { generation: "unnamed".to_owned(), cut: Timestamp::UNIX_EPOCH, epoch: 0, fuzzy: false }
}

/// Tags that say which state of a volume it is, and those of one that is being filled: gone as soon as somebody writes to it.
#[must_use]
pub fn passing_tags(volume: &Volume) -> BTreeSet<String> {
    let ours = [GENERATION_TAG, CUT_TAG, EPOCH_TAG, BASE_TAG, INCARNATION_TAG, FINAL_TAG];
    let is_ours =
        |tag: &&String| *tag == FUZZY_TAG || tag.split_once('=').is_some_and(|(key, _)| ours.contains(&key));
    volume.tags.iter().filter(is_ours).cloned().collect()
}

/// Looks at the copies of a volume, as last listed.
#[must_use]
pub fn look(disks: &Disks, class: &str, uid: &str) -> Seen {
    match disks.look(class, |volume| uid_of(&volume.name) == uid) {
        Look::Unlisted => Seen::Unlisted,
        Look::Failed(error) => Seen::Unreadable(error),
        Look::Listed(volumes) => Seen::Listed(Box::new(Copies::of(uid, volumes))),
    }
}
