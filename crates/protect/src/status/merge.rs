//! How what is said about claims becomes what is said about the group. No early end: an error is never hidden by what comes before it.

use crate::decide::plan::{Said, Verdict};
use lifeboat_api::conditions::vrg as words;
use lifeboat_engine::conditions::Holds;
use std::collections::BTreeMap;

type Verdicts<'a> = &'a BTreeMap<String, Verdict>;

/// Several words about one question: what does not hold beats what nobody knows, which beats what holds; nothing of a kind yields to
/// something.
pub fn merge(all: &[Said]) -> Said {
    let rank = |said: &Said| match said.holds {
        Holds::False => 0,
        Holds::Unknown => 1,
        Holds::True => 2,
    };
    let Some(worst) = all.iter().map(rank).min() else {
        return Said::yes(words::REASON_UNUSED, "nothing of this kind");
    };
    let mut kept: Vec<&Said> = all.iter().filter(|said| rank(said) == worst).collect();
    if kept.iter().any(|said| said.reason != words::REASON_UNUSED) {
        kept.retain(|said| said.reason != words::REASON_UNUSED);
    }
    // Where several reasons are left, trouble is named before progress.
    let calm = |said: &&&Said| {
        matches!(said.reason, words::REASON_PROGRESSING | words::REASON_REPLICATING | words::REASON_UPLOADING)
    };
    let first = kept.iter().find(|said| !calm(said)).unwrap_or(&kept[0]);
    let mut messages: Vec<&str> = Vec::new();
    for said in &kept {
        if !said.message.is_empty() && !messages.contains(&said.message.as_str()) {
            messages.push(&said.message);
        }
    }
    Said { holds: first.holds, reason: first.reason, message: messages.join(", ") }
}

fn named(names: &[&str], message: &str) -> String {
    if names.is_empty() { message.to_owned() } else { format!("{message}: {}", names.join(", ")) }
}

/// Claims of one kind whose word about a question is one of these reasons.
fn with<'a>(
    claims: &[(&'a str, &'a Verdict)],
    type_: &str,
    is: impl Fn(Option<&Said>) -> bool,
) -> Vec<&'a str> {
    claims.iter().filter(|(_, verdict)| is(verdict.said.get(type_))).map(|(name, _)| *name).collect()
}

fn of_kind(verdicts: Verdicts<'_>, copied: bool) -> Vec<(&str, &Verdict)> {
    verdicts.iter().filter(|(_, one)| one.copied == copied).map(|(name, one)| (name.as_str(), one)).collect()
}

/// Whether the group's data is ready.
pub fn data_ready(verdicts: Verdicts<'_>, primary: bool) -> Said {
    merge(&[
        replicated_ready(&of_kind(verdicts, false), primary),
        copied_ready(&of_kind(verdicts, true), primary),
    ])
}

fn replicated_ready(claims: &[(&str, &Verdict)], primary: bool) -> Said {
    let type_ = words::TYPE_DATA_READY;
    if claims.is_empty() {
        return Said::yes(words::REASON_UNUSED, "No PVCs are replicated by their storage");
    }
    let failed = with(claims, type_, |said| {
        said.is_none_or(|said| matches!(said.reason, words::REASON_ERROR | words::REASON_UNKNOWN_ERROR))
    });
    if !failed.is_empty() {
        let told = claims
            .iter()
            .filter_map(|(_, one)| one.said.get(type_))
            .find(|said| said.reason == words::REASON_ERROR);
        let why = told.map_or("PVCs are in error", |said| said.message.as_str());
        return Said::no(words::REASON_ERROR, named(&failed, why));
    }
    let unknown =
        claims.iter().filter_map(|(_, one)| one.said.get(type_)).find(|said| said.holds == Holds::Unknown);
    if let Some(unknown) = unknown {
        return unknown.clone();
    }
    let open = with(claims, type_, |said| said.is_some_and(|said| said.holds != Holds::True));
    if !open.is_empty() {
        return Said::no(words::REASON_PROGRESSING, named(&open, "PVCs are progressing"));
    }
    if primary {
        return Said::yes(words::REASON_READY, "PVCs in the VolumeReplicationGroup are ready for use");
    }
    let filling =
        with(claims, type_, |said| said.is_some_and(|said| said.reason == words::REASON_REPLICATING));
    match filling.is_empty() {
        true => Said::yes(
            words::REASON_REPLICATED,
            "PVCs in the VolumeReplicationGroup have all data of the primary",
        ),
        false => {
            Said::yes(words::REASON_REPLICATING, named(&filling, "PVCs are being filled from the primary"))
        }
    }
}

