//! The promises of the store: order, versions, the past, and nothing acknowledged is lost.

use super::*;

fn key(name: &str) -> Key {
    Key::new(&"things".into(), "ns", name)
}

fn write(store: &Store, name: &str, expect: Expect, text: &str) -> Result<u64, Raced> {
    let json = serde_json::json!({"metadata": {"uid": name}, "text": text}).to_string();
    let put = store.put(&key(name), expect, Timestamp::UNIX_EPOCH, |_| {
        (json.into(), Index { uid: name.into(), ..Default::default() })
    });
    put.map(|entry| entry.revision)
}

fn index(_: &str, object: &serde_json::Value) -> Index {
    Index { uid: object["metadata"]["uid"].as_str().unwrap_or_default().into(), ..Default::default() }
}

fn names(store: &Store, at: Option<u64>) -> Vec<String> {
    let page = store.page("things", None, None, at, |_| true, usize::MAX).expect("kept");
    page.entries.iter().map(|entry| entry.key.name.to_string()).collect()
}

#[test]
fn a_write_based_on_an_old_version_is_refused() {
    let store = Store::in_memory();
    let first = write(&store, "a", Expect::Absent, "1").expect("new");
    assert_eq!(write(&store, "a", Expect::Absent, "2"), Err(Raced));
    let second = write(&store, "a", Expect::Revision(first), "2").expect("newest");
    assert_eq!(write(&store, "a", Expect::Revision(first), "3"), Err(Raced));
    assert!(second > first);
}

#[test]
fn a_list_of_the_past_shows_what_was() {
    let store = Store::in_memory();
    write(&store, "a", Expect::Absent, "1").expect("new");
    let b = write(&store, "b", Expect::Absent, "1").expect("new");
    store.remove(&key("b"), b, Timestamp::UNIX_EPOCH, |_| Bytes::new()).expect("there");
    write(&store, "c", Expect::Absent, "1").expect("new");
    assert_eq!(names(&store, None), ["a", "c"]);
    assert_eq!(names(&store, Some(b)), ["a", "b"]);
}

#[test]
fn events_replay_in_order_from_any_kept_revision() {
    let store = Store::in_memory();
    let a = write(&store, "a", Expect::Absent, "1").expect("new");
    let newest = write(&store, "a", Expect::Revision(a), "2").expect("newest");
    let kinds = |after| -> Vec<_> {
        store.events("things", after, u64::MAX).expect("kept").iter().map(|event| event.kind).collect()
    };
    assert_eq!(kinds(a - 1), [EventKind::Added, EventKind::Modified]);
    assert_eq!(kinds(a), [EventKind::Modified]);
    assert_eq!(kinds(newest), []);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::open(folder.path(), index).expect("opens");
    let a = write(&store, "a", Expect::Absent, "1").expect("new");
    let b = write(&store, "b", Expect::Absent, "1").expect("new");
    let gone = store.remove(&key("a"), a, Timestamp::UNIX_EPOCH, |_| Bytes::new()).expect("there").revision;
    store.settled(gone).await.expect("synced");
    drop(store);
    let store = Store::open(folder.path(), index).expect("opens");
    assert_eq!(names(&store, None), ["b"]);
    assert_eq!(store.revision(), gone);
    assert_eq!(store.by_uid("b").map(|entry| entry.revision), Some(b));
    assert_eq!(store.events("things", b, u64::MAX).map(|_| ()), Err(Forgotten { oldest: gone }));
}

#[tokio::test]
async fn a_torn_tail_is_cut_and_damage_elsewhere_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::open(folder.path(), index).expect("opens");
    for name in ["a", "b", "c"] {
        let revision = write(&store, name, Expect::Absent, "1").expect("new");
        store.settled(revision).await.expect("synced");
    }
    drop(store);
    let log = folder.path().join("log");
    let whole = std::fs::read(&log).expect("log");
    let sizes = (0..whole.len()).rev().take(60);
    for size in sizes {
        std::fs::write(&log, &whole[..size]).expect("cut");
        let store = Store::open(folder.path(), index).expect("a torn tail is no damage");
        assert_eq!(names(&store, None), ["a", "b"], "cut to {size} bytes");
    }
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    std::fs::write(&log, &damaged).expect("damage");
    let error = Store::open(folder.path(), index).err().expect("refused");
    assert!(error.to_string().contains("damaged at byte 8"), "{error}");
    assert_eq!(std::fs::read(&log).expect("log"), damaged, "nothing was changed");
}

#[tokio::test]
async fn a_folder_belongs_to_one_process_at_a_time() {
    let folder = tempfile::tempdir().expect("folder");
    let _first = Store::open(folder.path(), index).expect("opens");
    let error = Store::open(folder.path(), index).err().expect("refused");
    assert!(matches!(error, DiskError::InUse { .. }), "{error}");
}

#[tokio::test]
async fn a_sound_record_of_nonsense_is_damage_too() {
    let folder = tempfile::tempdir().expect("folder");
    let store = Store::open(folder.path(), index).expect("opens");
    let put = store.put(&key("a"), Expect::Absent, Timestamp::UNIX_EPOCH, |_| {
        (Bytes::from_static(b"not json"), Index { uid: "a".into(), ..Default::default() })
    });
    store.settled(put.expect("new").revision).await.expect("synced");
    drop(store);
    let error = Store::open(folder.path(), index).err().expect("refused");
    assert!(error.to_string().contains("not JSON"), "{error}");
}
