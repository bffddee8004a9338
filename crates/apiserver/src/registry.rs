//! Which resources are served: the built-in kinds and, at run time, the versions of custom resource definitions. The one
//! place that knows how a kind defaults, validates, prunes and prints, whichever of the two it is.

use crate::error::About;
use crate::object::Object;
use crate::store::Entry;
use jiff::Timestamp;
use lifeboat_kinds::{Column, Kind, Storage};
use lifeboat_schema::{FieldError, Schema, jsonpath::JsonPath};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// One resource of one served version.
#[derive(Debug)]
pub struct Resource {
    /// API group, empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Kind of lists.
    pub list_kind: String,
    /// Name in paths.
    pub plural: String,
    /// Name for one.
    pub singular: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Categories such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Where objects are stored.
    pub collection: Arc<str>,
    /// The apiVersion of this resource.
    pub api_version: String,
    /// The apiVersion objects are stored with.
    pub stored_version: String,
    /// What makes the kind what it is.
    pub nature: Nature,
}

/// Built-in or custom.
#[derive(Debug)]
pub enum Nature {
    /// A kind of Kubernetes itself.
    BuiltIn(&'static Kind),
    /// A version of a CustomResourceDefinition.
    Custom(Box<Custom>),
}

/// One version of a custom resource definition.
#[derive(Debug)]
pub struct Custom {
    /// The schema, permissive when the definition preserves unknown fields everywhere.
    pub schema: Schema,
    /// The schema as published.
    pub published: Value,
    /// Whether `status` is a subresource.
    pub has_status: bool,
    /// Whether the schema writes defaults.
    pub has_defaults: bool,
    /// The version of the definition that this was read from.
    pub revision: u64,
    /// The `scale` subresource, if any.
    pub scale: Option<Scale>,
    /// Printer columns.
    pub columns: Vec<PrinterColumn>,
    /// Selectable fields.
    pub selectable: Vec<(String, JsonPath)>,
    /// Why clients should move on, when the version is deprecated.
    pub deprecation: Option<String>,
    /// Name of the definition.
    pub definition: String,
    /// The storage version hash stand-in of discovery: the definition's uid.
    pub uid: String,
}

/// Where a custom resource keeps what `scale` shows.
#[derive(Debug, Clone)]
pub struct Scale {
    /// `specReplicasPath`.
    pub spec: String,
    /// `statusReplicasPath`.
    pub status: String,
    /// `labelSelectorPath`.
    pub selector: Option<String>,
}

/// A column of `additionalPrinterColumns`.
#[derive(Debug)]
pub struct PrinterColumn {
    /// How it is described to clients.
    pub definition: Value,
    /// `type` of the column.
    pub kind: String,
    /// Where its value comes from.
    pub path: JsonPath,
}

impl Resource {
    /// How errors name this resource.
    pub fn about(&self) -> About<'_> {
        About { group: &self.group, resource: &self.plural, kind: &self.kind }
    }

    /// Whether objects of it are stored at all.
    pub fn is_stored(&self) -> bool {
        !matches!(&self.nature, Nature::BuiltIn(kind) if kind.storage == Storage::Virtual)
    }

