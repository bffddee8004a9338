//! Kubernetes' own test cases, replayed: start state in, end state, events and writes out. The data is not part of this
//! repository; the folder that has it is named by an environment variable.

use crate::model::Model;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_binder::decide::matching;
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_engine::ObjectKey;
use lifeboat_reference::{Lack, skip_for};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const FOLDER: &str = "LIFEBOAT_PV_CASES";
/// Marks an object that the server has and the cache lacks.
const API_ONLY: &str = "pv-testing-skip-local-store";

/// What a case expects.
struct Expected {
    volumes: Value,
    claims: Value,
    events: Vec<String>,
    writes: Vec<String>,
}

/// Where we differ on purpose: why, in which of the cases that we know of, and what is expected instead. Cases that we do not
/// know of may differ for the same reason and are told when they do.
struct Difference {
    why: &'static str,
    cases: &'static [&'static str],
    applies: fn(&Value, &Model) -> bool,
    expect: fn(&mut Expected, &Model),
}

const BIND: [&str; 4] = [
    "update persistentvolumes",
    "update persistentvolumes/status",
    "update persistentvolumeclaims",
    "update persistentvolumeclaims/status",
];

/// The volume that the first claim names in the end.
fn bound_to(model: &Model) -> Option<&str> {
    model.claims.values().next()?.spec.as_ref()?.volume_name.as_deref()
}

fn named<'a>(objects: &'a Value, name: &str) -> Option<&'a Value> {
    list(objects).iter().find(|object| object["metadata"]["name"] == *name)
}

fn values<K: serde::Serialize>(objects: &BTreeMap<ObjectKey, K>) -> Value {
    objects.values().map(|object| serde_json::to_value(object).unwrap()).collect()
}

fn is_fresh(volume: &Value) -> bool {
    matches!(volume["status"]["phase"].as_str(), None | Some("Pending" | ""))
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        why: "a fresh volume is bound without waiting to be shown as Available, which spares a write",
        cases: &["1-17", "10-1"],
        applies: |case, model| {
            let volume = bound_to(model).and_then(|name| named(&case["initialVolumes"], name));
            let was_bound =
                list(&case["initialClaims"]).iter().any(|claim| claim["spec"]["volumeName"].is_string());
            !was_bound
                && volume.is_some_and(|volume| is_fresh(volume) && volume["spec"]["claimRef"].is_null())
        },
        expect: |expected, model| {
            // Where the case expects no binding at all, only that there is one is looked at.
            let expects_binding = |claim: &Value| claim["spec"]["volumeName"].is_string();
            if !list(&expected.claims).iter().any(expects_binding) {
                expected.volumes = values(&model.volumes);
                expected.claims = values(&model.claims);
            }
            expected.events = Vec::new();
            expected.writes = BIND.map(str::to_owned).to_vec();
        },
    },
    Difference {
        why: "a volume that cannot be reclaimed goes to Failed in one write, not by way of Released",
        cases: &["6-3", "8-3"],
        applies: |case, model| {
            let failed = |volume: &PersistentVolume| {
                volume.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Failed"))
            };
            // Whatever it was shown as before, unless the way to Failed was begun already.
            let begun =
                |volume: &Value| matches!(volume["status"]["phase"].as_str(), Some("Released" | "Failed"));
            !list(&case["initialVolumes"]).iter().any(begun) && model.volumes.values().any(failed)
        },
        expect: |expected, _| drop(expected.writes.pop()),
    },
    Difference {
        why: "a pass goes as far as it can: the class given, it goes on to whoever provisions for it",
        cases: &["15-2"],
        applies: |case, model| {
            let claims = list(&case["initialClaims"]);
            let silent = |claim: &Value| {
                claim["spec"]["storageClassName"].is_null() && claim["metadata"]["annotations"].is_null()
            };
            let given = |claim: &PersistentVolumeClaim| {
                claim.spec.as_ref().is_some_and(|spec| spec.storage_class_name.is_some())
            };
            claims.iter().all(silent) && model.claims.values().any(given)
        },
        expect: |expected, model| expected.events.clone_from(&model.events),
    },
    Difference {
        why: "the claim is told of a volume of another mode by its own pass, not by that of the volume",
        cases: &["14-13"],
        applies: |_, model| model.rest.as_deref() == Some("ClaimUnfit"),
        expect: |expected, _| expected.events.truncate(1),
    },
];

fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    if folder.is_none() {
        skip_for(Lack::Data, test, format!("{FOLDER} names no folder with cases"));
    }
    folder
}

fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// An object as text, without versions.
fn plain<K: serde::Serialize>(object: &K) -> String {
    let mut value = serde_json::to_value(object).unwrap();
    value["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    if let Some(reference) = value.pointer_mut("/spec/claimRef").and_then(Value::as_object_mut) {
        reference.remove("resourceVersion");
    }
    serde_json::to_string_pretty(&value).unwrap()
}

fn load(case: &Value) -> Model {
    let mut model = Model::default();
    if case["fakeCSIMigration"] == true {
        model.mind.migration = |_| Some("vendor.com/MockCSIDriver");
    }
    for class in list(&case["storageClasses"]) {
        model.mind.classes.saw(read::<StorageClass>(class));
    }
    for pod in list(&case["pods"]) {
        let mut pod = pod.clone();
        pod["spec"]["containers"] = Value::Array(vec![]);
        model.mind.pods.saw(read::<Pod>(&pod));
    }
    let known = |object: &&Value| object["metadata"]["annotations"].get(API_ONLY).is_none();
    let all = |objects: &Value| list(objects).to_vec();
    let (volumes, claims) = (all(&case["initialVolumes"]), all(&case["initialClaims"]));
    // What the cache has first: a later namesake on the server replaces it there only.
    for volume in volumes.iter().filter(known) {
        model.store_volume(read(volume));
    }
    for claim in claims.iter().filter(known) {
        model.store_claim(read(claim));
    }
    model.see_all();
    for volume in volumes.iter().filter(|object| !known(object)) {
        model.store_volume(read::<PersistentVolume>(volume));
    }
    for claim in claims.iter().filter(|object| !known(object)) {
        model.store_claim(read::<PersistentVolumeClaim>(claim));
    }
    model
}

fn happens(model: &mut Model, event: &Value) {
    match event["type"].as_str().unwrap() {
        "addClaim" => model.store_claim(read(&event["object"])),
        "deleteClaim" => {
            model.claims.remove(&ObjectKey::of(&read::<PersistentVolumeClaim>(&event["object"])));
        }
        "deleteVolume" => {
            model.volumes.remove(&ObjectKey::of(&read::<PersistentVolume>(&event["object"])));
        }
        other => panic!("an event of an unknown type: {other}"),
    }
}

fn set(events: &[String]) -> BTreeSet<&str> {
    events.iter().map(String::as_str).collect()
}

fn replay(case: &Value) -> Result<Vec<&'static Difference>, String> {
    let mut model = load(case);
    let once = case["runner"] == "sync";
    for entry in list(&case["entry"]).iter().filter(|_| once) {
        let object = entry["object"].as_str().unwrap();
        let done = match object.split_once('/') {
            Some((namespace, name)) => model.claim_pass(&ObjectKey::new(namespace, name)),
            None => model.volume_pass(object),
        };
        let failed = done.is_err() || model.rest.as_deref() == Some("VolumeTakenFromUs");
        if failed != entry["expectError"].as_bool().unwrap_or_default() {
            return Err(format!("fails: {failed}"));
        }
    }
    if !once {
        model.settle();
        for event in list(&case["reactorEvents"]) {
            happens(&mut model, event);
            model.settle();
        }
    }
    let mut expected = Expected {
        volumes: case["expectedVolumes"].clone(),
        claims: case["expectedClaims"].clone(),
        events: texts(&case["observed"]["events"]),
        writes: texts(&case["writes"]),
    };
    let mut differs = Vec::new();
    for row in DIFFERENCES.iter().filter(|row| (row.applies)(case, &model)) {
        (row.expect)(&mut expected, &model);
        differs.push(row);
    }
    same_end::<PersistentVolume>(&expected.volumes, &model.volumes)?;
    same_end::<PersistentVolumeClaim>(&expected.claims, &model.claims)?;
    let (events_agree, writes_agree) = if once {
        (model.events == expected.events, model.writes == expected.writes)
    } else {
        // How often, and in which order, is up to the scheduling of the day there.
        (set(&model.events) == set(&expected.events), model.writes.len() <= expected.writes.len())
    };
    if !events_agree {
        return Err(format!("events {:#?}, not {:#?}", model.events, expected.events));
    }
    if !writes_agree {
        return Err(format!("writes {:#?}, not {:#?}", model.writes, expected.writes));
    }
    Ok(differs)
}

