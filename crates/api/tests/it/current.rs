//! `deploy/crds` holds exactly what the types say. `UPDATE_CRDS=1` rewrites it.

use lifeboat_api::{crd_file_name, crd_json, crd_yaml, crds, crds_json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")
}

#[test]
fn deploy_crds_is_current() {
    let wanted: BTreeMap<String, String> =
        crds().iter().map(|crd| (crd_file_name(crd), crd_yaml(crd))).collect();
    if std::env::var_os("UPDATE_CRDS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        for name in files().difference(&wanted.keys().cloned().collect()) {
            fs::remove_file(folder().join(name)).unwrap();
        }
        for (name, text) in &wanted {
            fs::write(folder().join(name), text).unwrap();
        }
    }
    assert_eq!(
        files(),
        wanted.keys().cloned().collect(),
        "one file for each CRD; UPDATE_CRDS=1 rewrites them"
    );
    for (name, text) in &wanted {
        let found = fs::read_to_string(folder().join(name)).unwrap();
        assert!(found == *text, "{name} is stale; UPDATE_CRDS=1 rewrites it");
    }
}

#[test]
fn what_the_binary_installs_is_current() {
    let wanted: String = crds().iter().map(|crd| crd_json(crd) + "\n").collect();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/crds.jsonl");
    if std::env::var_os("UPDATE_CRDS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == wanted, "crds.jsonl is stale; UPDATE_CRDS=1 rewrites it");
    assert_eq!(crds_json().count(), crds().len());
}

fn files() -> BTreeSet<String> {
    fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".yaml"))
        .collect()
}
