//! The files of a store on disk, in any state of damage.

use crate::make::Source;
use lifeboat_apiserver::cluster::{Cluster, Sources, index_stored};
use lifeboat_apiserver::store::Store;
use std::collections::BTreeMap;
use std::path::Path;

/// A folder with any log and snapshot opens or is refused. A refusal changes nothing; what opened opens again, with the
/// same objects.
///
/// # Panics
/// When a promise is broken.
pub fn store_log(data: &[u8]) {
    let folder = folder();
    let folder = folder.path();
    let (log, snapshot) = match data {
        // The bytes of the log as they are, and no snapshot.
        [b'L', ..] => (Some(data.to_vec()), None),
        _ => {
            let mut source = Source::new(data);
            let with_snapshot = source.one_in(2);
            (Some(file(&mut source)), with_snapshot.then(|| file(&mut source)))
        }
    };
    let mut before = BTreeMap::new();
    for (name, bytes) in [("log", log), ("snapshot", snapshot)] {
        if let Some(bytes) = bytes {
            std::fs::write(folder.join(name), &bytes).expect("the folder can be written");
            before.insert(name, bytes);
        }
    }
    let Ok(store) = Store::open(folder, index_stored) else {
        for (name, bytes) in before {
            let now = std::fs::read(folder.join(name)).expect("the file is still there");
            assert!(now == bytes, "a refused {name} was changed");
        }
        return;
    };
    let (first, revision) = (contents(&store), store.revision());
    drop(store);
    let store = Store::open(folder, index_stored).expect("what opened opens again");
    assert_eq!((contents(&store), store.revision()), (first, revision));
    // Definitions among the objects are read at the start; that a sound record holds JSON is the writer's promise.
    if contents(&store).iter().all(|(_, _, json)| serde_json::from_slice::<serde_json::Value>(json).is_ok()) {
        let _ = Cluster::new(store, Sources::system());
    }
}

/// In memory where that can be had.
fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    let made = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
    made.expect("a temporary folder can be made")
}

fn contents(store: &Store) -> Vec<(String, u64, Vec<u8>)> {
    let mut all = Vec::new();
    for collection in store.collections() {
        let page = store.page(&collection, None, None, None, |_| true, usize::MAX);
        for entry in page.map(|page| page.entries).unwrap_or_default() {
            let key = &entry.key;
            let place = format!("{}\n{}\n{}", key.collection, key.namespace, key.name);
            all.push((place, entry.revision, entry.json.to_vec()));
        }
    }
    all
}

/// A log: sound records, with damage here and there.
fn file(source: &mut Source<'_>) -> Vec<u8> {
    let mut out = b"LBSTORE1".to_vec();
    let mut revision = source.below(4) as u64;
    for _ in 0..source.below(8) {
        revision = match source.below(12) {
            11 => source.bits(),
            10 => revision.saturating_sub(1),
            _ => revision.wrapping_add(1),
        };
        record(&mut out, revision, source);
    }
    match source.below(8) {
        7 if !out.is_empty() => {
            let at = source.below(out.len());
            out[at] ^= 1 << source.below(8);
        }
        6 => out.truncate(source.below(out.len() + 1)),
        5 => out.extend(source.bytes(64)),
        _ => {}
    }
    out
}

fn record(out: &mut Vec<u8>, revision: u64, source: &mut Source<'_>) {
    let mut payload = revision.to_le_bytes().to_vec();
    let collection = source.pick(&[
        "configmaps",
        "pods",
        "",
        "customresourcedefinitions.apiextensions.k8s.io",
        "namespaces",
        "events",
        "x.y",
    ]);
    for part in [collection, &source.word(), &source.word()] {
        let length = if source.one_in(40) { source.bits() as u32 } else { part.len() as u32 };
        payload.extend_from_slice(&length.to_le_bytes());
        payload.extend_from_slice(part.as_bytes());
    }
    match source.below(6) {
        0 => payload.push(0),
        1 => payload.extend(source.bytes(30)),
        2 => {
            payload.push(1);
            payload.extend(source.bytes(30));
        }
        _ => {
            payload.push(1);
            payload.extend(object(collection, source).to_string().into_bytes());
        }
    }
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    out.extend(payload);
}

fn object(collection: &str, source: &mut Source<'_>) -> serde_json::Value {
    let mut object = if collection.starts_with("customresource") {
        serde_json::from_str(include_str!("request/definition.json")).unwrap_or_default()
    } else {
        source.json(4)
    };
    for _ in 0..source.below(5) {
        source.edit(&mut object);
    }
    object
}