    /// Whether a subresource is served.
    pub fn has_subresource(&self, name: &str) -> bool {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.has_subresource(name),
            Nature::Custom(custom) => match name {
                "status" => custom.has_status,
                "scale" => custom.scale.is_some(),
                _ => false,
            },
        }
    }

    /// All subresources served.
    pub fn subresources(&self) -> Vec<&str> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.subresources.to_vec(),
            Nature::Custom(_) => {
                ["status", "scale"].into_iter().filter(|name| self.has_subresource(name)).collect()
            }
        }
    }

    /// The verbs of the resource itself.
    pub fn verbs(&self) -> &'static [&'static str] {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.verbs(),
            Nature::Custom(_) => {
                &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
            }
        }
    }

    /// The schema that patches, apply and field validation go by.
    pub fn schema(&self) -> &Schema {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.schema(),
            Nature::Custom(custom) => &custom.schema,
        }
    }

    /// What an update through this endpoint can not change, as managedFields see it.
    pub fn reset_fields(&self, subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" if self.has_subresource("status") => &["status"],
            "status" => &["spec", "metadata"],
            _ => &[],
        }
    }

    /// Whether an update without resourceVersion is taken.
    pub fn allows_unconditional_update(&self) -> bool {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.allows_unconditional_update(),
            Nature::Custom(_) => false,
        }
    }

    /// Whether an update of a missing object creates it.
    pub fn allows_create_on_update(&self) -> bool {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.allows_create_on_update(),
            Nature::Custom(_) => false,
        }
    }

    /// Values of the selectable fields of an object in its stored form.
    pub fn fields(&self, object: &Value) -> Vec<(String, String)> {
        match &self.nature {
            Nature::BuiltIn(kind) => storage_kind(kind)
                .selectable_fields(object)
                .into_iter()
                .filter(|(field, _)| !is_meta_field(field))
                .map(|(field, value)| (field.to_owned(), value))
                .collect(),
            Nature::Custom(custom) => custom
                .selectable
                .iter()
                .map(|(name, path)| (name.clone(), path.first(object).map(plain).unwrap_or_default()))
                .collect(),
        }
    }

    /// Whether a field may be named in a field selector.
    pub fn is_selectable(&self, field: &str) -> bool {
        if field == "metadata.name" || field == "metadata.namespace" {
            return true;
        }
        match &self.nature {
            Nature::BuiltIn(kind) => {
                kind.selectable_fields(&json!({})).iter().any(|(name, _)| *name == field)
            }
            Nature::Custom(custom) => custom.selectable.iter().any(|(name, _)| name == field),
        }
    }

    /// Brings an object of this version into the form it is stored in.
    pub fn to_stored(&self, mut object: Value) -> Value {
        if let Nature::BuiltIn(kind) = &self.nature {
            kind.to_stored(&mut object);
            return object;
        }
        if self.stored_version != self.api_version {
            object["apiVersion"] = self.stored_version.as_str().into();
        }
        object
    }

    /// Brings a stored object into this version.
    pub fn shown(&self, mut object: Value) -> Value {
        if let Nature::BuiltIn(kind) = &self.nature {
            kind.from_stored(&mut object);
            return object;
        }
        if self.stored_version != self.api_version {
            object["apiVersion"] = self.api_version.as_str().into();
        }
        // A default that came with a later schema is shown at once, and stored with the next write.
        if let Nature::Custom(custom) = &self.nature
            && custom.has_defaults
        {
            lifeboat_schema::apply_defaults(&custom.schema, &mut object);
        }
        object
    }

    /// Whether objects are stored in this version.
    pub fn is_storage_version(&self) -> bool {
        self.stored_version == self.api_version
    }

    /// Whether the stored bytes of an object can be served as they are: in this version, and with all its defaults.
    pub fn serves_as_stored(&self, entry: &Entry) -> bool {
        let has_defaults = match &self.nature {
            Nature::BuiltIn(_) => true,
            Nature::Custom(custom) => !custom.has_defaults || entry.revision > custom.revision,
        };
        self.is_storage_version() && has_defaults
    }

    /// Writes the defaults of the kind.
    pub fn default(&self, object: &mut Value) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.default(object),
            Nature::Custom(custom) => lifeboat_schema::apply_defaults(&custom.schema, object),
        }
    }

    /// What an object without any content looks like; ownership of fields is counted from there.
    pub fn empty(&self) -> Option<Value> {
        match &self.nature {
            Nature::BuiltIn(kind) => Some(kind.empty()),
            Nature::Custom(_) => None,
        }
    }

    /// Drops what a client may not set at creation and starts the generation.
    pub fn prepare_create(&self, object: &mut Value) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.prepare_create(object),
            Nature::Custom(custom) => {
                if custom.has_status
                    && let Some(root) = object.as_object_mut()
                {
                    root.remove("status");
                }
                object.meta_mut().insert("generation".into(), 1.into());
            }
        }
    }

    /// Keeps what this endpoint may not change and counts the generation up where it changed.
    pub fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.prepare_update(new, old, subresource),
            Nature::Custom(custom) => custom.prepare_update(new, old, subresource),
        }
    }

    /// Writes who asks for a certificate: nobody may claim to be somebody else.
    pub fn record_requester(&self, new: &mut Value, user: &Value) {
        if let Nature::BuiltIn(kind) = &self.nature {
            kind.record_requester(new, user);
        }
    }

    /// Writes what depends on the time, or on the uid and name that the server gave.
    pub fn stamp(&self, new: &mut Value, old: Option<&Value>, now: Timestamp) {
        if let Nature::BuiltIn(kind) = &self.nature {
            kind.stamp(new, old, now);
        }
    }

    /// The rules of the kind for a new object.
    pub fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.validate_create(object),
            Nature::Custom(custom) => {
                let mut errors = lifeboat_kinds::validate_meta(object, self.namespaced);
                errors.extend(lifeboat_schema::validate(&custom.schema, object, None));
                errors
            }
        }
    }

    /// The rules of the kind for a changed object.
    pub fn validate_update(&self, new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.validate_update(new, old, subresource),
            Nature::Custom(custom) => {
                let mut errors = lifeboat_kinds::validate_meta_update(new, old);
                errors.extend(lifeboat_schema::validate(&custom.schema, new, Some(old)));
                errors
            }
        }
    }

    /// Column definitions of the Table form.
    pub fn columns(&self) -> Vec<Value> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.columns().iter().map(column).collect(),
            Nature::Custom(custom) => {
                let name = json!({"name": "Name", "type": "string", "format": "name", "priority": 0,
                    "description": "Name of the object, unique in its namespace and kind."});
                std::iter::once(name).chain(custom.columns.iter().map(|c| c.definition.clone())).collect()
            }
        }
    }

    /// The cells of one row of the Table form.
    pub fn row(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.nature {
            Nature::BuiltIn(kind) => kind.row(object, now),
            Nature::Custom(custom) => {
                let name = Value::from(object.meta_str("name"));
                std::iter::once(name).chain(custom.columns.iter().map(|c| c.cell(object, now))).collect()
            }
        }
    }
}

