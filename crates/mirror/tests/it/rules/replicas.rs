//! Rules about secondaries.

use super::*;
use lifeboat_engine::{Next, variant};
use lifeboat_mirror::copies::Seen;
use lifeboat_mirror::replica::decide::{World, decide};

fn world(disk: Disk, memory: Memory) -> World {
    World {
        volume: shared(secondary()),
        seen: Seen::Listed(Box::new(disk.copies())),
        memory,
        promoting: false,
        halted: None,
        trouble: None,
    }
}

#[track_caller]
fn check(rule: &str, mut world: World, change: impl FnOnce(&mut World), expected: &str) {
    change(&mut world);
    let said = match decide(&world).next {
        Next::Do(effects) => format!("{effects:?}").trim_matches(['[', ']']).to_owned(),
        Next::Wait { why, .. } => format!("wait {}", variant(&why)),
        Next::Settled => "settled".to_owned(),
    };
    assert!(said.starts_with(expected) && (expected != "settled" || said == expected), "{rule}: {said}");
}

fn whole() -> Disk {
    Disk::default().image(Kind::Replica, &image(1, 60))
}

#[test]
fn whose_it_is() {
    let stranger = |w: &mut World| {
        let volume = Arc::make_mut(&mut w.volume);
        volume.metadata.annotations = None;
        volume.metadata.finalizers = None;
        w.seen = Seen::Unlisted;
    };
    check(
        "a volume that is not mirrored is not even looked at",
        world(Disk::default(), probed()),
        stranger,
        "settled",
    );
    check("list first", world(whole(), probed()), |w| w.seen = Seen::Unlisted, "List");
    check("being made primary", world(whole(), probed()), |w| w.promoting = true, "wait Promoting");
    check("being made secondary", world(whole().live(1), probed()), |_| {}, "wait Demoting");
    let bare = |w: &mut World| Arc::make_mut(&mut w.volume).metadata.finalizers = None;
    check("held before anything is made", world(Disk::default(), probed()), bare, "Hold");
}

#[test]
fn what_has_arrived_takes_its_place() {
    let filling = || whole().filling("i");
    check("what an earlier process left is probed", world(filling(), Memory::default()), |_| {}, "Probe");
    let arrived = || Memory { completed: completed("i", &image(1, 5)), ..probed() };
    check("whole: sealed", world(filling(), arrived()), |_| {}, "Seal(Image { generation: \"g5\"");
    let written = || {
        let mut memory = arrived();
        memory.completed.as_mut().unwrap().fuzzy = Some("files were written".into());
        memory
    };
    let sealed_so = "Seal(Image { generation: \"g5\", cut: 1970-01-12T13:46:35Z, epoch: 1, fuzzy: true";
    check("copied while it was written", world(filling(), written()), |_| {}, sealed_so);
    let other = || Memory { completed: completed("other", &image(1, 5)), offer: None, ..probed() };
    check("a word about another copy means nothing", world(filling(), other()), |_| {}, "wait Primary");
    let sealed = || whole().image(Kind::Filling, &image(1, 5));
    check("sealed: the one before makes way", world(sealed(), probed()), |_| {}, "MakeWay");
    let alone = Disk::default().image(Kind::Filling, &image(1, 5));
    check("and it is published", world(alone, probed()), |_| {}, "Publish");
    let frozen = |w: &mut World| w.halted = Some("frozen".into());
    check("standing still, what is whole is still published", world(sealed(), probed()), frozen, "MakeWay");
}

#[test]
fn never_the_last_copy() {
    let diverged = || Disk::default().image(Kind::Diverged, &image(1, 90));
    let offered = || Memory { offer: offer(2), ..probed() };
    check("kept until its replacement is complete", world(diverged(), offered()), |_| {}, "Prepare");
    check("kept while it is filled", world(diverged().filling("i"), offered()), |_| {}, "Register");
    let replaced = diverged().image(Kind::Replica, &image(2, 5));
    check("then it goes", world(replaced, offered()), |_| {}, "Drop([Diverged])");
}

#[test]
fn receiving() {
    let offered = || Memory { offer: offer(1), ..probed() };
    check("nobody has offered anything", world(whole(), probed()), |_| {}, "wait Primary");
    check("a copy to apply to", world(whole(), offered()), |_| {}, "Prepare");
    check("let bytes in", world(whole().filling("i"), offered()), |_| {}, "Register");
    let open = || Memory { expected: expected("i", 1), ..offered() };
    check("ready", world(whole().filling("i"), open()), |_| {}, "wait Receiving");
    let newer = Memory { offer: offer(2), ..open() };
    check("a higher epoch: expected anew, under it", world(whole().filling("i"), newer), |_| {}, "Close");
    let withdrawn = Memory { offer: None, ..open() };
    check("an offer that was withdrawn", world(whole().filling("i"), withdrawn), |_| {}, "Close");
    let spoiled = || Memory { spoiled: Some("i".into()), ..open() };
    check(
        "a copy that nobody can go on with: closed",
        world(whole().filling("i"), spoiled()),
        |_| {},
        "Close",
    );
    let closed = Memory { expected: None, ..spoiled() };
    check("then made anew", world(whole().filling("i"), closed), |_| {}, "Drop([Filling])");
    let bigger = || {
        let mut offer = offer(1).unwrap();
        offer.size = 128 << 20;
        Memory { offer: Some(offer), ..probed() }
    };
    check("the primary has grown", world(whole(), bigger()), |_| {}, "Grow { size: 134217728 }");
}

#[test]
fn standing_still() {
    let open = || Memory { offer: offer(1), expected: expected("i", 1), ..probed() };
    let frozen = |w: &mut World| w.halted = Some("frozen".into());
    check("nothing comes in any more", world(whole().filling("i"), open()), frozen, "Close");
    let closed = Memory { expected: None, ..open() };
    check("and that is said", world(whole().filling("i"), closed), frozen, "wait Halted");
}

#[test]
fn a_primary_receives_nothing() {
    let turn = |w: &mut World| w.volume = shared(primary());
    let open = Memory { expected: expected("i", 1), ..probed() };
    check("closed", world(Disk::default().live(2).filling("i"), open), turn, "Close");
    let left = Disk::default().live(2).filling("i");
    check("what is left of it goes", world(left, probed()), turn, "Drop([Filling, Spare])");
    let lost = Disk::default().filling("i");
    check("but not without the live volume", world(lost, probed()), turn, "settled");
    check("nothing to do", world(Disk::default().live(2), probed()), turn, "settled");
}

#[test]
fn deleting() {
    let going = |w: &mut World| {
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(ago(1));
        Arc::make_mut(&mut w.volume).metadata.deletion_timestamp = Some(time);
    };
    let open = Memory { expected: expected("i", 1), ..probed() };
    check("closed first", world(whole().filling("i"), open), going, "Close");
    check(
        "every copy of ours goes",
        world(whole(), probed()),
        going,
        "Drop([Cut, Filling, Spare, Replica, Diverged])",
    );
    check("the live volume is the node's", world(Disk::default().live(1), probed()), going, "Release");
}
