//! One manifest of a work: which object it is, what that object should be, and whether it is so. Pure.

use crate::cluster::kinds::{Kind, Target};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::DynamicObject;
use lifeboat_api::annotations::OBJECT_HASH;
use lifeboat_api::work::{IgnoreField, IgnoreWhen};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// A manifest that can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Namespace as it is written, empty where none is.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The object, without what only an API server may say.
    pub body: Value,
}

/// What an API server says about an object, and nobody else.
const SERVERS_OWN: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(raw: &RawExtension) -> Result<Self, String> {
        let Value::Object(mut body) = raw.0.clone() else {
            return Err("the manifest is no object".to_owned());
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text(body.get("apiVersion"));
        let kind = text(body.get("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err("the manifest names no apiVersion or no kind".to_owned());
        }
        let (group, version) = match api_version.split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), api_version),
        };
        body.remove("status");
        let Some(Value::Object(metadata)) = body.get_mut("metadata") else {
            return Err("the manifest has no metadata".to_owned());
        };
        SERVERS_OWN.iter().for_each(|field| drop(metadata.remove(*field)));
        // Who owns an object on the hub says nothing on the cluster.
        metadata.remove("ownerReferences");
        let (namespace, name) = (text(metadata.get("namespace")), text(metadata.get("name")));
        if name.is_empty() {
            return Err("the manifest names no object: metadata.name is empty".to_owned());
        }
        Ok(Self { group, version, kind, namespace, name, body: Value::Object(body) })
    }

    /// The object that it is about, its kind being known.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn target(&self, kind: Kind) -> Result<Target, String> {
        let namespace = match kind.namespaced {
            true if self.namespace.is_empty() => {
                return Err(format!("a {} needs a namespace and the manifest names none", self.kind));
            }
            true => self.namespace.clone(),
            false => String::new(),
        };
        Ok(Target { kind, namespace, name: self.name.clone() })
    }

    /// A text that differs when what is wanted differs.
    pub fn hash(&self) -> String {
        let mut text = String::new();
        canonical(&self.body, &mut text);
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// Whether an object is as this manifest wants it: made from it when last written, and everything that it says still so.
    pub fn is_met_by(&self, object: &DynamicObject) -> bool {
        let annotations = object.metadata.annotations.as_ref();
        let hash = annotations.and_then(|annotations| annotations.get(OBJECT_HASH));
        hash == Some(&self.hash()) && self.says_nothing_new_to(object)
    }

    /// Whether everything that the manifest says is so.
    pub fn says_nothing_new_to(&self, object: &DynamicObject) -> bool {
        let Ok(present) = serde_json::to_value(object) else { return false };
        let (Value::Object(wanted), Value::Object(present)) = (&self.body, &present) else { return false };
        wanted.iter().all(|(field, value)| match field.as_str() {
            "apiVersion" | "kind" => true,
            "metadata" => ["labels", "annotations"].iter().all(|part| {
                let said = value.get(part).filter(|said| !said.is_null());
                said.is_none_or(|said| {
                    contained(said, present.get("metadata").and_then(|meta| meta.get(part)))
                })
            }),
            // What is written as text comes back as bytes.
            "stringData" => true,
            _ => contained(value, present.get(field)),
        })
    }

    /// The object to make, with these annotations beside its own.
    pub fn made(&self, target: &Target, annotations: &[(&str, &str)]) -> Value {
        let mut body = self.body.clone();
        annotate(&mut body, annotations);
        if target.namespace.is_empty()
            && let Some(Value::Object(metadata)) = body.get_mut("metadata")
        {
            metadata.remove("namespace");
        }
        body
    }

    /// The object that is there, as it should be: labels and annotations joined, finalizers, owners and status kept, all else replaced.
    pub fn over(&self, target: &Target, present: &DynamicObject) -> Value {
        let mut wanted = self.made(target, &[(OBJECT_HASH, &self.hash())]);
        let present = serde_json::to_value(present).unwrap_or_default();
        let Value::Object(fields) = &mut wanted else { return wanted };
        if let Some(status) = present.get("status") {
            fields.insert("status".to_owned(), status.clone());
        }
        let said = fields.remove("metadata").unwrap_or_default();
        let mut metadata = present.get("metadata").cloned().unwrap_or_else(|| json!({}));
        for part in ["labels", "annotations"] {
            let Some(Value::Object(said)) = said.get(part) else { continue };
            let Value::Object(meta) = &mut metadata else { continue };
            let Value::Object(known) = meta.entry(part).or_insert_with(|| json!({})) else { continue };
            known.extend(said.clone());
        }
        fields.insert("metadata".to_owned(), metadata);
        wanted
    }

    /// The same manifest without the fields that are the cluster's business once the object exists.
    ///
    /// # Errors
    /// Which field cannot be told.
    pub fn without(mut self, ignored: &[IgnoreField]) -> Result<Self, String> {
        for rule in ignored.iter().filter(|rule| rule.condition != IgnoreWhen::OnSpokeChange) {
            if let Some(expression) = rule.jq_path_expressions.first() {
                return Err(format!("jq expressions are not understood here: {expression}"));
            }
            for path in &rule.json_paths {
                let steps = path.trim_start_matches(['$', '.']).split('.').map(str::to_owned);
                let steps: Vec<String> = steps.collect();
                if steps.iter().any(|step| step.is_empty() || step.contains(['[', '*', '?'])) {
                    return Err(format!(
                        "only plain paths such as .spec.replicas are understood here: {path}"
                    ));
                }
                remove(&mut self.body, &steps);
            }
            for pointer in &rule.json_pointers {
                let steps = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
                remove(&mut self.body, &steps.collect::<Vec<_>>());
            }
        }
        Ok(self)
    }
}

