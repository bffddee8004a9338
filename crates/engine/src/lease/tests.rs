//! The rules as rows, then many candidates with clocks of their own over a lease whose writes are slow: never two leaders.

use super::*;
use proptest::prelude::*;

const CONFIG: LeaseConfig = LeaseConfig {
    lasts: Duration::from_secs(15),
    margin: Duration::from_secs(5),
    every: Duration::from_secs(2),
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1000 + second).unwrap()
}

fn held(holder: Option<&str>, seen: i64) -> Option<LeaseView> {
    Some(LeaseView { holder: holder.map(str::to_owned), lasts: CONFIG.lasts, seen: at(seen) })
}

#[test]
fn rules() {
    let check = |now: i64, lease: Option<LeaseView>, leads: bool, expected: Verdict| {
        assert_eq!(decide(at(now), lease.as_ref(), "me", leads, &CONFIG), expected, "{lease:?} at {now}");
    };
    let wait = |second| Verdict::Wait { until: at(second) };
    // No lease: the first takes it; a leader whose lease is gone leads no more.
    check(0, None, false, Verdict::Acquire);
    check(0, None, true, Verdict::Lost);
    // Given back: free at once.
    check(0, held(None, 0), false, Verdict::Acquire);
    check(0, held(None, 0), true, Verdict::Lost);
    // Another's: wait as long as it promises, from when it was seen.
    check(0, held(Some("other"), 0), false, wait(15));
    check(14, held(Some("other"), 0), false, wait(15));
    check(15, held(Some("other"), 0), false, Verdict::Acquire);
    check(1, held(Some("other"), 0), true, Verdict::Lost);
    // Mine: renew in good time, stop before others may start.
    check(1, held(Some("me"), 0), true, wait(2));
    check(2, held(Some("me"), 0), true, Verdict::Renew);
    check(9, held(Some("me"), 0), true, Verdict::Renew);
    check(10, held(Some("me"), 0), true, Verdict::Lost);
    // Mine by name only: an answer that never came.
    check(0, held(Some("me"), 0), false, Verdict::Acquire);
}

/// A lease on a server: who holds it, and how often it was written.
#[derive(Clone, Default)]
struct Stored {
    holder: Option<usize>,
    version: u64,
}

struct Write {
    by: usize,
    expects: u64,
    sent: Timestamp,
    lands: u64,
    answered: u64,
}

/// One candidate, with a clock that is off by an offset and runs at a rate of its own.
struct Candidate {
    offset_ms: i64,
    rate_permille: i64,
    view: Option<(u64, LeaseView)>,
    leads: bool,
    waits_for_answer: bool,
}

impl Candidate {
    fn clock(&self, real_ms: u64) -> Timestamp {
        let ran = i64::try_from(real_ms).unwrap() * self.rate_permille / 1000;
        Timestamp::from_millisecond(1_000_000_000 + self.offset_ms + ran).unwrap()
    }

    /// Leads by its own belief: it stops by itself when its time is up, even while an answer is on its way.
    fn believes(&self, real_ms: u64) -> bool {
        let fresh = |view: &LeaseView| self.clock(real_ms) < stop_at(view.seen, &CONFIG);
        self.leads && self.view.as_ref().is_some_and(|(_, view)| fresh(view))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Clocks are off by up to an hour and run up to a tenth too fast or too slow; reads are late, writes take up to twelve
    /// seconds to land and their answers as long to come, or never come.
    #[test]
    fn never_two_leaders(
        clocks in proptest::collection::vec((-3_600_000i64..3_600_000, 900i64..1100), 2..5),
        chances in proptest::collection::vec(any::<u32>(), 400),
    ) {
        let mut chances = chances.into_iter().cycle();
        let mut chance = |below: u64| u64::from(chances.next().unwrap()) % below;
        let mut stored = Stored::default();
        let mut history: Vec<(u64, Stored)> = vec![(0, Stored::default())];
        let mut writes: Vec<Write> = Vec::new();
        let mut all: Vec<Candidate> = clocks.iter().map(|(offset_ms, rate_permille)| Candidate {
            offset_ms: *offset_ms, rate_permille: *rate_permille, view: None, leads: false, waits_for_answer: false,
        }).collect();
        for step in 0..400u64 {
            let now = step * 500;
            // Writes land in the order they arrive, each only on the version it expects.
            writes.sort_by_key(|write| write.lands);
            for write in &mut writes {
                if write.lands <= now && write.lands != 0 {
                    let lands = write.expects == stored.version;
                    if lands {
                        stored = Stored { holder: Some(write.by), version: stored.version + 1 };
                        history.push((now, stored.clone()));
                    }
                    write.lands = 0;
                    if !lands { write.expects = u64::MAX; }
                }
            }
            for write in writes.extract_if(.., |write| write.lands == 0 && write.answered <= now) {
                let candidate = &mut all[write.by];
                candidate.waits_for_answer = false;
                let lost = write.answered % 7 == 0;
                if write.expects != u64::MAX && !lost {
                    let view = LeaseView { holder: Some(write.by.to_string()), lasts: CONFIG.lasts, seen: write.sent };
                    candidate.view = Some((write.expects + 1, view));
                    candidate.leads = true;
                }
            }
            for (me, candidate) in all.iter_mut().enumerate() {
                // A read shows some version of the last twenty seconds; it never goes back behind what was seen.
                let behind = chance(40) * 500;
                let (version, holder) = history.iter().rev().find(|(at, _)| *at + behind <= now)
                    .map_or((0, None), |(_, stored)| (stored.version, stored.holder));
                let clock = candidate.clock(now);
                if candidate.view.as_ref().is_none_or(|(seen, _)| *seen < version) && version > 0 {
                    // A renewal of its own that it only reads of does not count from the reading.
                    let sent = candidate.view.as_ref().filter(|_| candidate.leads && holder == Some(me));
                    let seen = sent.map_or(clock, |(_, view)| view.seen);
                    let view = LeaseView { holder: holder.map(|who| who.to_string()), lasts: CONFIG.lasts, seen };
                    candidate.view = Some((version, view));
                }
                if candidate.leads && !candidate.believes(now) { candidate.leads = false; }
                if candidate.waits_for_answer { continue; }
                let view = candidate.view.as_ref().map(|(_, view)| view);
                match decide(clock, view, &me.to_string(), candidate.leads, &CONFIG) {
                    Verdict::Acquire | Verdict::Renew => {
                        let expects = candidate.view.as_ref().map_or(0, |(version, _)| *version);
                        let lands = now + 1 + chance(12_000);
                        candidate.waits_for_answer = true;
                        writes.push(Write { by: me, expects, sent: clock, lands, answered: lands + chance(12_000) });
                    }
                    Verdict::Lost => candidate.leads = false,
                    Verdict::Wait { .. } => {}
                }
            }
            let leaders: Vec<usize> = (0..all.len()).filter(|me| all[*me].believes(now)).collect();
            prop_assert!(leaders.len() <= 1, "at {now} ms {leaders:?} lead");
        }
    }
}
