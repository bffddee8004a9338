//! Syncs that go well, and refusals that are clear.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::Duration;

use jiff::Timestamp;
use lifeboat_stream::{Changed, Destination, Error, Event, Place, Refusal, Source, Trust};
use tempfile::tempdir;

use super::pair::{Peer, job, sync, tree};
use super::trees::{copy, corpus, noise, same, set_time};

#[tokio::test]
async fn a_tree_with_everything_arrives_as_it_is_and_again_costs_nothing() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    corpus(&source);
    let mut peer = Peer::new(west.path()).await;
    let sent = sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    let completed = peer.completed().await;
    same(&source, &peer.staging());
    assert_eq!((completed.generation.as_str(), completed.base, completed.verified), ("g1", None, true));
    assert_eq!(completed.cut, Timestamp::from_second(1_700_000_000).unwrap());
    assert_eq!(sent.entries, completed.entries);
    let holes = fs::metadata(peer.staging().join("holes")).unwrap();
    assert!(holes.blocks() * 512 < 1 << 17, "{} blocks", holes.blocks());

    peer.publish("g1");
    let sent = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap();
    assert_eq!((sent.base.as_deref(), sent.bytes_changed, sent.files, sent.removed), (Some("g1"), 0, 0, 0));
    assert!(sent.bytes_on_wire < 1000, "{} bytes for nothing", sent.bytes_on_wire);
    peer.completed().await;
    same(&source, &peer.staging());
}

#[tokio::test]
async fn changes_of_every_kind_arrive_and_cost_what_they_are() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    corpus(&source);
    fs::write(source.join("large"), noise(7, 4 << 20)).unwrap();
    fs::write(source.join("app.log"), noise(8, 1 << 20)).unwrap();
    let mut peer = Peer::new(west.path()).await;
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    peer.publish("g1");

    // In place, appended, rotated, moved into a new directory, another kind, another set of names, gone.
    let large = fs::OpenOptions::new().write(true).open(source.join("large")).unwrap();
    large.write_all_at(&noise(9, 4096), 1 << 20).unwrap();
    large.write_all_at(&noise(10, 4096), 4 << 20).unwrap();
    fs::rename(source.join("app.log"), source.join("app.log.1")).unwrap();
    fs::write(source.join("app.log"), b"a new day").unwrap();
    fs::create_dir(source.join("moved")).unwrap();
    fs::rename(source.join("deep/er"), source.join("moved/er")).unwrap();
    fs::remove_file(source.join("nothing")).unwrap();
    fs::create_dir(source.join("nothing")).unwrap();
    fs::write(source.join("nothing/now-a-folder"), b"x").unwrap();
    fs::remove_dir(source.join("empty")).unwrap();
    fs::write(source.join("empty"), b"now a file").unwrap();
    fs::remove_file(source.join("aa-first-name")).unwrap();
    fs::hard_link(source.join("-rf"), source.join("zz-second-name")).unwrap();
    fs::set_permissions(source.join("only-hole"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(source.join("odd-link")).unwrap();
    fs::remove_file(source.join("holes")).unwrap();
    fs::write(source.join("holes"), noise(11, 5000)).unwrap();
    let sent = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
    assert!(sent.bytes_changed < 30_000, "{sent:?}");
    assert!(sent.bytes_on_wire < 40_000, "{sent:?}");
}

#[tokio::test]
async fn a_change_that_hides_behind_size_and_time_is_found() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), noise(1, 10_000)).unwrap();
    set_time(&source.join("file"), 1_000_000, 0);
    let mut peer = Peer::new(west.path()).await;
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    peer.publish("g1");
    fs::OpenOptions::new()
        .write(true)
        .open(source.join("file"))
        .unwrap()
        .write_all_at(b"hidden", 100)
        .unwrap();
    set_time(&source.join("file"), 1_000_000, 0);
    sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
}

#[tokio::test]
async fn snapshots_that_are_copies_cost_only_what_changed() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let live = east.path().join("live");
    fs::create_dir(&live).unwrap();
    corpus(&live);
    let mut peer = Peer::new(west.path()).await;
    for (trust, generation) in
        [(Trust::Stamps, "g1"), (Trust::Stamps, "g2"), (Trust::Modified, "g3"), (Trust::Nothing, "g4")]
    {
        let snapshot = east.path().join(generation);
        copy(&live, &snapshot);
        let source = Source::Tree { path: snapshot.clone(), trust };
        let sent = sync(source, peer.address, job(east.path(), generation)).await.unwrap();
        peer.completed().await;
        same(&snapshot, &peer.staging());
        assert!(generation == "g1" || sent.bytes_changed <= 4096, "{generation}: {sent:?}");
        peer.publish(generation);
        fs::write(live.join("-rf"), generation).unwrap();
    }
}

