//! What a receiver answers to a sender that showed the key: pure, from what is remembered and what is offered.

use super::journal::Journal;
use crate::error::Refusal;
use crate::wire::record::Hello;

/// What is known of a staging volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known<'a> {
    /// The name of this copy.
    pub(crate) incarnation: &'a str,
    /// The generation that it is a copy of.
    pub(crate) base: Option<&'a str>,
    /// The highest epoch that was ever seen, or asked for by the caller.
    pub(crate) epoch: u64,
    /// The volume that a complete copy descends from, and another that may take its place.
    pub(crate) lineage: Option<&'a str>,
    pub(crate) accepts: Option<&'a str>,
    pub(crate) journal: Option<&'a Journal>,
}

/// How a sync begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Refuse(Refusal),
    /// From a copy of this generation, or from an empty volume; `clear` says that an earlier try left something in it.
    Start {
        base: Option<String>,
        clear: bool,
    },
    /// From a copy of a generation that the sender has no index of: it gets one first.
    Compare {
        base: String,
    },
    Resume,
    /// It was applied before, and is not published yet as far as this copy knows.
    Publishing,
    /// It was published before; only the answer was lost.
    Finished,
}

/// Decides how a sync begins.
pub(crate) fn open(known: &Known<'_>, hello: &Hello) -> Opening {
    if hello.epoch < known.epoch {
        return Opening::Refuse(Refusal::OldEpoch { offered: hello.epoch, seen: known.epoch });
    }
    if let (Some(have), Some(offered)) = (known.lineage, hello.more.lineage.as_deref())
        && have != offered
        && known.accepts != Some(offered)
    {
        let (have, offered) = (have.to_owned(), offered.to_owned());
        return Opening::Refuse(Refusal::OtherLineage { have, offered });
    }
    let journal = known.journal.filter(|journal| journal.incarnation == known.incarnation);
    if let Some(journal) = journal {
        let same = journal.generation == hello.generation && !journal.damaged;
        match (&journal.complete, same) {
            (Some(_), true) => return Opening::Publishing,
            // It waits to be published; nothing may touch it until then.
            (Some(_), false) => return Opening::Refuse(Refusal::Busy),
            (None, true) if can_start(journal.base.as_deref(), hello) => return Opening::Resume,
            (None, _) if journal.base.is_none() && hello.full => {
                return Opening::Start { base: None, clear: true };
            }
            (None, _) => {
                return Opening::Refuse(Refusal::Spoiled(format!("generation {}", journal.generation)));
            }
        }
    }
    let published = known.journal.is_some_and(|journal| {
        journal.generation == hello.generation && journal.complete.is_some() && !journal.damaged
    });
    if published && known.base == Some(hello.generation.as_str()) {
        return Opening::Finished;
    }
    match known.base {
        base if can_start(base, hello) => Opening::Start { base: base.map(str::to_owned), clear: false },
        Some(base) if hello.compare => Opening::Compare { base: base.to_owned() },
        base => Opening::Refuse(Refusal::BaseMismatch {
            have: base.map(str::to_owned),
            offered: hello.bases.first().cloned(),
        }),
    }
}

