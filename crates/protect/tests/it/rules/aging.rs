//! Copies that are late.

use super::{now, world};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_protect::decide::late::judge;
use lifeboat_protect::decide::plan::{Plan, Said};
use lifeboat_protect::status::{data_protected, late, merge};
use serde_json::{Value, json};

/// Judges a copy of `one` that was cut so many seconds ago, with an interval of five minutes.
fn judged(age: i64, shown: bool, change: impl FnOnce(&mut Value)) -> (Plan, Option<Timestamp>) {
    let world = world(|group| {
        if shown {
            group["status"]["blockers"] =
                json!([{ "reason": "Late", "message": "m", "pvc": "one", "since": "2029-12-31T23:00:00Z" }]);
        }
        change(group);
    });
    let mut plan = Plan::default();
    plan.verdict("one").last_sync = Some(Time(now() - SignedDuration::from_secs(age)));
    plan.verdict("never");
    judge(&world, now(), &mut plan);
    let until = plan.until;
    (plan, until)
}

#[test]
fn s15_a_copy_older_than_twice_the_interval_is_late() {
    let check = |rule: &str, age: i64, shown: bool, change: fn(&mut Value), is: bool| {
        let (plan, until) = judged(age, shown, change);
        assert_eq!(plan.verdicts["one"].late, is, "{rule}");
        assert_eq!(plan.waits.len(), usize::from(is), "{rule}");
        assert!(!plan.verdicts["never"].late, "{rule}: what was never copied is told otherwise");
        assert!(!(is && until.is_some()), "{rule}: only a new copy can change that, and it wakes us");
    };
    let plain: fn(&mut Value) = |_| {};
    check("S15: fresh", 60, false, plain, false);
    check("S15: a whole interval old", 300, false, plain, false);
    check("S15: twice the interval old", 600, false, plain, false);
    check("S15: older than that", 601, false, plain, true);
    check("S15: late before, and still not fresh", 400, true, plain, true);
    check("S15: late before, and fresh again", 299, true, plain, false);
    check("S15: from a clock that is ahead", -60, false, plain, false);
    check(
        "S15: not on a secondary",
        9999,
        false,
        |g| g["spec"]["replicationState"] = json!("secondary"),
        false,
    );
    check(
        "S15: not while copies are held back",
        9999,
        false,
        |g| g["spec"]["prepareForFinalSync"] = json!(true),
        false,
    );
    check(
        "S15: no interval, no word",
        9999,
        false,
        |g| g["spec"]["async"]["schedulingInterval"] = json!("soon"),
        false,
    );
    let (_, until) = judged(60, false, |_| {});
    assert_eq!(until, Some(now() + SignedDuration::from_secs(540)), "looked at when it would become late");
}

#[test]
fn s15_what_is_late_is_not_protected_and_says_nothing_about_records() {
    let (mut plan, _) = judged(601, false, |_| {});
    plan.verdicts.remove("never");
    let said = |plan: &Plan| {
        let (replicated, copied) = data_protected(&plan.verdicts, true);
        let all: Vec<Said> = late(&plan.verdicts).into_iter().chain([replicated, copied.clone()]).collect();
        (merge(&all), copied)
    };
    // A hub takes `Replicating` for protected, so what is late must not hide behind it.
    let (group, _) = said(&plan);
    assert_eq!(group.reason, "Progressing");
    assert!(group.message.contains("older than twice the interval: one"), "{}", group.message);
    let copied = plan.verdict("one");
    copied.copied = true;
    copied.say("ReplicationSourceSetup", Said::yes("SourceInitialized", ""));
    let (group, records) = said(&plan);
    assert_eq!((group.reason, records.reason), ("Progressing", "DataProtected"));
}