#[tokio::test]
async fn one_percent_costs_at_most_twice_its_bytes() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    for n in 0..200 {
        fs::write(source.join(format!("file-{n}")), noise(n, 100 << 10)).unwrap();
    }
    let mut peer = Peer::new(west.path()).await;
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    peer.publish("g1");
    // One percent: a page in some files, a tail on others.
    let mut changed = 0;
    for n in (0..200).step_by(4) {
        let path = source.join(format!("file-{n}"));
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        let at = if n % 8 == 0 { 4096 * (n % 25) } else { 100 << 10 };
        file.write_all_at(&noise(1000 + n, 4096), at).unwrap();
        changed += 4096;
    }
    let sent = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
    assert!(sent.bytes_on_wire <= 2 * changed, "{} on the wire for {changed}", sent.bytes_on_wire);
}

#[tokio::test]
async fn a_device_sends_its_changed_blocks_with_and_without_a_hint() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let (source, target) = (east.path().join("device"), west.path().join("device"));
    let file = fs::File::create(&source).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(&noise(1, 1 << 20), 2 << 20).unwrap();
    fs::write(&target, noise(99, 8 << 20)).unwrap();
    let mut peer = Peer::without_destination(west.path()).await;
    let expect = |peer: &mut Peer, base: Option<&str>| {
        let (target, name) = (target.clone(), format!("{base:?}"));
        peer.expect(base, |destination| {
            destination.place = Place::Device(target);
            destination.incarnation = name;
        });
    };
    let device = |changed| Source::Device { path: source.clone(), changed };
    expect(&mut peer, None);
    let sent = sync(device(None), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    assert_eq!(sent.bytes_changed, 1 << 20);
    assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap());

    // Without a hint: a block changes, one becomes zero, and the device grows.
    file.write_all_at(&noise(2, 4096), 4 << 20).unwrap();
    file.write_all_at(&[0; 4096], 2 << 20).unwrap();
    file.set_len(9 << 20).unwrap();
    file.write_all_at(b"tail", (9 << 20) - 4).unwrap();
    expect(&mut peer, Some("g1"));
    let sent = sync(device(None), peer.address, job(east.path(), "g2")).await.unwrap();
    peer.completed().await;
    assert_eq!((sent.base.as_deref(), sent.bytes_changed), (Some("g1"), 8192));
    assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap());

    // With one: only what it names is read. The change outside of it shows that.
    file.write_all_at(&noise(3, 4096), 5 << 20).unwrap();
    file.write_all_at(&noise(4, 4096), 6 << 20).unwrap();
    expect(&mut peer, Some("g2"));
    let ranges = vec![(5 << 20)..(5 << 20) + 65536, (100 << 20)..(200 << 20)];
    let hint = Changed { since: "g2".into(), ranges };
    let mut trusting = job(east.path(), "g3");
    trusting.verify = false;
    let sent = sync(device(Some(hint)), peer.address, trusting).await.unwrap();
    peer.completed().await;
    assert_eq!(sent.bytes_changed, 4096);
    let (one, other) = (fs::read(&source).unwrap(), fs::read(&target).unwrap());
    assert!(one[..6 << 20] == other[..6 << 20] && one[(6 << 20) + 4096..] == other[(6 << 20) + 4096..]);
    assert!(one != other);

    // A hint since another generation is not used.
    expect(&mut peer, Some("g3"));
    let hint = Changed { since: "g2".into(), ranges: Vec::new() };
    let mut careful = job(east.path(), "g4");
    careful.verify = false;
    // The block was noted as unchanged, so it is only found once it changes again.
    file.write_all_at(&noise(5, 4096), 6 << 20).unwrap();
    sync(device(Some(hint)), peer.address, careful).await.unwrap();
    peer.completed().await;
    assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap());
}

#[tokio::test]
async fn a_lost_index_costs_a_look_at_the_copy_not_a_full_sync() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    corpus(&source);
    let mut peer = Peer::new(west.path()).await;
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    peer.publish("g1");
    fs::remove_file(east.path().join("index")).unwrap();
    fs::write(source.join("-rf"), b"changed").unwrap();
    fs::remove_file(source.join("pipe")).unwrap();
    let sent = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
    assert!(sent.bytes_changed <= 4096, "{sent:?}");

    // If it may not look, it says so.
    peer.publish("g2");
    fs::remove_file(east.path().join("index")).unwrap();
    let mut blind = job(east.path(), "g3");
    blind.compare = false;
    let error = sync(tree(&source), peer.address, blind).await.unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::BaseMismatch { .. })), "{error}");
}

