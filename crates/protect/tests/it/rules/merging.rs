//! How what is said about claims becomes what is said about the group.

use lifeboat_engine::conditions::Holds;
use lifeboat_protect::decide::plan::{Said, Verdict};
use lifeboat_protect::status::{data_protected, data_ready, merge};
use std::collections::BTreeMap;

fn claims(rows: &[(bool, &'static str, Said)]) -> BTreeMap<String, Verdict> {
    let verdict = |(copied, type_, said): &(bool, &'static str, Said)| {
        let mut verdict = Verdict { copied: *copied, ..Verdict::default() };
        verdict.say(type_, said.clone());
        verdict
    };
    rows.iter().enumerate().map(|(at, row)| (format!("c{at}"), verdict(row))).collect()
}

#[test]
fn false_beats_unknown_beats_true_and_unused_yields() {
    let check = |all: &[Said], holds: Holds, reason: &str| {
        let said = merge(all);
        assert_eq!((said.holds, said.reason), (holds, reason), "{all:?}");
    };
    let (unused, ready, unknown) =
        (Said::yes("Unused", "u"), Said::yes("Ready", "r"), Said::unknown("Initializing", "i"));
    let (moving, error) = (Said::no("Progressing", "p"), Said::no("Error", "e"));
    check(&[], Holds::True, "Unused");
    check(&[unused.clone(), unused.clone()], Holds::True, "Unused");
    check(&[unused.clone(), ready.clone()], Holds::True, "Ready");
    check(&[ready.clone(), unknown.clone()], Holds::Unknown, "Initializing");
    check(&[unknown, moving.clone(), ready], Holds::False, "Progressing");
    check(&[moving.clone(), error.clone()], Holds::False, "Error");
    assert_eq!(merge(&[moving, error]).message, "p, e");
}

#[test]
fn data_is_ready_when_all_claims_are() {
    let check =
        |rule: &str, primary: bool, rows: &[(bool, &'static str, Said)], holds: Holds, reason: &str| {
            let said = data_ready(&claims(rows), primary);
            assert_eq!((said.holds, said.reason), (holds, reason), "{rule}: {said:?}");
        };
    let ready = |said: Said| (false, "DataReady", said);
    check("no claims", true, &[], Holds::True, "Unused");
    check("all ready", true, &[ready(Said::yes("Ready", ""))], Holds::True, "Ready");
    check(
        "one on its way",
        true,
        &[ready(Said::yes("Ready", "")), ready(Said::no("Progressing", ""))],
        Holds::False,
        "Progressing",
    );
    // D20: what is on its way does not hide what failed behind it.
    check(
        "an error behind progress",
        true,
        &[ready(Said::no("Progressing", "")), ready(Said::no("Error", "x"))],
        Holds::False,
        "Error",
    );
    check(
        "no peer class",
        true,
        &[ready(Said::unknown("PeerClassNotFound", ""))],
        Holds::Unknown,
        "PeerClassNotFound",
    );
    check(
        "a secondary fills",
        false,
        &[ready(Said::yes("Replicating", "")), ready(Said::yes("Replicated", ""))],
        Holds::True,
        "Replicating",
    );
    check("a secondary has all", false, &[ready(Said::yes("Replicated", ""))], Holds::True, "Replicated");
    let setup = |said: Said| (true, "ReplicationSourceSetup", said);
    check("a sender is set up", true, &[setup(Said::yes("SourceInitialized", ""))], Holds::True, "Ready");
    check("a sender fails", true, &[setup(Said::no("Error", ""))], Holds::False, "Error");
    check(
        "a restored claim",
        true,
        &[(true, "PVsRestored", Said::yes("Restored", ""))],
        Holds::True,
        "Ready",
    );
    check(
        "receivers",
        false,
        &[(true, "ReplicationDestinationSetup", Said::no("Progressing", ""))],
        Holds::True,
        "Unused",
    );
    check(
        "a receiver's claim in use",
        false,
        &[(true, "DataReady", Said::no("Progressing", ""))],
        Holds::False,
        "Progressing",
    );
}

#[test]
fn data_is_protected_when_it_is_at_the_peer() {
    let check =
        |rule: &str, primary: bool, rows: &[(bool, &'static str, Said)], holds: Holds, reason: &str| {
            let (replicated, copied) = data_protected(&claims(rows), primary);
            let said = merge(&[replicated, copied]);
            assert_eq!((said.holds, said.reason), (holds, reason), "{rule}");
        };
    let row = |said: Said| (false, "DataProtected", said);
    check("no claims", true, &[], Holds::True, "Unused");
    check("a primary's normal state", true, &[row(Said::no("Replicating", ""))], Holds::False, "Replicating");
    check("a secondary has all", false, &[row(Said::yes("DataProtected", ""))], Holds::True, "DataProtected");
    check(
        "one in error",
        true,
        &[row(Said::no("Replicating", "")), row(Said::no("Error", ""))],
        Holds::False,
        "Error",
    );
    let sends = (true, "ReplicationSourceSetup", Said::yes("SourceInitialized", ""));
    check("never copied", true, &[sends], Holds::False, "Progressing");
}
