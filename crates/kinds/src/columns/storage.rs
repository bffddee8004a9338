//! The cells of claims and volumes.

use super::cells::{join, plain};
use crate::form::quantity;
use crate::json::{list, text};
use lifeboat_schema::Reach;
use serde_json::Value;

fn access_modes(obj: &Value, pointer: &str) -> Value {
    let modes = list(obj, pointer);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.iter().any(|m| m == mode);
    join(short.into_iter().filter(|(mode, _)| has(mode)).map(|(_, s)| s), ",").into()
}

fn storage(obj: &Value, pointer: &str) -> Value {
    let amount = obj.reach(pointer).map(plain).unwrap_or_default();
    quantity(&amount).unwrap_or_else(|| "0".into()).into()
}

fn class(obj: &Value) -> Value {
    let old = obj.reach("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    old.or_else(|| obj.reach("/spec/storageClassName")).map_or("".into(), Clone::clone)
}

fn phase(obj: &Value) -> Value {
    let deleted = obj.reach("/metadata/deletionTimestamp").is_some();
    (if deleted { "Terminating" } else { text(obj, "/status/phase") }).into()
}

fn unset(obj: &Value, pointer: &str) -> Value {
    obj.reach(pointer).map_or("<unset>".into(), Clone::clone)
}

pub(super) fn volume(obj: &Value, aged: Value) -> Vec<Value> {
    let claim = obj
        .reach("/spec/claimRef")
        .map_or(String::new(), |c| format!("{}/{}", text(c, "/namespace"), text(c, "/name")));
    vec![
        text(obj, "/metadata/name").into(),
        storage(obj, "/spec/capacity/storage"),
        access_modes(obj, "/spec/accessModes"),
        text(obj, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(obj),
        claim.into(),
        class(obj),
        unset(obj, "/spec/volumeAttributesClassName"),
        text(obj, "/status/reason").into(),
        aged,
        unset(obj, "/spec/volumeMode"),
    ]
}

pub(super) fn claim(obj: &Value, aged: Value) -> Vec<Value> {
    let bound = !text(obj, "/spec/volumeName").is_empty();
    vec![
        text(obj, "/metadata/name").into(),
        phase(obj),
        text(obj, "/spec/volumeName").into(),
        if bound { storage(obj, "/status/capacity/storage") } else { "".into() },
        if bound { access_modes(obj, "/status/accessModes") } else { "".into() },
        class(obj),
        unset(obj, "/spec/volumeAttributesClassName"),
        aged,
        unset(obj, "/spec/volumeMode"),
    ]
}