#[tokio::test]
async fn an_answer_that_was_lost_is_given_again_with_its_token() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    corpus(&source);
    let mut peer = Peer::new(west.path()).await;
    let seen = Timestamp::from_second(1_600_000_000).unwrap();
    let final_sync = || job(east.path(), "g1").with_token("final", seen).unwrap();
    let sent = sync(tree(&source), peer.address, final_sync()).await.unwrap();
    assert_eq!(sent.token.as_deref(), Some("final"));
    assert_eq!(peer.completed().await.token.as_deref(), Some("final"));
    let again = sync(tree(&source), peer.address, final_sync()).await.unwrap();
    assert_eq!((again.token.as_deref(), again.bytes_changed), (Some("final"), 0));
    // The same generation cannot answer a token that came later.
    let later = job(east.path(), "g1").with_token("later", seen).unwrap();
    sync(tree(&source), peer.address, later).await.unwrap_err();
    // A restart tells it again, until the next staging volume is there.
    peer.expect(None, |_| {});
    assert_eq!(peer.completed().await.token.as_deref(), Some("final"));
    let other = sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap_err();
    assert!(matches!(other, Error::Refused(Refusal::Busy)), "{other}");
}

#[tokio::test]
async fn an_old_epoch_is_refused_for_ever_and_told() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), b"x").unwrap();
    let mut peer = Peer::new(west.path()).await;
    let at_epoch = |epoch, generation: &str| {
        let mut job = job(east.path(), generation);
        job.epoch = epoch;
        sync(tree(&source), peer.address, job)
    };
    at_epoch(5, "g1").await.unwrap();
    let error = at_epoch(4, "g2").await.unwrap_err();
    let expected = Refusal::OldEpoch { offered: 4, seen: 5 };
    assert!(matches!(&error, Error::Refused(refusal) if *refusal == expected), "{error}");
    assert!(!error.is_transient());
    // The memory is on the disk: a new registration with a lower floor does not forget.
    peer.completed().await;
    peer.expect(None, |destination| destination.incarnation = "another".into());
    let error = sync(tree(&source), peer.address, job(east.path(), "g3")).await.unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::OldEpoch { offered: 1, seen: 5 })), "{error}");
    let mut refusals = Vec::new();
    while let Ok(event) = peer.events.try_recv() {
        if let Event::Refused { refusal, destination, .. } = event {
            assert_eq!(destination, "vol");
            refusals.push(refusal);
        }
    }
    assert!(refusals.contains(&expected), "{refusals:?}");
}

#[tokio::test]
async fn empty_is_no_success_unless_it_is_meant() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    let mut peer = Peer::new(west.path()).await;
    // A volume that never held anything.
    let sent = sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    assert_eq!((sent.entries, peer.completed().await.entries), (1, 1));
    peer.publish("g1");
    fs::write(source.join("file"), b"x").unwrap();
    sync(tree(&source), peer.address, job(east.path(), "g2")).await.unwrap();
    peer.completed().await;
    peer.publish("g2");
    // Emptied, or not mounted: nobody can tell.
    fs::remove_file(source.join("file")).unwrap();
    let error = sync(tree(&source), peer.address, job(east.path(), "g3")).await.unwrap_err();
    assert!(matches!(error, Error::SourceEmpty(1)), "{error}");
    assert!(peer.staging().join("file").exists());
    let mut meant = job(east.path(), "g3");
    meant.may_be_empty = true;
    sync(tree(&source), peer.address, meant).await.unwrap();
    peer.completed().await;
    same(&source, &peer.staging());
    // A source that is not there is no empty source.
    let error =
        sync(tree(&east.path().join("missing")), peer.address, job(east.path(), "g4")).await.unwrap_err();
    assert!(matches!(error, Error::Source(_)), "{error}");
}

#[tokio::test]
async fn a_volume_that_is_said_to_be_empty_and_is_not_stays_untouched() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), b"x").unwrap();
    let peer = Peer::new(west.path()).await;
    fs::write(peer.staging().join("precious"), b"data").unwrap();
    let error = sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::Unfit(_))), "{error}");
    assert_eq!(fs::read(peer.staging().join("precious")).unwrap(), b"data");
    assert!(!peer.staging().join("file").exists());
}

