//! Words and durations as they stand on the wire.

use lifeboat_api::Duration;
use lifeboat_api::ramen::{DRAction, DRState, Progression};
use lifeboat_api::{replication, volsync};
use std::time::Duration as StdDuration;

#[test]
fn a_word_is_what_it_says() {
    assert_eq!(DRState::from("FailedOver"), DRState::FailedOver);
    assert_eq!(DRState::FailedOver.to_string(), "FailedOver");
    assert_eq!(Progression::CleaningUp.as_str(), "Cleaning Up");
    assert_eq!(replication::ReplicationState::Primary.as_str(), "primary");
    assert_eq!(replication::State::Primary.as_str(), "Primary");
    assert_eq!(volsync::CopyMethod::None.as_str(), "None");
    assert!(DRAction::Failover.is_known());
    assert!(!DRAction::from("failover").is_known(), "words are exact");
    assert_eq!(DRAction::default().as_str(), "");
}

#[test]
fn durations_are_written_as_go_writes_them() {
    let check = |nanos: u64, text: &str| {
        let duration = Duration::from(StdDuration::from_nanos(nanos));
        assert_eq!(duration.to_string(), text);
        assert_eq!(duration.to_std(), Some(StdDuration::from_nanos(nanos)), "{text}");
    };
    check(0, "0s");
    check(7, "7ns");
    check(1_500, "1.5µs");
    check(20_000_000, "20ms");
    check(1_000_000_000, "1s");
    check(12_500_000_000, "12.5s");
    check(300_000_000_000, "5m0s");
    check(3_600_000_000_000, "1h0m0s");
    check(90_061_000_000_000, "25h1m1s");
}

#[test]
fn a_text_that_is_no_duration_has_no_length() {
    let check = |text: &str| assert_eq!(Duration(text.into()).to_std(), None, "{text}");
    check("");
    check("soon");
    check("5");
    check("-5s");
}