fn copied_ready(claims: &[(&str, &Verdict)], primary: bool) -> Said {
    if claims.is_empty() {
        return Said::yes(words::REASON_UNUSED, "No PVCs are copied by a mover");
    }
    let busy =
        with(claims, words::TYPE_DATA_READY, |said| said.is_some_and(|said| said.holds != Holds::True));
    if !busy.is_empty() {
        let told = claims.iter().filter_map(|(_, one)| one.said.get(words::TYPE_DATA_READY));
        let worst = told
            .filter(|said| said.holds != Holds::True)
            .max_by_key(|said| said.reason == words::REASON_ERROR);
        let (reason, message) =
            worst.map_or((words::REASON_PROGRESSING, ""), |said| (said.reason, said.message.as_str()));
        return Said::no(reason, named(&busy, message));
    }
    if !primary {
        return Said::yes(words::REASON_UNUSED, "receivers keep the data of copied PVCs");
    }
    let all = |type_: &str| with(claims, type_, |said| said.is_none_or(|said| said.holds != Holds::True));
    let (not_restored, not_sending) =
        (all(words::TYPE_PVS_RESTORED), all(words::TYPE_REPLICATION_SOURCE_SETUP));
    if not_restored.is_empty() || not_sending.is_empty() {
        return Said::yes(words::REASON_READY, "copied PVCs are ready for use");
    }
    let failed = with(claims, words::TYPE_REPLICATION_SOURCE_SETUP, |said| {
        said.is_some_and(|said| said.reason == words::REASON_ERROR)
    });
    match failed.is_empty() {
        true => Said::no(words::REASON_PROGRESSING, named(&not_sending, "senders are being set up")),
        false => Said::no(words::REASON_ERROR, named(&failed, "senders cannot be set up")),
    }
}

/// Whether the group's data is at the peer: by storage, by mover.
pub fn data_protected(verdicts: Verdicts<'_>, primary: bool) -> (Said, Said) {
    (replicated_protected(&of_kind(verdicts, false)), copied_protected(&of_kind(verdicts, true), primary))
}

fn replicated_protected(claims: &[(&str, &Verdict)]) -> Said {
    let type_ = words::TYPE_DATA_PROTECTED;
    if claims.is_empty() {
        return Said::yes(words::REASON_UNUSED, "No PVCs are replicated by their storage");
    }
    let failed = with(claims, type_, |said| said.is_none_or(|said| said.reason == words::REASON_ERROR));
    if !failed.is_empty() {
        return Said::no(words::REASON_ERROR, named(&failed, "PVCs are in error"));
    }
    // What is late is told in a word of its own.
    let in_time: Vec<(&str, &Verdict)> = claims.iter().copied().filter(|(_, one)| !one.late).collect();
    let open =
        with(&in_time, type_, |said| said.is_some_and(|said| said.reason == words::REASON_PROGRESSING));
    if let Some(first) = open.first() {
        // What is told of one is what people need to know; the others say theirs by themselves.
        let why = in_time.iter().find(|(name, _)| name == first).and_then(|(_, one)| one.said.get(type_));
        let why = why.map(|said| said.message.as_str()).filter(|why| !why.is_empty());
        let open = named(&open, "PVCs are progressing");
        return Said::no(
            words::REASON_PROGRESSING,
            why.map_or_else(|| open.clone(), |why| format!("{open}: {why}")),
        );
    }
    let flowing = with(claims, type_, |said| said.is_some_and(|said| said.holds != Holds::True));
    match flowing.is_empty() {
        true => Said::yes(words::REASON_DATA_PROTECTED, "PVC data is at the peer"),
        false => Said::no(words::REASON_REPLICATING, named(&flowing, "PVCs are replicating")),
    }
}

fn copied_protected(claims: &[(&str, &Verdict)], primary: bool) -> Said {
    if claims.is_empty() || !primary {
        return Said::yes(words::REASON_UNUSED, "No PVCs are copied by a mover");
    }
    let set_up = with(claims, words::TYPE_REPLICATION_SOURCE_SETUP, |said| {
        said.is_none_or(|said| said.holds != Holds::True)
    });
    if !set_up.is_empty() {
        return Said::no(words::REASON_PROGRESSING, named(&set_up, "senders are being set up"));
    }
    let never: Vec<&str> =
        claims.iter().filter(|(_, verdict)| verdict.last_sync.is_none()).map(|(name, _)| *name).collect();
    if never.is_empty() {
        return Said::yes(words::REASON_DATA_PROTECTED, "every copied PVC was copied at least once");
    }
    let open = named(&never, "PVCs wait for their first copy");
    let told = claims.iter().filter(|(_, verdict)| verdict.last_sync.is_none());
    let why = told.filter_map(|(_, verdict)| verdict.said.get(words::TYPE_DATA_PROTECTED)).next();
    let why = why.map(|said| format!("{open}. {}", said.message));
    Said::no(words::REASON_PROGRESSING, why.unwrap_or(open))
}

/// Claims whose copies are late, where there are any: what is at the peer is older than was agreed.
pub fn late(verdicts: Verdicts<'_>) -> Option<Said> {
    let late: Vec<&str> =
        verdicts.iter().filter(|(_, verdict)| verdict.late).map(|(name, _)| name.as_str()).collect();
    let message = "copies at the peer are older than twice the interval";
    (!late.is_empty()).then(|| Said::no(words::REASON_PROGRESSING, named(&late, message)))
}