#[tokio::test]
async fn what_a_cut_off_copy_has_put_aside_is_no_part_of_the_next_one() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    corpus(&source);
    let mut peer = Peer::without_destination(west.path()).await;
    let staging = peer.staging();
    copy(&source, &staging);
    // Slots of a plan that nobody goes on with; one of them would be the first of the next plan.
    let stash = staging.join(".lifeboat-stream-stash");
    fs::create_dir(&stash).unwrap();
    fs::write(stash.join("0"), noise(1, 5000)).unwrap();
    fs::write(stash.join("7"), noise(2, 5000)).unwrap();
    peer.expect(Some("unknown-1"), |_| {});
    fs::write(source.join("more"), noise(3, 70_000)).unwrap();
    sync(tree(&source), peer.address, job(east.path(), "g1")).await.unwrap();
    peer.completed().await;
    same(&source, &staging);
    assert!(!stash.exists());
}

#[tokio::test]
async fn a_copy_counts_once_it_is_published_and_not_before() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("f"), noise(1, 5000)).unwrap();
    let mut peer = Peer::without_destination(west.path()).await;
    fs::create_dir_all(peer.staging()).unwrap();
    let publishes = |patience: Duration| move |one: &mut Destination| one.terms.publishes = Some(patience);
    peer.expect(None, publishes(Duration::from_secs(60)));
    let word = || job(east.path(), "g1").with_token("t", Timestamp::UNIX_EPOCH).unwrap();
    // It is on the line until the owner has published.
    let sending = tokio::spawn(sync(tree(&source), peer.address, word()));
    let completed = peer.completed().await;
    assert_eq!((completed.generation.as_str(), completed.token.as_deref()), ("g1", Some("t")));
    assert!(!sending.is_finished());
    peer.destinations.published("vol", "another").await;
    assert!(!sending.is_finished(), "another copy was published, not this one");
    peer.destinations.published("vol", "copy-0").await;
    assert_eq!(sending.await.unwrap().unwrap().token.as_deref(), Some("t"));

    // One that takes too long is told so, and asks again.
    peer.destinations.remove("vol").await;
    peer.expect(None, publishes(Duration::from_millis(1)));
    let refused = sync(tree(&source), peer.address, word()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::Publishing(ref one)) if one == "g1"), "{refused}");
    assert!(refused.is_transient());
    // A word that was lost is said again, with the token, also once the next copy starts from it.
    peer.destinations.remove("vol").await;
    peer.expect(Some("g1"), |one| one.incarnation = "copy-1".into());
    let sent = sync(tree(&source), peer.address, word()).await.unwrap();
    assert_eq!(sent.token.as_deref(), Some("t"));
}

#[tokio::test]
async fn an_owner_that_stops_expecting_a_copy_does_not_count_it() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("f"), "x").unwrap();
    let mut peer = Peer::without_destination(west.path()).await;
    fs::create_dir_all(peer.staging()).unwrap();
    peer.expect(None, |one| one.terms.publishes = Some(Duration::from_secs(60)));
    let sending = tokio::spawn(sync(tree(&source), peer.address, job(east.path(), "g1")));
    peer.completed().await;
    peer.destinations.remove("vol").await;
    assert!(sending.await.unwrap().is_err());
}

#[tokio::test]
async fn a_copy_of_another_volume_is_left_as_it_is_until_that_is_accepted() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("f"), "new").unwrap();
    let mut peer = Peer::without_destination(west.path()).await;
    fs::create_dir_all(peer.staging()).unwrap();
    fs::write(peer.staging().join("f"), "old").unwrap();
    let had = |one: &mut Destination| one.terms.lineage = Some("first".into());
    peer.expect(Some("g0"), had);
    let of = |lineage: &str| {
        let mut job = job(east.path(), "g1");
        job.lineage = Some(lineage.into());
        job
    };
    let refused = sync(tree(&source), peer.address, of("second")).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::OtherLineage { .. })), "{refused}");
    assert_eq!(fs::read(peer.staging().join("f")).unwrap(), b"old");
    while !matches!(peer.events.recv().await, Some(Event::Refused { .. })) {}
    peer.destinations.remove("vol").await;
    peer.expect(Some("g0"), |one| {
        had(one);
        one.terms.accepts = Some("second".into());
    });
    sync(tree(&source), peer.address, of("second")).await.unwrap();
    assert_eq!(peer.completed().await.lineage.as_deref(), Some("second"));
    same(&source, &peer.staging());
}