fn annotate(body: &mut Value, annotations: &[(&str, &str)]) {
    let Some(Value::Object(metadata)) = body.get_mut("metadata") else { return };
    if metadata.get("annotations").is_none_or(Value::is_null) {
        metadata.insert("annotations".to_owned(), json!({}));
    }
    let Some(Value::Object(known)) = metadata.get_mut("annotations") else { return };
    known.extend(annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
}

fn remove(value: &mut Value, steps: &[String]) {
    match (value, steps) {
        (Value::Object(fields), [last]) => drop(fields.remove(last)),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(first) {
                remove(inner, rest);
            }
        }
        (Value::Array(items), [first, rest @ ..]) => {
            if let Some(inner) = first.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

/// Whether all that is wanted is there. An API server fills in defaults and drops what is empty, so more may be there, and what is
/// wanted empty may be absent.
fn contained(wanted: &Value, present: Option<&Value>) -> bool {
    match (wanted, present) {
        (Value::Null, _) => true,
        (Value::Object(fields), None) => fields.is_empty(),
        (Value::Array(items), None) => items.is_empty(),
        (Value::Object(fields), Some(Value::Object(present))) => {
            fields.iter().all(|(field, value)| contained(value, present.get(field)))
        }
        (Value::Array(items), Some(Value::Array(present))) => {
            items.len() == present.len()
                && items.iter().zip(present).all(|(item, present)| contained(item, Some(present)))
        }
        (Value::Number(one), Some(Value::Number(other))) => one.as_f64() == other.as_f64(),
        (wanted, present) => Some(wanted) == present,
    }
}

/// The same value always as the same text.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            text.push('{');
            for name in names {
                let _ = write!(text, "{}:", Value::from(name.as_str()));
                canonical(&fields[name], text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => drop(write!(text, "{plain}")),
    }
}

/// An order in which objects can be made: what others live in or refer to comes first.
pub fn rank(kind: &str) -> u8 {
    match kind {
        "Namespace" | "CustomResourceDefinition" | "PriorityClass" | "StorageClass" | "PersistentVolume" => 0,
        "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => 1,
        "NetworkPolicy" | "ResourceQuota" | "LimitRange" | "PodDisruptionBudget" | "ServiceAccount" => 2,
        "Secret" | "ConfigMap" | "PersistentVolumeClaim" => 3,
        "Service" => 4,
        "Pod"
        | "ReplicationController"
        | "ReplicaSet"
        | "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "Job"
        | "CronJob"
        | "HorizontalPodAutoscaler" => 5,
        "APIService"
        | "MutatingWebhookConfiguration"
        | "ValidatingWebhookConfiguration"
        | "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding" => 6,
        _ => 7,
    }
}

/// The fields of an object that is known to be one.
pub(crate) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
