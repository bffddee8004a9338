//! Which free volume a claim gets, and what it is told of those that nearly fit.

use crate::model::Model;
use crate::rules::{hinted, of_claim, start};
use crate::things::{ClaimThings, VolumeThings, claim, volume};
use lifeboat_binder::words::BETA_STORAGE_CLASS;
use lifeboat_engine::ObjectKey;

#[test]
fn what_a_free_volume_must_be_to_be_chosen() {
    let row = |rule: &str, claim, volume, takes: bool| {
        let decided = of_claim(&hinted(start().with_claim(claim).with_volume(volume)));
        assert_eq!(decided == "Do(Reserve)", takes, "{rule}: {decided}");
    };
    let v = || volume("v");
    row("as large", claim(), v(), true);
    row("larger", claim(), v().sized("2Gi"), true);
    row("smaller", claim().sized("1025Mi"), v(), false);
    row("another class", claim(), v().of_class(Some("x")), false);
    row("the old annotation names the class", claim(), v().noted(BETA_STORAGE_CLASS, "x"), false);
    row("another volume mode", claim().of_mode("Block"), v(), false);
    row("no volume mode is a file system", claim().of_mode("Filesystem"), v(), true);
    row("other attributes", claim(), v().attributes("a"), false);
    row("empty attributes are none", claim(), v().attributes(""), true);
    row("more access modes", claim(), v().access(&["ReadWriteMany", "ReadWriteOnce"]), true);
    row("fewer access modes", claim().access(&["ReadWriteMany", "ReadWriteOnce"]), v(), false);
    row("being deleted", claim(), v().deleting(), false);
    row("for one node only: which node is the scheduler's business", claim(), v().on_node("n1"), true);
    row("fresh, without a phase", claim(), v().in_phase("Pending"), true);
    row("released", claim(), v().in_phase("Released"), false);
    row("failed", claim(), v().in_phase("Failed"), false);
    row("another's by uid", claim(), v().for_claim("c", "uid-old"), false);
    row(
        "reserved for us, of another class and released",
        claim(),
        v().of_class(Some("x")).in_phase("Released").for_claim("c", ""),
        true,
    );
    row("reserved for us and too small", claim().sized("2Gi"), v().for_claim("c", ""), false);
}

#[test]
fn which_free_volume_is_chosen() {
    let row = |rule: &str, volumes: Vec<lifeboat_binder::lean::PersistentVolume>, expected: &str| {
        let model = volumes.into_iter().fold(start().with_claim(claim()), Model::with_volume);
        let lifeboat_binder::world::Found::Free(found) = model.claim_world(&ObjectKey::new("ns", "c")).found
        else {
            panic!("{rule}: nothing found")
        };
        assert_eq!(found.metadata.name.as_deref(), Some(expected), "{rule}");
    };
    row(
        "the smallest that fits",
        vec![volume("a").sized("3Gi"), volume("b").sized("2Gi"), volume("d").sized("9Gi")],
        "b",
    );
    row(
        "the fewest access modes before the size",
        vec![volume("a").sized("1Gi").access(&["ReadWriteOnce", "ReadOnlyMany"]), volume("b").sized("2Gi")],
        "b",
    );
    row(
        "by exact size, whatever the notation",
        vec![volume("a").sized("2G"), volume("b").sized("2000000001")],
        "a",
    );
    row("of equals the first by name", vec![volume("b"), volume("a")], "a");
}

#[test]
fn a_claim_is_told_once_which_volumes_nearly_fit() {
    let mut model = start()
        .with_claim(claim().sized("5Gi"))
        .with_volume(volume("a").sized("2Gi"))
        .with_volume(volume("b").sized("9Gi").of_class(Some("slow")))
        .with_volume(volume("d").of_class(Some("slow")));
    model.settle();
    assert_eq!(
        model.hints,
        ["no free volume fits; nearest: a (too small, 2Gi of 5Gi), b (of class \"slow\")"],
        "what lacks more than one thing is not near"
    );
}

#[test]
fn finding_the_best_of_many_looks_at_one() {
    let mut model = start();
    for n in 0..100_000 {
        model.store_volume(volume(&format!("v{n}")).sized(&format!("{}Mi", n % 5000)));
    }
    model.see_all();
    for size in ["1Mi", "2500Mi", "4999Mi"] {
        let looks = std::cell::Cell::new(0);
        let found =
            lifeboat_binder::decide::matching::best(&model.mind.by.free, &claim().sized(size), |_| {
                looks.set(looks.get() + 1);
                true
            });
        assert_eq!(
            found.unwrap().spec.as_ref().unwrap().capacity.as_ref().unwrap().get("storage").unwrap().0,
            size
        );
        assert!(looks.get() <= 8, "one look for each set of modes at most, not {}", looks.get());
    }
}
