//! What the loop does with decisions: go on, pause, wait, stop.

use crate::Cluster;
use crate::toy::{Thing, Toy};
use lifeboat_engine::{Class, Engine, Settings, Waits, Wiring};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

struct Run {
    cluster: Cluster,
    toy: Toy,
    wiring: Wiring<String>,
    waits: Waits,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn start(scripts: &[(&str, &[Thing])], settings: Settings) -> Run {
    let cluster = Cluster::new();
    let toy = Toy::new(scripts);
    let mut engine = Engine::new("toy", cluster.client(), cluster.clock.clone(), settings);
    let wiring = engine.controller(toy.clone());
    for (key, _) in scripts {
        wiring.wake((*key).to_owned());
    }
    let (waits, stop) = (engine.waits(), CancellationToken::new());
    let stopped = stop.clone();
    let task = tokio::spawn(async move { engine.run(stopped.cancelled_owned()).await });
    Run { cluster, toy, wiring, waits, stop, task }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn fail(class: Class, times: u32) -> Thing {
    Thing::Fail { class, times }
}

#[tokio::test(start_paused = true)]
async fn one_pass_goes_as_far_as_it_can() {
    let run = start(&[("a", &[Thing::Step; 5])], Settings::default());
    seconds(1).await;
    assert_eq!(run.toy.left("a"), 0);
    assert_eq!(run.toy.act_times("a"), [0; 5]);
    assert_eq!(run.toy.looks("a"), 6, "five turns and one that finds nothing to do");
    assert_eq!(run.toy.state.lock().shows, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_pass_over_the_same_world_writes_nothing() {
    let run = start(&[("a", &[])], Settings::default());
    seconds(1).await;
    run.wiring.wake("a".to_owned());
    seconds(1).await;
    assert_eq!(run.toy.looks("a"), 2);
    assert_eq!(run.toy.state.lock().shows, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn a_pass_without_an_end_is_ended_told_and_held_up_by_nobody_else() {
    let run = start(&[("a", &[Thing::Endless]), ("b", &[Thing::Step])], Settings::default());
    seconds(1).await;
    assert_eq!(run.toy.left("b"), 0);
    let waiting = run.waits.of("toy", "a").unwrap();
    assert_eq!(waiting.reason, "WouldNotSettle");
    assert!(waiting.sentence.contains("Endless"), "{}", waiting.sentence);
    let turns = run.toy.act_times("a").len();
    assert!(turns <= 50 * 7, "{turns} turns: each pass is paused for longer than the one before");
}

#[tokio::test(start_paused = true)]
async fn passing_failures_are_tried_again_after_growing_pauses() {
    let run = start(&[("a", &[fail(Class::Transient, 4), Thing::Step])], Settings::default());
    seconds(1).await;
    assert_eq!(run.toy.act_times("a"), [0, 10, 30, 70, 150, 150]);
    let shows = run.toy.state.lock().shows.clone();
    assert_eq!(shows, ["trying in vain", "done"], "told once, and taken back once");
    assert!(run.waits.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_told_and_tried_again_slowly_or_on_change() {
    let run = start(&[("a", &[fail(Class::BadInput, 2)])], Settings::default());
    seconds(1).await;
    assert_eq!(run.toy.act_times("a"), [0]);
    assert_eq!(run.toy.state.lock().shows, ["trying in vain"]);
    let waiting = run.waits.of("toy", "a").unwrap();
    assert_eq!((waiting.reason.as_str(), waiting.sentence.as_str()), ("FailFailed", "trying in vain"));
    // A change is looked at at once; without one it takes a minute.
    run.wiring.wake("a".to_owned());
    seconds(1).await;
    assert_eq!(run.toy.act_times("a"), [0, 1000]);
    seconds(70).await;
    assert_eq!(run.toy.act_times("a"), [0, 1000, 61_000]);
    assert_eq!(run.toy.state.lock().shows, ["trying in vain", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_world_is_looked_at_again_at_once_but_not_for_ever() {
    let run = start(&[("a", &[fail(Class::Stale, 3)])], Settings::default());
    seconds(1).await;
    assert_eq!(run.toy.act_times("a"), [0; 4]);
    let run = start(&[("a", &[fail(Class::Stale, 1000)])], Settings::default());
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(run.toy.act_times("a").len(), 11);
    assert_eq!(run.waits.of("toy", "a").unwrap().reason, "ChangesTooFast");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_time_or_when_something_changes() {
    let run = start(&[("a", &[]), ("b", &[])], Settings::default());
    let until = "2030-01-01T00:10:00Z".parse().unwrap();
    for key in ["a", "b"] {
        run.toy.edit(key, |script| script.dinner_until = Some(until));
        run.wiring.wake(key.to_owned());
    }
    seconds(1).await;
    let waiting = run.waits.of("toy", "a").unwrap();
    assert_eq!((waiting.reason.as_str(), waiting.until), ("Dinner", Some(until)));
    assert_eq!(waiting.sentence, "it is dinner time");
    run.toy.edit("b", |script| script.todo.push_back(Thing::Step));
    run.wiring.wake("b".to_owned());
    seconds(1).await;
    assert_eq!(run.toy.left("b"), 0, "the change did not wait for the time");
    seconds(590).await;
    assert_eq!(run.waits.list().len(), 2);
    seconds(20).await;
    assert!(run.waits.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn keys_are_worked_on_side_by_side_up_to_the_bound() {
    let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let scripts: Vec<(&str, &[Thing])> =
        names.iter().map(|name| (name.as_str(), &[Thing::Slow { seconds: 1 }] as &[Thing])).collect();
    let run = start(&scripts, Settings { keys_at_once: 4, ..Settings::default() });
    tokio::time::sleep(Duration::from_millis(4900)).await;
    // Woken again and again, the first key still lets the others go first.
    assert!(names[..16].iter().all(|name| run.toy.left(name) == 0));
    assert_eq!(run.toy.state.lock().most_at_once, 4);
    seconds(1).await;
    assert!(names.iter().all(|name| run.toy.left(name) == 0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_runs_and_takes_up_nothing_new() {
    let slow: &[Thing] = &[Thing::Slow { seconds: 10 }];
    let run = start(&[("a", slow), ("b", slow)], Settings { keys_at_once: 1, ..Settings::default() });
    seconds(1).await;
    run.stop.cancel();
    run.task.await.unwrap();
    assert_eq!((run.toy.left("a"), run.toy.left("b")), (0, 1));
    assert_eq!(run.toy.began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_hangs_is_given_up_and_tried_again() {
    let run = start(&[("a", &[Thing::Slow { seconds: 3600 }])], Settings::default());
    seconds(61).await;
    assert_eq!(run.waits.of("toy", "a").unwrap().sentence, "Slow was not done within 60 s");
}

#[tokio::test(start_paused = true)]
async fn an_effect_may_ask_for_more_time_than_others() {
    let run = start(&[("a", &[Thing::Patient { seconds: 3000 }])], Settings::default());
    seconds(3001).await;
    assert_eq!((run.toy.left("a"), run.toy.act_times("a")), (0, vec![0]));
    let run = start(&[("a", &[Thing::Patient { seconds: 9000 }])], Settings::default());
    seconds(3601).await;
    assert_eq!(run.waits.of("toy", "a").unwrap().sentence, "Patient was not done within 3600 s");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_concerns_nothing_is_forgotten() {
    let run = start(&[], Settings::default());
    run.wiring.wake("nobody".to_owned());
    seconds(1).await;
    assert_eq!(run.toy.looks("nobody"), 1);
    assert!(run.waits.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_time_that_has_passed_does_not_spin() {
    let run = start(&[("a", &[])], Settings::default());
    run.toy.edit("a", |script| {
        script.dinner_until = Some(jiff::Timestamp::UNIX_EPOCH);
        script.dinner_is_late = true;
    });
    run.wiring.wake("a".to_owned());
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    let looks = run.toy.looks("a");
    assert!((10..=13).contains(&looks), "{looks} looks in ten seconds: one a second");
}

#[tokio::test(start_paused = true)]
async fn what_must_be_on_record_is_not_done_while_it_cannot_be_written() {
    let run = start(&[("a", &[Thing::OnRecord])], Settings::default());
    // The first pass tries to show it, then to show what failed.
    run.toy.state.lock().mute = 4;
    seconds(1).await;
    assert_eq!(run.toy.act_times("a"), [30], "after the first two passes");
    assert_eq!(run.toy.state.lock().shows, ["recorded", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_holds_nothing_else_up() {
    let run = start(&[("a", &[fail(Class::Transient, 1), Thing::Step])], Settings::default());
    // What failed cannot be shown, nor beside the second try.
    run.toy.state.lock().mute = 2;
    seconds(1).await;
    assert_eq!(run.toy.left("a"), 0);
    assert_eq!(run.toy.act_times("a"), [0, 10, 30]);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_is_told_by_an_event() {
    let told = async |refuses: bool| {
        let run = start(&[("a", &[Thing::OnRecord])], Settings::default());
        {
            let mut state = run.toy.state.lock();
            (state.mute, state.refuses) = (u32::MAX, refuses);
        }
        seconds(150).await;
        assert!(run.toy.act_times("a").is_empty(), "nothing is done off the record");
        let reasons = crate::recorder::events(&run.cluster).await.into_iter().map(|(_, reason, _)| reason);
        reasons.collect::<Vec<_>>()
    };
    assert_eq!(told(true).await, ["StatusFailed"], "once, however often it is tried");
    assert!(told(false).await.is_empty(), "what passes is not worth an event");
}
