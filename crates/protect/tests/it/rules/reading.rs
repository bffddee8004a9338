//! What a record, or its absence, is taken for.

use super::world;
use lifeboat_protect::decide::restore::judged;
use lifeboat_protect::ledger::{Reading, Record, Seen};
use serde_json::{Value, json};

fn check(
    rule: &str,
    change: fn(&mut Value),
    newest: bool,
    seen: &[(&str, Result<Seen, &str>)],
    expected: &str,
) {
    check_beside(rule, change, newest, seen, &[], expected);
}

/// With stores that have another fleet's records.
fn check_beside(
    rule: &str,
    change: fn(&mut Value),
    newest: bool,
    seen: &[(&str, Result<Seen, &str>)],
    foreign: &[&str],
    expected: &str,
) {
    let reading = Reading {
        newest: newest.then(Record::default),
        epoch: 0,
        orphan: None,
        stores: seen.iter().map(|(name, seen)| ((*name).to_owned(), seen.map_err(str::to_owned))).collect(),
        foreign: foreign.iter().map(|name| ((*name).to_owned(), "of another fleet".to_owned())).collect(),
    };
    let told = match judged(&world(change), &reading) {
        Ok(Some(_)) => "record".to_owned(),
        Ok(None) => "nothing".to_owned(),
        Err(why) => lifeboat_engine::Why::reason(&why),
    };
    assert_eq!(told, expected, "{rule}");
}

#[test]
fn d1_empty_is_not_success() {
    let plain: fn(&mut Value) = |_| {};
    let failover: fn(&mut Value) = |g| g["spec"]["action"] = json!("Failover");
    let relocate: fn(&mut Value) = |g| g["spec"]["action"] = json!("Relocate");
    let first: fn(&mut Value) =
        |g| g["metadata"]["annotations"] = json!({"ramendr.openshift.io/first-deployment": "true"});
    let (empty, down, half) = (Ok(Seen::Empty), Err("down"), Ok(Seen::Something));
    check("a first deployment", plain, false, &[("east", empty)], "nothing");
    check("after a failover", failover, false, &[("east", empty)], "NothingRecorded");
    check("after a relocation", relocate, false, &[("east", empty)], "NothingRecorded");
    check("out of reach", plain, false, &[("east", down)], "StoresUnreachable");
    check("not asked", plain, false, &[], "StoresUnreachable");
    check(
        "one empty, one out of reach",
        failover,
        false,
        &[("east", empty), ("west", down)],
        "StoresUnreachable",
    );
    check("the hub says that it is the first", first, false, &[("east", down)], "nothing");
    check("something that is not whole", first, false, &[("east", half)], "CannotRestore");
    check("a record beside a dead store", failover, true, &[("east", half), ("west", down)], "record");
    check_beside("another fleet's records", plain, false, &[("west", empty)], &["east"], "OtherFleet");
    check_beside("after a failover too", failover, false, &[("west", empty)], &["east"], "OtherFleet");
    check_beside("a record of ours beside them", failover, true, &[("west", half)], &["east"], "record");
    check_beside("the hub says that it is the first", first, false, &[("west", empty)], &["east"], "nothing");
}
