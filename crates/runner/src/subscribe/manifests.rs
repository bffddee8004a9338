//! Manifests in a ConfigMap of the hub: read, checked and given their place. Pure.

use crate::words::short_hash;
use k8s_openapi::api::core::v1::ConfigMap;
use lifeboat_engine::ObjectKey;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// Kinds that are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// A claim; it comes first, for pods wait for it.
    PersistentVolumeClaim,
    /// Settings.
    ConfigMap,
    /// A workload.
    Deployment,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One object to deploy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    /// Its kind.
    pub kind: Kind,
    /// Namespace and name.
    #[serde(skip)]
    pub key: ObjectKey,
    /// The object as it was written, with its namespace.
    pub object: Value,
    /// Changes when the object as written changes.
    pub hash: String,
}

/// Reads every manifest of a ConfigMap, each document of each entry; without a namespace of its own an object goes where the ConfigMap is.
///
/// # Errors
/// What is wrong and where, in a sentence; one bad manifest spoils the whole, for half an application is none.
pub fn read(source: &ConfigMap) -> Result<Vec<Manifest>, String> {
    let home = source.metadata.namespace.as_deref().unwrap_or_default();
    let mut manifests: Vec<Manifest> = Vec::new();
    for (entry, text) in source.data.iter().flatten() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text)
            .map_err(|error| format!("entry {entry} is no YAML: {error}; correct it"))?;
        for document in documents.into_iter().filter(|document| !document.is_null()) {
            let manifest = one(entry, document, home)?;
            if manifests.iter().any(|other| other.kind == manifest.kind && other.key == manifest.key) {
                return Err(format!("{} {} is given twice; keep one", manifest.kind, manifest.key));
            }
            manifests.push(manifest);
        }
    }
    if manifests.is_empty() {
        return Err("it has no manifests; write them into its entries".to_owned());
    }
    manifests.sort_by(|a, b| (a.kind, &a.key).cmp(&(b.kind, &b.key)));
    Ok(manifests)
}

fn one(entry: &str, mut object: Value, home: &str) -> Result<Manifest, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = match (text("/apiVersion").as_str(), text("/kind").as_str()) {
        ("v1", "PersistentVolumeClaim") => Kind::PersistentVolumeClaim,
        ("v1", "ConfigMap") => Kind::ConfigMap,
        ("apps/v1", "Deployment") => Kind::Deployment,
        (version, kind) => {
            return Err(format!(
                "entry {entry} has a {version:?} {kind:?}; only Deployments, PersistentVolumeClaims and ConfigMaps are carried"
            ));
        }
    };
    let name = text("/metadata/name");
    if name.is_empty() {
        return Err(format!("entry {entry} has a {kind} without a name"));
    }
    let mut namespace = text("/metadata/namespace");
    if namespace.is_empty() {
        home.clone_into(&mut namespace);
        object["metadata"]["namespace"] = json!(namespace);
    }
    let hash = short_hash(&object);
    Ok(Manifest { kind, key: ObjectKey::new(namespace, name), object, hash })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn source(text: &str) -> ConfigMap {
        let data = BTreeMap::from([("app.yaml".to_owned(), text.to_owned())]);
        let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
        map.metadata.namespace = Some("shop".to_owned());
        map
    }

    #[test]
    fn manifests_are_read_in_the_order_they_are_needed() {
        let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: other}\n";
        let read = read(&source(text)).unwrap();
        let seen: Vec<(Kind, String)> = read.iter().map(|one| (one.kind, one.key.to_string())).collect();
        assert_eq!(
            seen,
            [
                (Kind::PersistentVolumeClaim, "other/data".to_owned()),
                (Kind::Deployment, "shop/web".to_owned())
            ]
        );
        assert_eq!(read[1].object["metadata"]["namespace"], "shop");
    }

    #[test]
    fn what_cannot_be_deployed_is_said() {
        let check = |text: &str, part: &str| {
            let why = read(&source(text)).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check("a: [", "no YAML");
        check("", "no manifests");
        check("apiVersion: v1\nkind: Secret\nmetadata: {name: x}", "only Deployments");
        check("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "without a name");
        let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
        check(twice, "given twice");
    }
}
