//! What every back end must do alike: one story per promise, run against whatever is behind the trait.

use lifeboat_lvm::{AccessMode, Create, Error, Lvm, Snapshot, Volume};
use std::collections::BTreeSet;

/// 8 MiB: two extents of LVM, and little enough for any disk.
pub const SMALL: u64 = 8 << 20;

pub fn tags(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub fn volume(class: &str, name: &str, size: u64) -> Create {
    Create {
        name: name.to_owned(),
        class: class.to_owned(),
        size,
        tags: tags(&["owner=test"]),
        options: String::new(),
    }
}

pub fn copy(class: &str, name: &str, source: &str, mode: AccessMode) -> Snapshot {
    Snapshot {
        name: name.to_owned(),
        class: class.to_owned(),
        source: source.to_owned(),
        mode,
        size: 0,
        tags: tags(&["kind=copy"]),
        short_lived: None,
    }
}

pub async fn find(lvm: &dyn Lvm, class: &str, name: &str) -> Option<Volume> {
    lvm.volumes(class).await.unwrap().into_iter().find(|volume| volume.name == name)
}

/// Create, list, grow, retag, rename, remove, and the errors of each. Leaves nothing behind.
pub async fn life_of_a_volume(lvm: &dyn Lvm, class: &str) {
    let missing = Error::NoVolume { class: class.to_owned(), name: "a".to_owned() };
    let before = lvm.volumes(class).await.unwrap().len();
    let free = lvm.capacity(class).await.unwrap().free;
    assert!(free > 4 * SMALL, "the test needs room");

    let mut changes = lvm.changes();
    changes.mark_unchanged();
    let made = lvm.create(volume(class, "a", SMALL)).await.unwrap();
    changes.changed().await.unwrap();
    assert_eq!((made.name.as_str(), made.size, made.mode), ("a", SMALL, AccessMode::ReadWrite));
    assert_eq!(made.tags, tags(&["owner=test"]));
    assert_eq!(find(lvm, class, "a").await.unwrap(), made);
    let after = lvm.capacity(class).await.unwrap().free;
    assert!(after <= free - SMALL, "{after} of {free} after a create of {SMALL}");

    let exists = Error::Exists { class: class.to_owned(), name: "a".to_owned() };
    assert_eq!(lvm.create(volume(class, "a", SMALL)).await, Err(exists.clone()));

    assert_eq!(lvm.resize(class, "a", SMALL / 2).await.unwrap(), SMALL, "never shrinks");
    assert_eq!(lvm.resize(class, "a", 2 * SMALL).await.unwrap(), 2 * SMALL);
    assert_eq!(find(lvm, class, "a").await.unwrap().size, 2 * SMALL);

    lvm.retag(class, "a", &tags(&["größe: a b", "x"]), &tags(&["owner=test", "never there"])).await.unwrap();
    assert_eq!(find(lvm, class, "a").await.unwrap().tags, tags(&["größe: a b", "x"]));

    lvm.create(volume(class, "b", SMALL)).await.unwrap();
    assert_eq!(lvm.rename(class, "b", "a").await, Err(exists));
    lvm.remove(class, "b").await.unwrap();
    lvm.rename(class, "a", "b").await.unwrap();
    assert_eq!(find(lvm, class, "a").await, None);
    assert_eq!(find(lvm, class, "b").await.unwrap().tags, tags(&["größe: a b", "x"]));

    assert_eq!(lvm.resize(class, "a", SMALL).await, Err(missing.clone()));
    assert_eq!(lvm.rename(class, "a", "c").await, Err(missing.clone()));
    assert_eq!(lvm.retag(class, "a", &tags(&["x"]), &tags(&[])).await, Err(missing.clone()));
    assert_eq!(lvm.remove(class, "a").await, Err(missing.clone()));

    lvm.remove(class, "b").await.unwrap();
    assert_eq!(lvm.volumes(class).await.unwrap().len(), before);
    assert_eq!(lvm.capacity(class).await.unwrap().free, free, "all room is back");
}

/// Requests that make no sense are refused, with the error that says so.
pub async fn bad_requests(lvm: &dyn Lvm, class: &str) {
    let none = |result: Result<(), Error>| assert_eq!(result, Err(Error::NoClass("nowhere".to_owned())));
    none(lvm.volumes("nowhere").await.map(drop));
    none(lvm.capacity("nowhere").await.map(drop));
    none(lvm.create(volume("nowhere", "a", SMALL)).await.map(drop));
    none(lvm.snapshot(copy("nowhere", "a", "b", AccessMode::ReadOnly)).await.map(drop));
    none(lvm.resize("nowhere", "a", SMALL).await.map(drop));
    none(lvm.rename("nowhere", "a", "b").await);
    none(lvm.retag("nowhere", "a", &tags(&["x"]), &tags(&[])).await);
    none(lvm.remove("nowhere", "a").await);

    for name in ["", "..", "a/b", "-rf", "snapshot1"] {
        let refused = lvm.create(volume(class, name, SMALL)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name:?}: {refused:?}");
    }
    let mut wanted = volume(class, "a", SMALL);
    wanted.tags = tags(&[""]);
    assert!(matches!(lvm.create(wanted).await, Err(Error::Invalid(_))));

    let refused = lvm.create(volume(class, "a", 1 << 60)).await;
    assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
    assert_eq!(find(lvm, class, "a").await, None);
}

/// Snapshots and clones in a class that has them: tags, origin, size, mode; independent of their source's removal.
pub async fn snapshots(lvm: &dyn Lvm, class: &str) {
    let missing = Error::NoVolume { class: class.to_owned(), name: "a".to_owned() };
    assert_eq!(lvm.snapshot(copy(class, "s", "a", AccessMode::ReadOnly)).await, Err(missing));
    lvm.create(volume(class, "a", SMALL)).await.unwrap();

    let mut small = copy(class, "s", "a", AccessMode::ReadOnly);
    small.size = SMALL / 2;
    assert!(matches!(lvm.snapshot(small).await, Err(Error::Invalid(_))));

    let taken = lvm.snapshot(copy(class, "s", "a", AccessMode::ReadOnly)).await.unwrap().volume;
    assert_eq!((taken.size, taken.mode), (SMALL, AccessMode::ReadOnly));
    assert_eq!(taken.tags, tags(&["kind=copy"]));
    assert_eq!(taken.origin.as_deref(), Some("a"));
    assert_eq!(find(lvm, class, "s").await.unwrap(), taken);
    let again = lvm.snapshot(copy(class, "s", "a", AccessMode::ReadOnly)).await;
    assert_eq!(again, Err(Error::Exists { class: class.to_owned(), name: "s".to_owned() }));

    let mut larger = copy(class, "clone", "s", AccessMode::ReadWrite);
    larger.size = 2 * SMALL;
    let clone = lvm.snapshot(larger).await.unwrap().volume;
    assert_eq!((clone.size, clone.mode), (2 * SMALL, AccessMode::ReadWrite));

    lvm.rename(class, "a", "renamed").await.unwrap();
    assert_eq!(find(lvm, class, "s").await.unwrap().origin.as_deref(), Some("renamed"));
    lvm.remove(class, "renamed").await.unwrap();
    assert_eq!(find(lvm, class, "s").await.unwrap().origin, None);
    lvm.remove(class, "s").await.unwrap();
    lvm.remove(class, "clone").await.unwrap();
}

/// Two volumes change names, and nothing else of them changes. Leaves nothing behind.
pub async fn exchanges(lvm: &dyn Lvm, class: &str) {
    lvm.create(volume(class, "a", SMALL)).await.unwrap();
    let missing = Error::NoVolume { class: class.to_owned(), name: "b".to_owned() };
    assert_eq!(lvm.exchange(class, "a", "b").await, Err(missing.clone()));
    let mut larger = volume(class, "b", 2 * SMALL);
    larger.tags = tags(&["owner=other"]);
    lvm.create(larger).await.unwrap();
    lvm.exchange(class, "a", "b").await.unwrap();
    let (a, b) = (find(lvm, class, "a").await.unwrap(), find(lvm, class, "b").await.unwrap());
    assert_eq!((a.size, a.tags), (2 * SMALL, tags(&["owner=other"])));
    assert_eq!((b.size, b.tags), (SMALL, tags(&["owner=test"])));
    lvm.remove(class, "b").await.unwrap();
    assert_eq!(lvm.exchange(class, "a", "b").await, Err(missing));
    lvm.remove(class, "a").await.unwrap();
}