fn can_start(base: Option<&str>, hello: &Hello) -> bool {
    base.map_or(hello.full, |base| hello.bases.iter().any(|known| known == base))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::journal::Complete;
    use crate::wire::record::{Kind, More};

    fn hello(epoch: u64, bases: &[&str], full: bool, generation: &str) -> Hello {
        Hello {
            destination: "d".into(),
            epoch,
            bases: bases.iter().map(|base| (*base).to_owned()).collect(),
            full,
            compare: false,
            generation: generation.into(),
            cut: (0, 0),
            token: None,
            kind: Kind::Tree,
            secret: [0; 32],
            more: More::default(),
        }
    }

    fn journal(base: Option<&str>, generation: &str, complete: bool) -> Journal {
        let done = Complete { token: None, cut: (0, 0), bytes: 0, entries: 0, skipped: 0, verified: false };
        Journal {
            incarnation: "i".into(),
            base: base.map(str::to_owned),
            generation: generation.into(),
            epoch: 1,
            records: 5,
            digest: [0; 32],
            open: None,
            damaged: false,
            complete: complete.then_some(done),
            more: More::default(),
        }
    }

    fn check(base: Option<&str>, epoch: u64, journal: Option<Journal>, hello: &Hello, expected: &Opening) {
        let journal_of = journal.as_ref();
        let known = Known { incarnation: "i", base, epoch, journal: journal_of, ..Known::default() };
        assert_eq!(&open(&known, hello), expected, "{base:?} {journal:?} {hello:?}");
    }

    fn mismatch(have: Option<&str>, offered: Option<&str>) -> Opening {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Opening::Refuse(Refusal::BaseMismatch { have: owned(have), offered: owned(offered) })
    }

    #[test]
    fn a_lower_epoch_is_refused_whatever_else_fits() {
        let old = Opening::Refuse(Refusal::OldEpoch { offered: 3, seen: 4 });
        check(Some("a"), 4, None, &hello(3, &["a"], true, "b"), &old);
        check(None, 4, Some(journal(None, "b", true)), &hello(3, &[], true, "b"), &old);
        check(
            Some("a"),
            3,
            None,
            &hello(3, &["a"], true, "b"),
            &Opening::Start { base: Some("a".into()), clear: false },
        );
    }

    #[test]
    fn a_sync_starts_from_what_both_sides_know() {
        let start = |base: Option<&str>| Opening::Start { base: base.map(str::to_owned), clear: false };
        check(Some("a"), 0, None, &hello(1, &["a"], true, "b"), &start(Some("a")));
        check(Some("a"), 0, None, &hello(1, &["z", "a"], false, "b"), &start(Some("a")));
        check(None, 0, None, &hello(1, &["z"], true, "b"), &start(None));
        check(None, 0, None, &hello(1, &["z"], false, "b"), &mismatch(None, Some("z")));
        check(Some("a"), 0, None, &hello(1, &["z"], true, "b"), &mismatch(Some("a"), Some("z")));
        check(Some("a"), 0, None, &hello(1, &[], true, "b"), &mismatch(Some("a"), None));
        let compare = Hello { compare: true, ..hello(1, &["z"], true, "b") };
        check(Some("a"), 0, None, &compare, &Opening::Compare { base: "a".into() });
    }

    #[test]
    fn a_sync_that_was_cut_off_goes_on_only_as_itself() {
        let spoiled = Opening::Refuse(Refusal::Spoiled("generation b".into()));
        check(
            Some("a"),
            0,
            Some(journal(Some("a"), "b", false)),
            &hello(1, &["a"], true, "b"),
            &Opening::Resume,
        );
        check(Some("a"), 0, Some(journal(Some("a"), "b", false)), &hello(1, &["a"], true, "c"), &spoiled);
        check(Some("a"), 0, Some(journal(Some("a"), "b", false)), &hello(1, &["z"], true, "b"), &spoiled);
        check(None, 0, Some(journal(None, "b", false)), &hello(1, &[], true, "b"), &Opening::Resume);
        let damaged = Journal { damaged: true, ..journal(Some("a"), "b", false) };
        check(Some("a"), 0, Some(damaged), &hello(1, &["a"], true, "b"), &spoiled);
        check(
            None,
            0,
            Some(journal(None, "b", false)),
            &hello(1, &[], true, "c"),
            &Opening::Start { base: None, clear: true },
        );
    }

    #[test]
    fn a_finished_sync_is_told_again_and_not_touched() {
        check(
            Some("a"),
            0,
            Some(journal(Some("a"), "b", true)),
            &hello(1, &["a"], true, "b"),
            &Opening::Publishing,
        );
        let busy = Opening::Refuse(Refusal::Busy);
        check(Some("a"), 0, Some(journal(Some("a"), "b", true)), &hello(1, &["a"], true, "c"), &busy);
    }

    #[test]
    fn what_was_published_is_told_again_with_its_token() {
        let earlier = |complete| Journal { incarnation: "h".into(), ..journal(Some("a"), "b", complete) };
        let asks = hello(1, &["a"], true, "b");
        check(Some("b"), 0, Some(earlier(true)), &asks, &Opening::Finished);
        // What this copy is says that it was published, and the journal that it is the same.
        check(Some("b"), 0, None, &asks, &mismatch(Some("b"), Some("a")));
        check(Some("unknown-3"), 0, Some(earlier(true)), &asks, &mismatch(Some("unknown-3"), Some("a")));
    }

    #[test]
    fn a_copy_of_another_volume_is_not_overwritten() {
        let check = |have: Option<&str>, accepts: Option<&str>, offered: Option<&str>, taken: bool| {
            let more = More { lineage: offered.map(str::to_owned), ..More::default() };
            let hello = Hello { more, ..hello(1, &["a"], true, "b") };
            let known =
                Known { incarnation: "i", base: Some("a"), lineage: have, accepts, ..Known::default() };
            let opening = open(&known, &hello);
            let refused = matches!(opening, Opening::Refuse(Refusal::OtherLineage { .. }));
            assert_eq!(!refused, taken, "{have:?} {accepts:?} {offered:?} {opening:?}");
        };
        check(Some("one"), None, Some("one"), true);
        check(Some("one"), None, Some("two"), false);
        check(Some("one"), Some("two"), Some("two"), true);
        check(Some("one"), Some("three"), Some("two"), false);
        // Nothing complete is here, or it came before lineages were told.
        check(None, None, Some("two"), true);
        // A sender that does not know of lineages.
        check(Some("one"), None, None, true);
    }

    #[test]
    fn a_journal_of_another_copy_means_nothing() {
        let other = Journal { incarnation: "other".into(), ..journal(Some("a"), "b", true) };
        let start = Opening::Start { base: Some("a".into()), clear: false };
        check(Some("a"), 0, Some(other), &hello(1, &["a"], true, "b"), &start);
    }
}
