//! What is planned, row by row.

use super::*;
use crate::Group;
use jiff::Timestamp;
use proptest::prelude::*;

fn listed(content: u8) -> Listed {
    Listed { sha256: Digest::of(&[content]), size: u64::from(content) }
}

fn records(of: &[(&str, u8)]) -> BTreeMap<RecordId, Listed> {
    of.iter().map(|(name, content)| (RecordId::volume(name), listed(*content))).collect()
}

fn manifest(epoch: u64, generation: u64, of: &[(&str, u8)]) -> Manifest {
    Manifest {
        group: Group::new("shop", "orders").unwrap(),
        epoch: Epoch(epoch),
        generation: Generation(generation),
        writer: ClusterId("east".into()),
        fleet: None,
        time: Timestamp::UNIX_EPOCH,
        records: records(of),
        removed: [].into(),
    }
}

/// A store that has exactly this.
fn shelf(of: &[&Manifest]) -> Shelf {
    let mut shelf = Shelf::default();
    for manifest in of {
        shelf.ledger.manifests.insert((manifest.epoch, manifest.generation));
        for (id, listed) in &manifest.records {
            shelf.blobs.insert(listed.sha256, listed.size);
            shelf.records.insert(id.clone(), listed.size);
        }
    }
    shelf
}

fn names(ids: &BTreeSet<RecordId>) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_not_named_stays() {
    let base = records(&[("a", 1), ("b", 2)]);
    let change = |put: &[(&str, u8)], removed: &[&str]| Change {
        put: records(put),
        removed: removed.iter().map(|name| RecordId::volume(name)).collect(),
    };
    let check = |change: Change, expected: &[(&str, u8)]| {
        assert_eq!(change.apply(&base).unwrap(), records(expected), "{change:?}");
    };
    check(change(&[], &[]), &[("a", 1), ("b", 2)]);
    check(change(&[("a", 3)], &[]), &[("a", 3), ("b", 2)]);
    check(change(&[("c", 3)], &["a"]), &[("b", 2), ("c", 3)]);
    check(change(&[], &["a", "b", "never"]), &[]);
    assert!(matches!(change(&[("a", 3)], &["a"]).apply(&base), Err(Error::Contradiction(_))));
}

#[test]
fn a_generation_is_made_only_for_a_change() {
    let newest = manifest(3, 7, &[("a", 1)]);
    let (east, west) = (ClusterId("east".into()), ClusterId("west".into()));
    let check = |epoch: u64, writer: &ClusterId, of: &[(&str, u8)], after: u64, expected: bool| {
        let author = Author { epoch: Epoch(epoch), writer, fleet: None };
        assert_eq!(says(&newest, author, &records(of), Generation(after)), expected);
    };
    check(3, &east, &[("a", 1)], 7, true);
    check(3, &east, &[("a", 1)], 0, true);
    check(3, &east, &[("a", 2)], 7, false);
    check(3, &east, &[], 7, false);
    check(4, &east, &[("a", 1)], 7, false);
    check(3, &west, &[("a", 1)], 7, false);
    // A store that cannot be seen has a newer one.
    check(3, &east, &[("a", 1)], 8, false);
}

#[test]
fn generations_grow_past_all_that_was_seen_remembered_or_missed() {
    let check = |seen, after, clock, expected| {
        assert_eq!(next(Generation(seen), Generation(after), clock), Generation(expected));
    };
    check(0, 0, 0, 1);
    check(5, 3, 0, 6);
    check(5, 9, 0, 10);
    check(5, 9, 1000, 1000);
    check(2000, 0, 1000, 2001);
    check(u64::MAX, 0, 0, u64::MAX);
}

