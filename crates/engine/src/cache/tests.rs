//! The version rule, row by row, and indexes against a scan.

use super::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use proptest::prelude::*;

fn map(name: &str, uid: &str, version: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("ns".into()),
        uid: Some(uid.into()),
        resource_version: Some(version.to_string()),
        labels: Some([("parity".to_owned(), (version % 2).to_string())].into()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn known(cache: &Cache<ConfigMap>) -> Vec<(String, u64)> {
    cache.all().iter().map(|map| (map.metadata.uid.clone().unwrap(), version(&**map))).collect()
}

fn check(steps: impl Fn(&Cache<ConfigMap>), expected: &[(&str, u64)], changes: usize) {
    let cache = Cache::default();
    let count = Arc::new(Mutex::new(0));
    let counter = count.clone();
    cache.listen(move |_| *counter.lock() += 1);
    steps(&cache);
    let expected: Vec<_> = expected.iter().map(|(uid, version)| ((*uid).to_owned(), *version)).collect();
    assert_eq!(known(&cache), expected);
    assert_eq!(*count.lock(), changes, "changes told");
}

#[test]
fn the_event_of_our_own_write_is_no_news() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 5));
            cache.wrote(map("a", "u1", 8));
            cache.saw(map("a", "u1", 7));
            cache.saw(map("a", "u1", 8));
        },
        &[("u1", 8)],
        2,
    );
}

#[test]
fn versions_are_numbers_not_text() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 9));
            cache.saw(map("a", "u1", 10));
        },
        &[("u1", 10)],
        2,
    );
}

#[test]
fn an_answer_that_comes_after_the_deletion_brings_nothing_back() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 5));
            cache.saw_deleted(&key("a"), "u1", 9);
            cache.wrote(map("a", "u1", 8));
        },
        &[],
        2,
    );
}

#[test]
fn an_answer_that_comes_before_its_event_is_kept() {
    check(|cache| cache.wrote(map("a", "u1", 8)), &[("u1", 8)], 1);
}

#[test]
fn an_answer_newer_than_a_lost_event_is_kept() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 5));
            cache.reached(20);
            cache.wrote(map("a", "u1", 8));
        },
        &[("u1", 8)],
        2,
    );
}

#[test]
fn our_own_deletion_holds_against_older_events() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 5));
            cache.wrote_deletion(&key("a"), "u1");
            cache.saw(map("a", "u1", 6));
            cache.saw_deleted(&key("a"), "u1", 7);
            cache.saw(map("a", "u2", 8));
        },
        &[("u2", 8)],
        3,
    );
}

#[test]
fn a_late_deletion_spares_the_namesake() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 5));
            cache.wrote_deletion(&key("a"), "u1");
            cache.wrote(map("a", "u2", 8));
            cache.saw_deleted(&key("a"), "u1", 7);
        },
        &[("u2", 8)],
        3,
    );
}

#[test]
fn a_full_picture_removes_what_it_lacks_but_not_newer_writes_of_ours() {
    check(
        |cache| {
            cache.saw(map("a", "u1", 5));
            cache.saw(map("b", "u2", 6));
            cache.wrote(map("c", "u3", 12));
            cache.saw_all([(key("b"), Some(Arc::new(map("b", "u2", 6))))].into(), 10);
        },
        &[("u2", 6), ("u3", 12)],
        4,
    );
}

#[test]
fn an_older_picture_does_not_take_back_a_newer_version() {
    check(
        |cache| {
            cache.wrote(map("a", "u1", 12));
            cache.saw_all([(key("a"), Some(Arc::new(map("a", "u1", 5))))].into(), 10);
        },
        &[("u1", 12)],
        1,
    );
}

#[test]
fn an_unreadable_version_leaves_the_last_readable_one() {
    let cache = Cache::default();
    cache.saw(map("a", "u1", 5));
    cache.saw_unreadable(key("a"), "missing field".into());
    assert_eq!(known(&cache), [("u1".to_owned(), 5)]);
    assert_eq!(cache.unreadable(&key("a")).as_deref(), Some("missing field"));
    cache.saw(map("a", "u1", 6));
    assert_eq!(cache.unreadable(&key("a")), None);
}

#[test]
fn namespaces_are_found_by_range() {
    let cache = Cache::default();
    for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y"), ("bb", "x")] {
        let mut object = map(name, &format!("{namespace}{name}"), 1);
        object.metadata.namespace = Some(namespace.into());
        cache.saw(object);
    }
    let found: Vec<_> = cache.in_namespace("b").iter().map(|map| ObjectKey::of(&**map).to_string()).collect();
    assert_eq!(found, ["b/x", "b/y"]);
}

proptest! {
    #[test]
    fn an_index_finds_what_a_scan_finds(events in proptest::collection::vec((0u8..8, any::<bool>()), 0..100)) {
        let cache: Cache<ConfigMap> = Cache::default();
        let parity = |map: &ConfigMap| map.metadata.labels.clone().and_then(|labels| labels.get("parity").cloned());
        let early = cache.index(parity);
        for (version, (name, exists)) in (1..).zip(events) {
            let name = name.to_string();
            if exists {
                cache.saw(map(&name, &name, version));
            } else {
                cache.saw_deleted(&key(&name), &name, version);
            }
        }
        let late = cache.index(parity);
        for value in ["0", "1"] {
            let scanned: Vec<_> = cache.all().into_iter().filter(|map| parity(map).as_deref() == Some(value)).collect();
            prop_assert_eq!(&early.get(&value.to_owned()), &scanned);
            prop_assert_eq!(&late.get(&value.to_owned()), &scanned);
            prop_assert_eq!(early.count(&value.to_owned()), scanned.len());
        }
        prop_assert_eq!(early.range(..).len(), cache.len());
    }
}

#[test]
fn the_smallest_that_fits_is_found_among_a_hundred_thousand_without_a_scan() {
    let cache: Cache<ConfigMap> = Cache::default();
    // By class and size, as volumes would be; what is taken is not in the index.
    let by_size = cache.index(|map: &ConfigMap| {
        let data = map.data.clone()?;
        Some((data.get("class")?.clone(), data.get("size")?.parse::<u64>().ok()?))
    });
    for n in 0..100_000u64 {
        let class = if n % 2 == 0 { "fast" } else { "slow" };
        let data = [("class".to_owned(), class.to_owned()), ("size".to_owned(), n.to_string())];
        cache.saw(ConfigMap { data: Some(data.into()), ..map(&n.to_string(), &n.to_string(), n + 1) });
    }
    let looked = Mutex::new(0);
    let fits = |want: u64| {
        let range = ("fast".to_owned(), want)..=("fast".to_owned(), u64::MAX);
        by_size.find(range, |_| {
            *looked.lock() += 1;
            true
        })
    };
    let found = fits(70_001).unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("70002"));
    cache.wrote(ConfigMap { data: None, ..map("70002", "70002", 200_000) });
    assert_eq!(fits(70_001).unwrap().metadata.name.as_deref(), Some("70004"));
    assert!(fits(99_999).is_none());
    assert_eq!(*looked.lock(), 2);
}