impl Custom {
    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if self.has_status {
            if subresource == "status" {
                let status = new.get("status").cloned();
                let managed = new.meta().get("managedFields").cloned();
                *new = old.clone();
                put(new, "status", status);
                crate::object::set_meta(new, "managedFields", managed);
            } else {
                put(new, "status", old.get("status").cloned());
            }
        }
        let generation = old.meta().get("generation").and_then(Value::as_i64).unwrap_or(1);
        let changed = self.counted(new) != self.counted(old);
        let generation = if changed { generation + 1 } else { generation };
        new.meta_mut().insert("generation".into(), generation.into());
    }

    /// What a generation is about: all but metadata and, where it is a subresource, status.
    fn counted<'a>(&self, object: &'a Value) -> BTreeMap<&'a str, &'a Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .map(|(name, value)| (name.as_str(), value))
            .filter(|(name, _)| *name != "metadata" && !(*name == "status" && self.has_status))
            .collect()
    }
}

impl PrinterColumn {
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let found = self.path.find(object);
        let Some(first) = found.first() else { return Value::Null };
        match self.kind.as_str() {
            "integer" => first.as_i64().map_or(Value::Null, Value::from),
            "number" => first.as_f64().map_or(Value::Null, Value::from),
            "boolean" => first.as_bool().map_or(Value::Null, Value::from),
            "date" => first.as_str().map_or(Value::Null, |at| lifeboat_kinds::age(at, now).into()),
            _ => found.iter().map(|value| plain(value)).collect::<Vec<_>>().join(",").into(),
        }
    }
}

/// The kind that objects are stored as.
fn storage_kind(kind: &'static Kind) -> &'static Kind {
    match kind.storage {
        Storage::As { group, version } => lifeboat_kinds::find(group, version, kind.plural).unwrap_or(kind),
        Storage::Own | Storage::Virtual => kind,
    }
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(root) = object.as_object_mut() else { return };
    match value {
        Some(value) => root.insert(field.into(), value),
        None => root.remove(field),
    };
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

fn is_meta_field(field: &str) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace")
}

/// `v1` or `group/version`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The collection that a group's resource is stored in.
pub fn collection(group: &str, plural: &str) -> Arc<str> {
    if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() }
}

