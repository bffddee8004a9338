//! Rules as rows, then any sequence of calls: no key is lost, none is handed out twice at once, none starves.

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ms(u64);

impl Add<Duration> for Ms {
    type Output = Self;
    fn add(self, more: Duration) -> Self {
        Self(self.0 + u64::try_from(more.as_millis()).unwrap())
    }
}

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(1000) };

fn queue(keys: &[u8]) -> WorkQueue<u8, Ms> {
    let mut queue = WorkQueue::new(BACKOFF, Duration::ZERO);
    for key in keys {
        queue.wake(*key, Ms(0));
    }
    queue
}

fn key((key, _): (u8, Ms)) -> u8 {
    key
}

fn drain(queue: &mut WorkQueue<u8, Ms>, now: u64) -> Vec<u8> {
    std::iter::from_fn(|| queue.take(Ms(now)).map(key)).collect()
}

#[test]
fn a_key_stands_in_line_once() {
    assert_eq!(drain(&mut queue(&[1, 2, 1, 1]), 0), [1, 2]);
}

#[test]
fn a_key_woken_while_running_comes_again_behind_the_others() {
    let mut queue = queue(&[1, 2]);
    assert_eq!(queue.take(Ms(0)).map(key), Some(1));
    queue.wake(1, Ms(0));
    assert_eq!(queue.take(Ms(0)).map(key), Some(2));
    assert_eq!(queue.take(Ms(0)), None, "1 is still being looked at");
    queue.wake(3, Ms(0));
    queue.done(&1, Ended::Quiet, Ms(0));
    assert_eq!(drain(&mut queue, 0), [3, 1]);
}

#[test]
fn what_a_second_look_has_seen_wakes_nobody() {
    let mut queue = queue(&[1]);
    queue.take(Ms(0));
    queue.wake(1, Ms(0));
    assert!(queue.woken(&1));
    queue.looking(&1);
    queue.done(&1, Ended::Quiet, Ms(0));
    assert_eq!(drain(&mut queue, 0), [0; 0]);
}

#[test]
fn a_delayed_key_comes_at_its_time_or_when_woken() {
    let mut queue = queue(&[1, 2]);
    drain(&mut queue, 0);
    queue.done(&1, Ended::At(Ms(50)), Ms(0));
    queue.done(&2, Ended::At(Ms(50)), Ms(0));
    assert_eq!(queue.next_due(), Some(Ms(50)));
    assert_eq!(drain(&mut queue, 49), [0; 0]);
    queue.wake(2, Ms(0));
    assert_eq!(drain(&mut queue, 49), [2]);
    assert_eq!(drain(&mut queue, 50), [1]);
    assert_eq!(queue.next_due(), None);
}

#[test]
fn a_swarm_of_events_is_gathered_into_one_look_after_the_first() {
    let mut queue = WorkQueue::new(BACKOFF, Duration::from_millis(50));
    queue.wake(1, Ms(0));
    assert_eq!(queue.take(Ms(0)).map(key), Some(1), "the first is never held up");
    queue.wake(1, Ms(0));
    queue.done(&1, Ended::Quiet, Ms(10));
    for now in [10, 30, 59] {
        queue.wake(1, Ms(0));
        assert_eq!(queue.take(Ms(now)), None, "it rests at {now}");
    }
    assert_eq!(queue.next_due(), Some(Ms(60)));
    assert_eq!(drain(&mut queue, 60), [1]);
    queue.done(&1, Ended::At(Ms(1000)), Ms(60));
    assert_eq!(drain(&mut queue, 200), [0; 0]);
    queue.wake(1, Ms(0));
    assert_eq!(drain(&mut queue, 200), [1], "it has rested, so it comes at once");
    queue.done(&1, Ended::At(Ms(210)), Ms(200));
    queue.wake(1, Ms(0));
    assert_eq!(drain(&mut queue, 210), [1], "a time of its own that comes earlier stays");
}

#[test]
fn pauses_double_up_to_the_longest_and_success_forgets_them() {
    let mut queue = queue(&[1]);
    let fail = |queue: &mut WorkQueue<u8, Ms>, now: Ms, expected: u64| {
        queue.take(now);
        let back = queue.done(&1, Ended::Failed { at_least: Duration::ZERO }, now).unwrap();
        assert_eq!(back.0 - now.0, expected);
        back
    };
    let pauses = [10, 20, 40, 80, 160, 320, 640, 1000, 1000];
    let now = pauses.into_iter().fold(Ms(0), |now, expected| fail(&mut queue, now, expected));
    queue.take(now);
    queue.done(&1, Ended::Quiet, now);
    queue.wake(1, Ms(0));
    fail(&mut queue, now, 10);
}

