//! The parsed schema: OpenAPI v3 as Kubernetes uses it, with its `x-kubernetes-*` extensions.
//!
//! A [`Schema`] is a tree of nodes plus named definitions that nodes may refer to, also in cycles. Everything that walks
//! a schema does so through [`View`], which resolves references on the way.

use crate::FieldError;
use crate::cel::Rule;
use crate::pattern::Pattern;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// How a list's items are identified when two lists are merged or checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects identified by their key fields.
    Map,
}

/// Whether a map's fields are owned one by one or as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Field by field.
    Granular,
    /// As a whole.
    Atomic,
}

/// The JSON types a schema can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    Null,
}

impl Type {
    pub(crate) fn parse(name: &str) -> Option<Type> {
        Some(match name {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::Null => "null",
        }
    }
}

/// What a schema says of properties it does not name.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// Nothing: pruned where pruning applies, not checked otherwise.
    #[default]
    Unsaid,
    /// `false`: forbidden.
    No,
    /// `true`: anything goes.
    Any,
    /// They must fit this.
    Fit(Arc<Node>),
}

/// One node of a schema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The name of the definition this node stands for; its own fields then override that definition's.
    pub reference: Option<String>,
    pub types: Vec<Type>,
    pub nullable: bool,
    pub properties: BTreeMap<String, Arc<Node>>,
    pub additional: Additional,
    pub items: Option<Arc<Node>>,
    pub required: Vec<String>,
    pub enumeration: Option<Vec<Value>>,
    pub default: Option<Value>,
    pub format: Option<String>,
    pub pattern: Option<Pattern>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    pub unique_items: bool,
    pub all_of: Vec<Arc<Node>>,
    pub any_of: Vec<Arc<Node>>,
    pub one_of: Vec<Arc<Node>>,
    pub not: Option<Arc<Node>>,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub int_or_string: bool,
    pub list_type: Option<ListType>,
    pub list_keys: Vec<String>,
    pub map_type: Option<MapType>,
    pub rules: Vec<Rule>,
    /// Whether this node or one below it has CEL rules: most objects have none, and the walk can then be spared.
    pub ruled: bool,
    pub patch_strategy: Vec<String>,
    pub patch_merge_key: Option<String>,
}

/// Named nodes that others refer to.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// Whether any of them has CEL rules.
    pub ruled: bool,
}

/// A parsed schema; cheap to clone and safe to share.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) root: Arc<Node>,
    pub(crate) definitions: Arc<Definitions>,
}

static ANY: LazyLock<Schema> = LazyLock::new(|| Schema {
    root: Arc::new(Node { preserve_unknown: true, ..Node::default() }),
    definitions: Arc::default(),
});

impl Schema {
    /// Parses an `openAPIV3Schema` that stands alone, as in a CRD.
    pub fn parse(schema: &Value) -> Result<Schema, Vec<FieldError>> {
        Self::parse_with(schema, &Value::Null)
    }

    /// Parses a schema that refers to others: `definitions` is an object from name to schema, and a `$ref` is resolved
    /// by what follows its last `/`. Definitions may refer to each other and to themselves.
    pub fn parse_with(schema: &Value, definitions: &Value) -> Result<Schema, Vec<FieldError>> {
        let definitions = Self::parse_definitions(definitions)?;
        definitions.schema(schema)
    }

    /// Parses definitions once, for many schemas that refer to them.
    pub fn parse_definitions(definitions: &Value) -> Result<SchemaDefinitions, Vec<FieldError>> {
        crate::parse::definitions(definitions).map(|d| SchemaDefinitions(Arc::new(d)))
    }

    /// The schema of anything: unknown fields are kept, maps are granular, lists atomic.
    pub fn any() -> Schema {
        ANY.clone()
    }

    /// The schema of one property of the root, such as `status`, where there is one.
    pub fn property(&self, name: &str) -> Option<Schema> {
        let root = self.view();
        let node = root.node.properties.get(name)?;
        Some(Schema { root: Arc::clone(node), definitions: Arc::clone(&self.definitions) })
    }

