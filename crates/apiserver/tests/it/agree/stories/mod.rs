//! The stories, by what they are about. A new behaviour is a new story; the real server says what is right.

mod changes;
mod custom;
mod kinds;
mod objects;
mod reading;
mod storage;

use super::*;

pub const CM: &str = "/api/v1/namespaces/{ns}/configmaps";

pub fn all() -> Vec<Story> {
    [
        objects::objects(),
        objects::updates(),
        changes::patches(),
        changes::apply_stories(),
        objects::deletion(),
        reading::lists(),
        reading::fields(),
        storage::storage(),
        custom::custom(),
        kinds::reviews(),
        kinds::workloads(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}
