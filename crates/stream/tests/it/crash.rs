//! Links that are cut, stalled or lie at every place, and what is left of a sync then.

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use lifeboat_stream::{Error, Event, Timing};
use tempfile::tempdir;

use super::link::{Faults, Link};
use super::pair::{Peer, job, sync, timing, tree};
use super::trees::{corpus, noise, same};

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_cut_anywhere_publishes_nothing_and_the_next_goes_on() {
    for checkpoint in [1, 200_000, u64::MAX] {
        let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
        let source = east.path().join("source");
        fs::create_dir(&source).unwrap();
        corpus(&source);
        for n in 0..8 {
            fs::write(source.join(format!("file-{n}")), noise(n, 80_000)).unwrap();
        }
        let mut peer = Peer::without_destination(west.path()).await;
        fs::create_dir(peer.staging()).unwrap();
        peer.expect(None, |destination| destination.checkpoint = checkpoint);
        let mut whole = 0;
        // Cut and cut again, each time a little later, always into the same staging volume.
        for cut in (0..).map(|n| 10 + n * 90_000) {
            let link = Link::new(peer.address, Faults { cut_after: Some(cut), ..Faults::default() }).await;
            let outcome = sync(tree(&source), link.address, job(east.path(), "g1")).await;
            whole += link.bytes();
            if let Ok(sent) = outcome {
                assert!(sent.resumed, "{sent:?}");
                break;
            }
            // The end is told only after the last record.
            while let Ok(event) = peer.events.try_recv() {
                assert!(!matches!(event, Event::Completed(_)), "cut at {cut}");
            }
        }
        assert_eq!(peer.completed().await.generation, "g1");
        same(&source, &peer.staging());
        if checkpoint == 1 {
            // What was confirmed does not cross the link again: each try costs at most what was under way.
            assert!(whole < 3_000_000, "{whole} bytes in all");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_part_is_not_sent_again() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), noise(1, 8 << 20)).unwrap();
    let mut peer = Peer::without_destination(west.path()).await;
    fs::create_dir(peer.staging()).unwrap();
    peer.expect(None, |destination| destination.checkpoint = 1 << 20);
    let link = Link::new(peer.address, Faults { cut_after: Some(6 << 20), ..Faults::default() }).await;
    let error = sync(tree(&source), link.address, job(east.path(), "g1")).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    // The receiver notices, and is free again.
    while !matches!(peer.events.recv().await.unwrap(), Event::Failed { .. }) {}
    let sent = sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    assert!(sent.resumed);
    assert!(sent.bytes_on_wire < 4 << 20, "{} bytes for the last quarter", sent.bytes_on_wire);
    peer.completed().await;
    same(&source, &peer.staging());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_changed_meanwhile_is_not_gone_on_with() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), noise(1, 4 << 20)).unwrap();
    let mut peer = Peer::new(west.path()).await;
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    peer.publish("g1");
    peer.expect(Some("g1"), |destination| destination.checkpoint = 1);
    fs::write(source.join("large"), noise(2, 4 << 20)).unwrap();
    let link = Link::new(peer.address, Faults { cut_after: Some(2 << 20), ..Faults::default() }).await;
    sync(tree(&source), link.address, job(east.path(), "g2")).await.unwrap_err();
    while !matches!(peer.events.recv().await.unwrap(), Event::Failed { .. }) {}
    let file = fs::OpenOptions::new().write(true).open(source.join("large")).unwrap();
    file.write_all_at(b"changed under way", 0).unwrap();
    let error = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap_err();
    assert!(!error.is_transient(), "{error}");
    // And nobody goes on with it later, whatever the source says then.
    while !matches!(peer.events.recv().await.unwrap(), Event::Refused { .. }) {}
    let error = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap_err();
    assert!(matches!(error, Error::Refused(lifeboat_stream::Refusal::Spoiled(_))), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bit_that_flips_on_the_way_is_noticed() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), noise(1, 200_000)).unwrap();
    let mut peer = Peer::new(west.path()).await;
    for at in [0, 20, 40, 80, 90, 150, 1000, 100_000] {
        let link = Link::new(peer.address, Faults { flip: Some(at), ..Faults::default() }).await;
        sync(tree(&source), link.address, job(east.path(), "g1")).await.unwrap_err();
        while let Ok(event) = peer.events.try_recv() {
            assert!(!matches!(event, Event::Completed(_)), "flipped {at}");
        }
    }
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_falls_silent_is_given_up_and_a_slow_one_is_not() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), noise(1, 1 << 20)).unwrap();
    let short = Timing { keepalive: Duration::from_millis(100), silence: Duration::from_secs(1), ..timing() };
    let mut peer = Peer::timed(west.path(), short).await;
    fs::create_dir(peer.staging()).unwrap();
    peer.expect(None, |_| {});
    let hasty = || {
        let mut job = job(east.path(), "g1");
        job.limits.timing = short;
        job
    };
    let link = Link::new(peer.address, Faults { stall_after: Some(300_000), ..Faults::default() }).await;
    let error = sync(tree(&source), link.address, hasty()).await.unwrap_err();
    assert!(matches!(error, Error::Link(_)), "{error}");
    while !matches!(peer.events.recv().await.unwrap(), Event::Failed { .. }) {}
    let slow = Faults { delay: Duration::from_millis(20), ..Faults::default() };
    let link = Link::new(peer.address, slow).await;
    sync(tree(&source), link.address, hasty()).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_stops_and_a_removed_destination_is_quiet() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), noise(1, 4 << 20)).unwrap();
    let mut peer = Peer::new(west.path()).await;
    let slow = || {
        let mut job = job(east.path(), "g1");
        job.limits.bytes_per_second = Some(1 << 20);
        job
    };
    let call = sync(tree(&source), peer.address, slow());
    let mut call = Box::pin(call);
    // Until it has begun.
    loop {
        tokio::select! {
            outcome = &mut call => panic!("{outcome:?}"),
            event = peer.events.recv() => if matches!(event, Some(Event::Started { .. })) { break },
        }
    }
    drop(call);
    while !matches!(peer.events.recv().await.unwrap(), Event::Failed { .. }) {}

    let running = tokio::spawn(sync(tree(&source), peer.address, slow()));
    while !matches!(peer.events.recv().await.unwrap(), Event::Started { .. }) {}
    peer.destinations.remove("vol").await;
    let size = || fs::metadata(peer.staging().join("file")).map(|meta| meta.len()).unwrap_or(0);
    let before = size();
    running.await.unwrap().unwrap_err();
    assert_eq!(before, size());
}