#[test]
fn only_what_differs_is_written() {
    let old = manifest(3, 7, &[("a", 1), ("b", 2)]);
    let check = |shelf: &Shelf,
                 own: Option<&Manifest>,
                 target: &Manifest,
                 expected: (usize, &[&str], bool, &[&str])| {
        let plan = plan(shelf, own, target);
        let remove: Vec<_> = plan.remove.iter().map(String::as_str).collect();
        let keys = names(&plan.keys);
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        assert_eq!((plan.blobs.len(), &keys[..], plan.manifest, &remove[..]), expected);
    };
    let (a, b) = ("v1.PersistentVolume/a", "v1.PersistentVolume/b");
    check(&shelf(&[&old]), Some(&old), &old, (0, &[], false, &[]));
    check(&Shelf::default(), None, &old, (2, &[a, b], true, &[]));
    let changed = manifest(3, 8, &[("a", 3), ("b", 2)]);
    check(&shelf(&[&old]), Some(&old), &changed, (1, &[a], true, &[]));
    let fewer = manifest(3, 8, &[("a", 1)]);
    check(&shelf(&[&old]), Some(&old), &fewer, (0, &[], true, &[b]));
    // The crash came between the manifest and the removal.
    let told = Manifest { removed: [RecordId::volume("b")].into(), ..fewer.clone() };
    check(&shelf(&[&old, &told]), Some(&told), &told, (0, &[], false, &[b]));
    // Content that went, or has another length, is written again; so is one of Ramen's keys.
    let mut hurt = shelf(&[&old]);
    hurt.blobs.remove(&listed(1).sha256);
    hurt.blobs.insert(listed(2).sha256, 99);
    check(&hurt, Some(&old), &old, (2, &[], false, &[]));
    let mut hurt = shelf(&[&old]);
    hurt.records.remove(&RecordId::volume("a"));
    hurt.records.insert(RecordId::volume("b"), 99);
    check(&hurt, Some(&old), &old, (0, &[a, b], false, &[]));
    // What others wrote is left alone, except a claim's older key beside the new one.
    let mut target = old.clone();
    target.records.insert(RecordId::claim("shop", "data"), listed(5));
    let mut taken = shelf(&[&target]);
    taken.records.insert(RecordId::volume("ramens"), 9);
    taken.old_claims.insert(RecordId::claim("shop", "data"), 9);
    taken.old_claims.insert(RecordId::claim("shop", "other"), 9);
    check(&taken, Some(&target), &target, (0, &[], false, &["v1.PersistentVolumeClaim/data"]));
}

#[test]
fn the_newest_and_a_few_before_it_are_kept() {
    let all: Vec<_> = (1..=6).map(|generation| manifest(2, generation, &[("a", 1)])).collect();
    let shelf = shelf(&all.iter().collect::<Vec<_>>());
    let check = |newest: u64, keep: usize, gone: &[u64]| {
        let sweep = sweep(&shelf, (Epoch(2), Generation(newest)), keep);
        let found: Vec<_> = sweep.manifests.iter().map(|(_, generation)| generation.0).collect();
        assert_eq!(found, gone, "newest {newest}, keep {keep}");
    };
    check(6, 3, &[1, 2, 3]);
    check(6, 9, &[]);
    check(6, 0, &[1, 2, 3, 4, 5]);
    // Those above are somebody else's.
    check(4, 1, &[1, 2, 3]);
}

proptest! {
    #[test]
    fn carrying_out_a_plan_leaves_nothing_to_do(
        before in proptest::collection::btree_map("[a-d]", 1u8..9, 0..4),
        after in proptest::collection::btree_map("[a-d]", 1u8..9, 0..4),
        holes in proptest::collection::vec(any::<bool>(), 8),
    ) {
        let build = |of: &BTreeMap<String, u8>, generation| {
            let of: Vec<_> = of.iter().map(|(name, content)| (name.as_str(), *content)).collect();
            manifest(1, generation, &of)
        };
        let (old, target) = (build(&before, 1), build(&after, 2));
        let mut shelf = shelf(&[&old]);
        let mut hole = holes.iter();
        shelf.records.retain(|_, _| *hole.next().unwrap_or(&true));
        shelf.blobs.retain(|_, _| *hole.next().unwrap_or(&true));
        let plan = plan(&shelf, Some(&old), &target);
        for (id, listed) in &target.records {
            if plan.blobs.contains(&listed.sha256) { shelf.blobs.insert(listed.sha256, listed.size); }
            if plan.keys.contains(id) { shelf.records.insert(id.clone(), listed.size); }
        }
        if plan.manifest { shelf.ledger.manifests.insert((target.epoch, target.generation)); }
        shelf.records.retain(|id, _| !plan.remove.contains(&id.to_string()));
        prop_assert_eq!(shelf.lacks(&target).count(), 0);
        let ids = |map: &BTreeMap<RecordId, u64>| map.keys().cloned().collect::<Vec<_>>();
        prop_assert_eq!(ids(&shelf.records), target.records.keys().cloned().collect::<Vec<_>>());
        prop_assert!(super::plan(&shelf, Some(&target), &target).is_empty());
    }

    #[test]
    fn a_sweep_never_takes_the_newest(generations in proptest::collection::btree_set(1u64..20, 1..12), keep in 0usize..5) {
        let all: Vec<_> = generations.iter().map(|generation| manifest(1, *generation, &[])).collect();
        let newest = (Epoch(1), Generation(*generations.last().unwrap()));
        let sweep = sweep(&shelf(&all.iter().collect::<Vec<_>>()), newest, keep);
        prop_assert!(!sweep.manifests.contains(&newest));
        prop_assert!(sweep.kept.iter().all(|kept| sweep.manifests.iter().all(|gone| gone < kept)));
        prop_assert_eq!(sweep.kept.len(), keep.max(1).min(generations.len()));
    }
}
