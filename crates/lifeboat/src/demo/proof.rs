//! What the records prove: what was lost, and whether what was promised holds. Pure.

use lifeboat_runner::sample::Findings;
use serde::Serialize;

/// A promise, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// What was promised.
    pub what: String,
    /// Whether it was kept.
    pub kept: bool,
    /// What was found.
    pub found: String,
}

fn promise(what: &str, kept: bool, found: impl Into<String>) -> Promise {
    Promise { what: what.to_owned(), kept, found: found.into() }
}

/// What a failover lost, counted from the records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Records that were acknowledged at the old cluster and are not at the new one.
    pub records: u64,
    /// When the first of them was written, in milliseconds since 1970.
    pub first: Option<i64>,
    /// Milliseconds between the first of them and the last.
    pub millis: i64,
}

/// Counts what was lost between the disk of the dead cluster and that of the new one.
pub fn lost(before: &Findings, after: &Findings, millis_of: impl Fn(u64) -> Option<i64>) -> Lost {
    let records = before.last_number().saturating_sub(after.last_number());
    let first = millis_of(after.last_number() + 1).filter(|_| records > 0);
    let last = before.last.as_ref().map(|last| last.millis);
    let millis = first.zip(last).map_or(0, |(first, last)| last - first);
    Lost { records, first, millis }
}

/// What status claimed before the failover: everything before this moment is at the peer, in milliseconds since 1970.
pub type Claimed = Option<i64>;

/// Promises of a failover. `after` is what the new cluster began with.
pub fn failover(after: &Findings, lost: &Lost, claimed: Claimed) -> Vec<Promise> {
    let mut promises = vec![
        promise(
            "the copy is whole: no record is damaged, none is missing in the middle",
            after.is_whole(),
            format!("{} records, {} damaged", after.records, after.damaged.len()),
        ),
        promise(
            "something was there to fail over to",
            after.last_number() > 0,
            format!("records 1 to {}", after.last_number()),
        ),
    ];
    let Some(claimed) = claimed else {
        promises.push(promise("status said up to when data was safe", false, "it said nothing"));
        return promises;
    };
    // The first record that did not make it; had it been written before the claimed moment, status would have lied.
    let honest = lost.first.is_none_or(|millis| millis >= claimed);
    let found = match lost.first {
        Some(millis) => {
            format!("the first lost record was written {:.1} s after it", seconds(millis - claimed))
        }
        None => "no record was lost".to_owned(),
    };
    promises.push(promise(
        "status told the truth: everything written before the time it named is there",
        honest,
        found,
    ));
    promises
}

/// Promises of a relocation. `before` is the disk that was left, `after` the disk that was moved to, when the writer had not gone on yet or had.
pub fn relocation(before: &Findings, after: &Findings) -> Vec<Promise> {
    vec![
        promise(
            "the records are whole after the move",
            after.is_whole(),
            format!("{} records, {} damaged", after.records, after.damaged.len()),
        ),
        promise(
            "nothing was lost",
            after.last_number() >= before.last_number(),
            format!("{} had been acknowledged, {} are there", before.last_number(), after.last_number()),
        ),
    ]
}

fn seconds(millis: i64) -> f64 {
    std::time::Duration::from_millis(u64::try_from(millis).unwrap_or(0)).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifeboat_runner::sample::Record;

    /// Records 1 to `last`, one each second.
    fn found(last: u64) -> Findings {
        let record = Record { number: last, millis: at(last), writer: "w".to_owned() };
        Findings { records: last, last: (last > 0).then_some(record), ..Findings::default() }
    }

    fn at(number: u64) -> i64 {
        i64::try_from(number).unwrap() * 1_000
    }

    fn check(rule: &str, promises: &[Promise], expected: bool) {
        assert_eq!(promises.iter().all(|one| one.kept), expected, "{rule}: {promises:#?}");
    }

    #[test]
    fn a_failover_keeps_what_status_claimed() {
        let all = |number: u64| Some(at(number));
        let failover = |before: &Findings, after: &Findings, claimed| {
            failover(after, &lost(before, after, all), claimed)
        };
        let three = Lost { records: 3, first: Some(8_000), millis: 2_000 };
        assert_eq!(lost(&found(10), &found(7), all), three);
        assert_eq!(lost(&found(7), &found(7), all), Lost { records: 0, first: None, millis: 0 });
        check("cut between 7 and 8", &failover(&found(10), &found(7), Some(7_500)), true);
        check("cut exactly at the first lost one", &failover(&found(10), &found(7), Some(8_000)), true);
        check("claimed more than there is", &failover(&found(10), &found(7), Some(8_001)), false);
        check("nothing lost", &failover(&found(7), &found(7), Some(9_000)), true);
        check("nothing claimed", &failover(&found(10), &found(7), None), false);
        check("nothing there", &failover(&found(10), &found(0), Some(0)), false);
        let torn = Findings { damaged: vec![3], ..found(7) };
        check("damaged", &failover(&found(10), &torn, Some(7_500)), false);
    }

    #[test]
    fn a_relocation_loses_nothing() {
        check("all there", &relocation(&found(9), &found(9)), true);
        check("and it went on", &relocation(&found(9), &found(12)), true);
        check("one lost", &relocation(&found(9), &found(8)), false);
        let hole = Findings { first_missing: Some(3), ..found(9) };
        check("a hole", &relocation(&found(9), &hole), false);
    }
}
