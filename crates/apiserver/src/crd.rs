//! Custom resource definitions: from a stored definition to served resources, and the conditions that say so.

use crate::cluster::Cluster;
use crate::object::{Object, set_condition, set_finalizers};
use crate::query::WriteOptions;
use crate::registry::{Custom, Nature, PrinterColumn, Registry, Resource, Scale, api_version, collection};
use crate::write::{At, Changed, rfc3339};
use lifeboat_schema::{Schema, jsonpath::JsonPath};
use serde_json::{Value, json};

/// Where definitions are stored.
pub const COLLECTION: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Held until the instances of a deleted definition are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The resources that a definition serves: none until its names are accepted.
pub fn resources(definition: &Value) -> Vec<Resource> {
    if !has_condition(definition, "Established") {
        return Vec::new();
    }
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let storage = versions.iter().find(|version| version["storage"] == true);
    let storage = storage.and_then(|version| version["name"].as_str()).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == true);
    served.map(|version| resource(definition, version, storage)).collect()
}

fn resource(definition: &Value, version: &Value, storage: &str) -> Resource {
    let spec = &definition["spec"];
    let names = &definition["status"]["acceptedNames"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let name = text(&version["name"]);
    Resource {
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        singular: text(&names["singular"]),
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        collection: collection(&group, &plural),
        api_version: api_version(&group, &name),
        stored_version: api_version(&group, storage),
        nature: Nature::Custom(Box::new(custom(definition, version))),
        group,
        version: name,
        plural,
    }
}

fn custom(definition: &Value, version: &Value) -> Custom {
    let mut published = version["schema"]["openAPIV3Schema"].clone();
    if published.is_null() {
        published = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    if definition["spec"]["preserveUnknownFields"] == true {
        published["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    let scale = &version["subresources"]["scale"];
    let path = |field: &str| scale[field].as_str().map(str::to_owned);
    let deprecated = version["deprecated"] == true;
    let deprecation = deprecated.then(|| {
        let default = format!(
            "{}/{} {} is deprecated",
            definition["spec"]["group"].as_str().unwrap_or_default(),
            version["name"].as_str().unwrap_or_default(),
            definition["spec"]["names"]["kind"].as_str().unwrap_or_default()
        );
        version["deprecationWarning"].as_str().map_or(default, str::to_owned)
    });
    let selectable = version["selectableFields"].as_array().into_iter().flatten().filter_map(|field| {
        let path = field["jsonPath"].as_str()?;
        Some((path.trim_start_matches('.').to_owned(), JsonPath::parse(path).ok()?))
    });
    Custom {
        // A definition whose schema cannot be parsed is refused when it is written; one stored by an older server
        // must not take the others down with it.
        schema: Schema::parse(&published).unwrap_or_else(|_| Schema::any()),
        has_defaults: published.to_string().contains("\"default\":"),
        revision: definition.meta_str("resourceVersion").parse().unwrap_or(u64::MAX),
        has_status: version["subresources"].get("status").is_some_and(|status| !status.is_null()),
        scale: scale.is_object().then(|| Scale {
            spec: path("specReplicasPath").unwrap_or_default(),
            status: path("statusReplicasPath").unwrap_or_default(),
            selector: path("labelSelectorPath"),
        }),
        columns: columns(&version["additionalPrinterColumns"]),
        selectable: selectable.collect(),
        deprecation,
        definition: definition.meta_str("name").to_owned(),
        uid: definition.meta_str("uid").to_owned(),
        published,
    }
}

fn columns(declared: &Value) -> Vec<PrinterColumn> {
    let age = json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
        "description": "How long ago the object was created."}]);
    let list = declared.as_array().filter(|list| !list.is_empty()).or(age.as_array());
    let columns = list.into_iter().flatten().filter_map(|column| {
        let path = JsonPath::parse(column["jsonPath"].as_str()?).ok()?;
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        let fallback =
            format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath"));
        Some(PrinterColumn {
            definition: json!({
                "name": text("name"),
                // An age is shown as text; the type only says how it was made.
                "type": text("type"),
                "format": text("format"),
                "description": if text("description").is_empty() { &fallback } else { text("description") },
                "priority": column["priority"].as_i64().unwrap_or(0),
            }),
            kind: text("type").to_owned(),
            path,
        })
    });
    columns.collect()
}

fn has_condition(definition: &Value, kind: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// A definition goes after its instances, and says so.
pub fn begin_deletion(definition: &mut Value, now: &str) {
    let mut finalizers: Vec<String> = definition.finalizers().iter().map(ToString::to_string).collect();
    finalizers.push(CLEANUP_FINALIZER.into());
    set_finalizers(definition, &finalizers);
    let terminating = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    set_condition(definition, terminating, now);
}

/// Stored versions can only be taken off through status, and never while they are still the storage version.
pub fn keep_served_state(new: &mut Value, old: &Value) {
    if new.get("status").is_none()
        && let Some(status) = old.get("status")
    {
        new["status"] = status.clone();
    }
}

impl Cluster {
    /// Accepts the names of a definition, or says which other definition has them, and serves it.
    pub(crate) fn establish(&self, name: &str) {
        let registry = self.registry();
        let Some(resource) = registry.of_collection(COLLECTION).cloned() else { return };
        let clash = self.find(COLLECTION, "", name).and_then(|definition| name_taken(&registry, &definition));
        let now = rfc3339(self.now());
        let at = At { subresource: "status", ..At::object(&resource, "", name) };
        let written = self.update(at, &WriteOptions::internal("kube-apiserver"), |old| {
            let mut new = old.cloned().ok_or_else(|| at.not_found())?;
            observe_names(&mut new, clash.as_ref(), &now);
            Ok(Changed::plain(new))
        });
        // Deleted meanwhile: there is nothing left to establish.
        drop(written);
    }

    /// The finalizer goes when the last instance has gone.
    pub(crate) fn release_definition(&self, name: &str) {
        let registry = self.registry();
        let Some(resource) = registry.of_collection(COLLECTION).cloned() else { return };
        let at = At::object(&resource, "", name);
        let released = self.update(at, &WriteOptions::internal("kube-apiserver"), |old| {
            let mut new = old.cloned().ok_or_else(|| at.not_found())?;
            let left: Vec<String> = new
                .finalizers()
                .iter()
                .filter(|f| **f != CLEANUP_FINALIZER)
                .map(ToString::to_string)
                .collect();
            set_finalizers(&mut new, &left);
            Ok(Changed { managed: true, ..Changed::plain(new) })
        });
        drop(released);
    }
}

/// The first name of a definition that another one of its group already has.
fn name_taken(registry: &Registry, definition: &Value) -> Option<(&'static str, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, names) = (text(&definition["spec"]["group"]), &definition["spec"]["names"]);
    let versions = registry.groups().get(&group)?;
    let served = versions.iter().flat_map(|version| registry.of_version(&group, version));
    for other in served {
        let Nature::Custom(custom) = &other.nature else { continue };
        if custom.definition == definition.meta_str("name") {
            continue;
        }
        let theirs = [
            ("plural", &other.plural),
            ("singular", &other.singular),
            ("kind", &other.kind),
            ("listKind", &other.list_kind),
        ];
        let clash =
            theirs.into_iter().find(|(field, name)| !name.is_empty() && text(&names[*field]) == **name);
        if let Some((field, name)) = clash {
            return Some((field, name.clone()));
        }
    }
    None
}

fn observe_names(definition: &mut Value, taken: Option<&(&'static str, String)>, now: &str) {
    let names = definition["spec"]["names"].clone();
    let (accepted, established) = match taken {
        None => (
            json!({"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"}),
            json!({"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}),
        ),
        Some((field, name)) => (
            json!({"type": "NamesAccepted", "status": "False", "reason": format!("{}Conflict", capital(field)), "message": format!("{name:?} is already in use")}),
            json!({"type": "Established", "status": "False", "reason": "NotAccepted", "message": "not all names are accepted"}),
        ),
    };
    let was_established = has_condition(definition, "Established");
    for condition in [accepted, established] {
        if condition["type"] == "Established" && was_established {
            continue;
        }
        set_condition(definition, condition, now);
    }
    if taken.is_none() {
        definition["status"]["acceptedNames"] = names;
    } else if definition["status"]["acceptedNames"].is_null() {
        definition["status"]["acceptedNames"] = json!({"kind": "", "plural": ""});
    }
    let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let storage =
        versions.iter().find(|version| version["storage"] == true).map(|version| version["name"].clone());
    let mut stored = definition["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if let Some(storage) = storage
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
    definition["status"]["storedVersions"] = stored.into();
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