/// All resources served at one moment; a new one is made when a definition changes.
#[derive(Debug, Default)]
pub struct Registry {
    by_path: BTreeMap<(String, String, String), Arc<Resource>>,
    by_kind: BTreeMap<(String, String, String), Arc<Resource>>,
    by_collection: BTreeMap<Arc<str>, Arc<Resource>>,
    /// Groups with their versions, the preferred one first.
    groups: BTreeMap<String, Vec<String>>,
}

impl Registry {
    /// The built-in kinds and these custom ones.
    pub fn new(custom: impl IntoIterator<Item = Arc<Resource>>) -> Self {
        static BUILT_IN: LazyLock<Vec<Arc<Resource>>> =
            LazyLock::new(|| lifeboat_kinds::all().iter().map(|kind| Arc::new(built_in(kind))).collect());
        let mut registry = Self::default();
        for resource in BUILT_IN.iter() {
            registry.add(resource.clone());
        }
        for resource in custom {
            registry.add(resource);
        }
        for versions in registry.groups.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        }
        registry
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let path = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        let kind = (resource.group.clone(), resource.version.clone(), resource.kind.clone());
        let versions = self.groups.entry(resource.group.clone()).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version.clone());
        }
        if resource.is_storage_version() || !self.by_collection.contains_key(&resource.collection) {
            self.by_collection.insert(resource.collection.clone(), resource.clone());
        }
        self.by_kind.insert(kind, resource.clone());
        self.by_path.insert(path, resource);
    }

    /// The resource at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource of a kind.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.by_kind.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))
    }

    /// The resource that a collection's objects are stored as.
    pub fn of_collection(&self, collection: &str) -> Option<&Arc<Resource>> {
        self.by_collection.get(collection)
    }

    /// Every resource, in order of group, version and name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_path.values()
    }

    /// Groups with their versions, the preferred one first.
    pub fn groups(&self) -> &BTreeMap<String, Vec<String>> {
        &self.groups
    }

    /// What one group-version serves.
    pub fn of_version(&self, group: &str, version: &str) -> Vec<&Arc<Resource>> {
        let start = (group.to_owned(), version.to_owned(), String::new());
        let range = self.by_path.range(start..);
        range.take_while(|((g, v, _), _)| g == group && v == version).map(|(_, resource)| resource).collect()
    }
}

fn built_in(kind: &'static Kind) -> Resource {
    let (stored_group, stored_version) = match kind.storage {
        Storage::As { group, version } => (group, version),
        Storage::Own | Storage::Virtual => (kind.group, kind.version),
    };
    Resource {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        list_kind: kind.list_kind(),
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        short_names: kind.short_names.iter().map(ToString::to_string).collect(),
        categories: kind.categories.iter().map(ToString::to_string).collect(),
        namespaced: kind.namespaced,
        collection: collection(stored_group, kind.plural),
        api_version: kind.api_version(),
        stored_version: api_version(stored_group, stored_version),
        nature: Nature::BuiltIn(kind),
    }
}

/// Kubernetes' order of versions: `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, then the rest by name.
pub fn version_rank(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let major = rest[..digits].parse().ok()?;
        let (stage, minor) = match &rest[digits..] {
            "" => (3, 0),
            beta if beta.starts_with("beta") => (2, beta[4..].parse().ok()?),
            alpha if alpha.starts_with("alpha") => (1, alpha[5..].parse().ok()?),
            _ => return None,
        };
        Some((stage, major, minor))
    });
    let (stage, major, minor) = parsed.unwrap_or((0, 0, 0));
    (stage, major, minor, std::cmp::Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_the_order_of_kubernetes() {
        let mut versions = ["v1alpha1", "foo", "v2", "v1beta1", "v1", "v10", "bar", "v1beta2"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "bar", "foo"]);
    }
}
