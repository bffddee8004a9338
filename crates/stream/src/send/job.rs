//! What to send, to whom, and within which bounds.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use crate::Error;
use crate::tree::Trust;
use crate::wire::link::Timing;

/// What is sent: a snapshot, or something else that nobody writes to.
#[derive(Clone, Debug)]
pub enum Source {
    /// A directory with all that is in it on the same filesystem.
    Tree {
        /// Its root.
        path: PathBuf,
        /// What proves that a file has not changed.
        trust: Trust,
    },
    /// A block device, or a plain file in its place.
    Device {
        /// Where it is.
        path: PathBuf,
        /// What has changed, if somebody knows.
        changed: Option<Changed>,
    },
}

/// Where a device differs from an earlier generation of it, as thin volumes know it.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The earlier generation. With any other base the ranges are not used.
    pub since: String,
    /// Every byte that may differ, in order; ranges behind the end are cut off.
    pub ranges: Vec<Range<u64>>,
}

/// Bounds of a sync.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes on the wire in a second, at most.
    pub bytes_per_second: Option<u64>,
    /// The whole sync takes no longer than this.
    pub within: Option<Duration>,
    /// How long the link may be silent.
    pub timing: Timing,
}

/// One sync.
#[derive(Clone, Debug)]
pub struct Job {
    /// What the receiver calls the volume.
    pub destination: String,
    /// The sender's epoch; a lower one than the receiver has seen is refused.
    pub epoch: u64,
    /// A name for this state of the source that no other state of it ever has.
    pub generation: String,
    /// When the source was cut: the time of the snapshot, not of the copy.
    pub cut: Timestamp,
    /// The memory of the last sync of this source to this destination. Beside it, `.next` is the one under way.
    pub index: PathBuf,
    /// Whether to send everything to an empty volume.
    pub full: bool,
    /// Whether to ask the receiver what it has, if its copy is of a generation that the index does not know: it then reads its whole copy.
    pub compare: bool,
    /// Whether a source that had files may have none.
    pub may_be_empty: bool,
    /// Whether the receiver reads its whole copy at the end and compares.
    pub verify: bool,
    /// Whether to pack what gets smaller.
    pub compress: bool,
    /// Its bounds.
    pub limits: Limits,
    /// The volume that the source descends from: a receiver that has a complete copy of another one refuses.
    pub lineage: Option<String>,
    /// Why the source may show different moments, where it may.
    pub fuzzy: Option<String>,
    token: Option<String>,
}

impl Job {
    /// A sync with the usual choices.
    pub fn new(
        destination: impl Into<String>,
        epoch: u64,
        generation: impl Into<String>,
        cut: Timestamp,
        index: impl Into<PathBuf>,
    ) -> Self {
        Self {
            destination: destination.into(),
            epoch,
            generation: generation.into(),
            cut,
            index: index.into(),
            full: true,
            compare: true,
            may_be_empty: false,
            verify: false,
            compress: true,
            limits: Limits::default(),
            lineage: None,
            fuzzy: None,
            token: None,
        }
    }

    /// Adds the token of a manual or final sync, which was seen at `seen` by the clock that `cut` is of.
    ///
    /// # Errors
    /// When the source was not cut after the token was seen: what was written in between would be missing from a sync that claims to be
    /// the one asked for.
    pub fn with_token(mut self, token: impl Into<String>, seen: Timestamp) -> Result<Self, Error> {
        if self.cut <= seen {
            return Err(Error::Invalid(format!(
                "the source was cut at {}, before the token was seen at {seen}: this sync cannot answer it; take a new snapshot",
                self.cut
            )));
        }
        self.token = Some(token.into());
        Ok(self)
    }

    /// The token that goes with it.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let sane = |name: &str| !name.is_empty() && name.len() <= 512;
        let mut more = [&self.token, &self.lineage, &self.fuzzy].into_iter().flatten();
        if sane(&self.destination) && sane(&self.generation) && more.all(|text| sane(text)) {
            Ok(())
        } else {
            Err(Error::Invalid(
                "a destination, generation, token, lineage or reason is empty or longer than 512 bytes"
                    .to_owned(),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_only_with_a_cut_that_came_after_it() {
        let check = |cut: i64, seen: i64, taken: bool| {
            let at = |second| Timestamp::from_second(second).unwrap();
            let job = Job::new("d", 1, "g", at(cut), "index").with_token("t", at(seen));
            assert_eq!(job.is_ok(), taken, "cut {cut} seen {seen}");
        };
        check(10, 9, true);
        check(10, 10, false);
        check(10, 11, false);
    }
}