    /// Whether any CEL rule applies anywhere in this schema.
    pub fn has_rules(&self) -> bool {
        self.view().ruled()
    }

    pub(crate) fn view(&self) -> View<'_> {
        View::new(&self.root, &self.definitions)
    }
}

/// Parsed definitions that schemas may refer to; cheap to clone.
#[derive(Clone, Debug)]
pub struct SchemaDefinitions(Arc<Definitions>);

impl SchemaDefinitions {
    /// The schema of the definition called `name`.
    pub fn get(&self, name: &str) -> Option<Schema> {
        let root = Arc::clone(self.0.nodes.get(name)?);
        Some(Schema { root, definitions: Arc::clone(&self.0) })
    }

    /// Parses a schema that refers to these definitions.
    pub fn schema(&self, schema: &Value) -> Result<Schema, Vec<FieldError>> {
        let root = Arc::new(crate::parse::node(schema)?);
        Ok(Schema { root, definitions: Arc::clone(&self.0) })
    }
}

/// A node in its place: references resolved, with what the referring node overrides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The resolved node.
    pub node: &'a Node,
    /// The node that referred to it (the node itself where nothing referred).
    outer: &'a Node,
    definitions: &'a Definitions,
}

impl<'a> View<'a> {
    pub(crate) fn new(node: &'a Node, definitions: &'a Definitions) -> View<'a> {
        let mut resolved = node;
        // A chain of references longer than this is a cycle of nothing but references.
        for _ in 0..16 {
            match resolved.reference.as_ref().and_then(|name| definitions.nodes.get(name)) {
                Some(next) => resolved = next,
                None => break,
            }
        }
        View { node: resolved, outer: node, definitions }
    }

    pub(crate) fn of(self, node: &'a Node) -> View<'a> {
        View::new(node, self.definitions)
    }

    pub(crate) fn property(self, name: &str) -> Option<View<'a>> {
        self.node.properties.get(name).map(|n| self.of(n))
    }

    pub(crate) fn additional(self) -> Option<View<'a>> {
        match &self.node.additional {
            Additional::Fit(node) => Some(self.of(node)),
            _ => None,
        }
    }

    /// The schema of a field: its own property, or that of additional properties.
    pub(crate) fn field(self, name: &str) -> Option<View<'a>> {
        self.property(name).or_else(|| self.additional())
    }

    pub(crate) fn items(self) -> Option<View<'a>> {
        self.node.items.as_ref().map(|n| self.of(n))
    }

    pub(crate) fn default(self) -> Option<&'a Value> {
        self.outer.default.as_ref().or(self.node.default.as_ref())
    }

    pub(crate) fn nullable(self) -> bool {
        self.outer.nullable || self.node.nullable
    }

    pub(crate) fn list_type(self) -> Option<ListType> {
        self.outer.list_type.or(self.node.list_type)
    }

    pub(crate) fn list_keys(self) -> &'a [String] {
        if self.outer.list_keys.is_empty() { &self.node.list_keys } else { &self.outer.list_keys }
    }

    pub(crate) fn map_type(self) -> Option<MapType> {
        self.outer.map_type.or(self.node.map_type)
    }

    pub(crate) fn patch_strategy(self, name: &str) -> bool {
        self.outer.patch_strategy.iter().chain(&self.node.patch_strategy).any(|s| s == name)
    }

    pub(crate) fn patch_merge_key(self) -> Option<&'a str> {
        self.outer.patch_merge_key.as_deref().or(self.node.patch_merge_key.as_deref())
    }

    /// Whether a CEL rule may apply here or below.
    pub(crate) fn ruled(self) -> bool {
        self.node.ruled || self.definitions.ruled
    }

    /// The name of the definition this view was reached by, such as `io.k8s.api.apps.v1.DeploymentSpec`.
    pub(crate) fn name(self) -> Option<&'a str> {
        self.outer.reference.as_deref()
    }

    pub(crate) fn is(self, kind: Type) -> bool {
        self.node.types.contains(&kind)
    }
}