fn same_end<K: DeserializeOwned + serde::Serialize>(
    expected: &Value,
    real: &BTreeMap<ObjectKey, K>,
) -> Result<(), String> {
    let expected: BTreeSet<String> = list(expected).iter().map(|object| plain(&read::<K>(object))).collect();
    let real: BTreeSet<String> = real.values().map(plain).collect();
    if expected == real { Ok(()) } else { Err(format!("ends with\n{real:#?}\nnot\n{expected:#?}")) }
}

fn cases(folder: &PathBuf) -> Vec<(String, Vec<Value>)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |file: PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let content: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        (name, list(&content["cases"]).to_vec())
    };
    files.into_iter().map(read).collect()
}

/// The number of a case.
fn id(name: &str) -> &str {
    name.split(" - ").next().and_then(|start| start.rsplit(' ').next()).unwrap_or(name)
}

/// A row that lists a case which does not differ that way any more.
fn stale(name: &str, differs: &[&Difference]) -> Option<String> {
    let listed = DIFFERENCES.iter().filter(|row| row.cases.contains(&id(name)));
    let mut stale = listed.filter(|row| !differs.iter().any(|differs| differs.why == row.why));
    stale.next().map(|row| format!("is listed and does not differ: {}", row.why))
}

#[test]
#[expect(clippy::print_stdout, reason = "the counts by file are what people look for")]
fn kubernetes_cases_end_as_there() {
    let Some(folder) = folder("kubernetes_cases_end_as_there") else { return };
    let mut wrong = Vec::new();
    let mut replayed = 0;
    for (file, cases) in cases(&folder) {
        let (mut passed, mut plugin, mut plugin_agrees) = (0, 0, 0);
        for case in cases.iter().filter(|case| case.get("runner").is_some()) {
            let name = case["name"].as_str().unwrap();
            let tags = texts(&case["dependsOn"]);
            let tagged = |tag: &str| tags.iter().any(|one| one == tag);
            let result = std::panic::catch_unwind(|| replay(case)).unwrap_or(Err("panicked".to_owned()));
            // Plugins inside the controller are not ours, but many cases that have one never call it. Volume attributes
            // classes can no longer be turned off.
            if tagged("mockPlugin") || tagged("gateVolumeAttributesClassOff") && name.contains("2-13 ") {
                plugin += 1;
                plugin_agrees += usize::from(result.is_ok());
                continue;
            }
            match result {
                Ok(differs) => {
                    passed += 1;
                    wrong.extend(stale(name, &differs).map(|why| format!("{file}: {name}: {why}")));
                    for Difference { why, cases, .. } in differs {
                        let listed = if cases.contains(&id(name)) { "" } else { ", and is not listed" };
                        println!("{file}: {name}: differs on purpose{listed}: {why}");
                    }
                }
                Err(why) => wrong.push(format!("{file}: {name}: {why}")),
            }
        }
        replayed += passed;
        println!(
            "{file}: {passed} passed; {plugin} need not, being about plugins, of which {plugin_agrees} agree"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(replayed > 0, "no case was found in {}", folder.display());
}

#[test]
#[expect(clippy::print_stdout, reason = "the counts by file are what people look for")]
fn kubernetes_matches_are_found() {
    let Some(folder) = folder("kubernetes_matches_are_found") else { return };
    let content: Value =
        serde_json::from_slice(&std::fs::read(folder.join("index-find.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    let mut passed = 0;
    for case in list(&content["cases"]) {
        let mut model = Model::default();
        for volume in list(&content["volumeSets"][case["volumeSet"].as_str().unwrap()]) {
            model.store_volume(read(volume));
        }
        model.see_all();
        let claim: PersistentVolumeClaim = read(&case["claim"]);
        let ours = model.mind.by.volumes_for.get(&ObjectKey::of(&claim));
        let delays = case["delayBinding"].as_bool().unwrap();
        let found = matching::reserved(&ours, &claim)
            .or_else(|| matching::best(&model.mind.by.free, &claim, |_| true).filter(|_| !delays));
        let found = found.and_then(|volume| volume.metadata.name.clone());
        if found.as_deref() == case["expectedVolumeName"].as_str() {
            passed += 1;
        } else {
            wrong.push(format!("{}: {found:?}, not {}", case["name"], case["expectedVolumeName"]));
        }
    }
    println!("index-find.json: {passed} passed");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed > 0);
}