#[test]
fn a_failed_key_waits_for_its_pause_though_it_woke_itself() {
    let mut queue = queue(&[1]);
    queue.take(Ms(0));
    queue.wake(1, Ms(0));
    queue.done(&1, Ended::Failed { at_least: Duration::ZERO }, Ms(0));
    assert_eq!(queue.take(Ms(9)), None);
    assert_eq!(queue.take(Ms(10)).map(key), Some(1));
}

#[test]
fn a_key_tells_since_when_it_stood_in_line() {
    let mut queue = queue(&[1]);
    queue.wake(1, Ms(5));
    assert_eq!(queue.take(Ms(7)), Some((1, Ms(0))), "since it was first woken");
    queue.done(&1, Ended::At(Ms(20)), Ms(8));
    assert_eq!(
        queue.take(Ms(21)),
        Some((1, Ms(21))),
        "since its time was seen to have come, not since it began to wait"
    );
}

#[test]
fn the_least_pause_holds() {
    let mut queue = queue(&[1]);
    queue.take(Ms(0));
    let back = queue.done(&1, Ended::Failed { at_least: Duration::from_secs(60) }, Ms(0));
    assert_eq!(back, Some(Ms(60_000)));
}

#[test]
fn a_key_woken_while_it_failed_does_not_wait_for_the_slow_retry() {
    let mut queue = queue(&[1]);
    queue.take(Ms(0));
    queue.wake(1, Ms(0));
    let back = queue.done(&1, Ended::Failed { at_least: Duration::from_secs(60) }, Ms(0));
    assert!(back.is_some_and(|back| back < Ms(60_000)), "{back:?}");
}

#[derive(Debug, Clone)]
enum Call {
    Wake(u8),
    Take,
    Done(usize, Ended<Ms>),
    Pass(u64),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let ended = prop_oneof![
        Just(Ended::Quiet),
        (0u64..500).prop_map(|at| Ended::At(Ms(at))),
        Just(Ended::Failed { at_least: Duration::ZERO }),
    ];
    let call = prop_oneof![
        (0u8..6).prop_map(Call::Wake),
        Just(Call::Take),
        (any::<usize>(), ended).prop_map(|(n, ended)| Call::Done(n, ended)),
        (1u64..200).prop_map(Call::Pass),
    ];
    proptest::collection::vec(call, 0..200)
}

proptest! {
    #[test]
    fn nothing_is_lost_doubled_or_starved(calls in calls(), gather in prop_oneof![Just(0), Just(30)]) {
        let mut queue: WorkQueue<u8, Ms> = WorkQueue::new(BACKOFF, Duration::from_millis(gather));
        let mut now = 0;
        let mut running: Vec<u8> = Vec::new();
        // Keys owed a look: woken, or due at a time, since they were last taken.
        let mut owed: BTreeSet<u8> = BTreeSet::new();
        // How many others were taken while a key stood ready in line.
        let mut passed_over: BTreeMap<u8, usize> = BTreeMap::new();
        for call in calls {
            match call {
                Call::Wake(key) => {
                    queue.wake(key, Ms(now));
                    owed.insert(key);
                    if !running.contains(&key) {
                        passed_over.entry(key).or_default();
                    }
                }
                Call::Take => {
                    let Some((key, since)) = queue.take(Ms(now)) else { continue };
                    prop_assert!(since.0 <= now, "{key} stood in line before its time");
                    prop_assert!(!running.contains(&key), "{key} is handed out twice at once");
                    owed.remove(&key);
                    passed_over.remove(&key);
                    for others in passed_over.values_mut() {
                        *others += 1;
                        prop_assert!(*others <= 12, "a ready key is passed over again and again");
                    }
                    running.push(key);
                }
                Call::Done(n, ended) => {
                    if running.is_empty() { continue }
                    let key = running.remove(n % running.len());
                    queue.done(&key, ended, Ms(now));
                    if !matches!(ended, Ended::Quiet) {
                        owed.insert(key);
                    }
                }
                Call::Pass(ms) => now += ms,
            }
        }
        for key in running {
            queue.done(&key, Ended::Quiet, Ms(now));
        }
        let left: BTreeSet<u8> = drain(&mut queue, now + 10_000).into_iter().collect();
        prop_assert!(owed.is_subset(&left), "owed {owed:?}, left {left:?}");
        prop_assert_eq!(queue.next_due(), None);
    }
}
