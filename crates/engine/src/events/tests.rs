//! What is one event, what a series, and what is too much.

use super::*;

fn notice(name: &str, reason: &str, note: &str) -> Notice {
    let subject = ObjectReference {
        name: Some(name.into()),
        uid: Some(format!("uid-{name}")),
        ..ObjectReference::default()
    };
    Notice { subject, level: Level::Normal, reason: reason.into(), note: note.into() }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn repetitions_make_a_series_until_a_silence_ends_it() {
    let mut series = Series::default();
    let mut say = |second| series.take(&notice("a", "Waits", "for b"), at(second));
    let Verdict::Create(name) = say(0) else { panic!("the first is new") };
    assert!(name.starts_with("a."), "{name}");
    assert_eq!(say(10), Verdict::Repeat(name.clone(), 2));
    assert_eq!(say(360), Verdict::Repeat(name.clone(), 3));
    assert!(matches!(say(720), Verdict::Create(other) if other != name));
}

#[test]
fn other_words_are_another_event() {
    let mut series = Series::default();
    let rows =
        [("a", "Waits", "for b"), ("a", "Waits", "for c"), ("a", "Bound", "for b"), ("z", "Waits", "for b")];
    for (name, reason, note) in rows {
        let verdict = series.take(&notice(name, reason, note), at(0));
        assert!(matches!(verdict, Verdict::Create(_)), "{name} {reason} {note}: {verdict:?}");
    }
}

#[test]
fn one_object_that_talks_too_much_is_cut_short_and_others_are_not() {
    let mut series = Series::default();
    let mut say = |name: &str, n: u32, second| series.take(&notice(name, "R", &n.to_string()), at(second));
    for n in 0..BURST {
        assert!(matches!(say("a", n, 0), Verdict::Create(_)));
    }
    assert_eq!(say("a", 100, 1), Verdict::Drop);
    assert!(matches!(say("b", 0, 1), Verdict::Create(_)));
    assert!(matches!(say("a", 101, 301), Verdict::Create(_)), "one more is earned");
    assert_eq!(say("a", 102, 302), Verdict::Drop);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut series = Series::default();
    for n in 0..3 * REMEMBERED {
        series.take(&notice(&n.to_string(), "R", "n"), at(0));
    }
    assert!(series.talks.len() <= REMEMBERED);
}

#[test]
fn an_event_that_could_not_be_written_is_new_again() {
    let mut series = Series::default();
    let Verdict::Create(name) = series.take(&notice("a", "R", "n"), at(0)) else { panic!("new") };
    series.forget(&name);
    assert!(matches!(series.take(&notice("a", "R", "n"), at(1)), Verdict::Create(_)));
}
