//! The shape of every Kubernetes type that a body may hold, read once from a table of facts (`types.txt`).
//!
//! The table has one line per field: protobuf number, JSON name (`.` for a struct whose fields appear in its parent),
//! type (`[]` list, `{}` map with string keys), flags (`p` pointer, `o` omitted when empty, `z` omitted when zero) and
//! how the field merges: `lt` list type, `lk` keys of a map list, `mt` map type, `ps` and `pk` strategic patch
//! strategy and merge key, `d` a default that OpenAPI shows, `w` one that the server writes all the same. Lines that start with `@` open an API package: its alias and its name in OpenAPI.
//!
//! One table serves the schemas, the protobuf reader and writer, the stored form and the OpenAPI extensions, so that they cannot
//! disagree about a field.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a field holds, apart from being a list or a map of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    String,
    Bool,
    Int32,
    Int64,
    Float,
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    /// `managedFields[].fieldsV1`: JSON in a `Raw` bytes field.
    Fields,
    /// An object of any kind: JSON in a `raw` bytes field.
    Raw,
    /// Any JSON: in a `raw` bytes field.
    Json,
    /// A list of strings that is a message of its own, because it is the value of a map.
    Extra,
    PropsOrArray,
    PropsOrBool,
    PropsOrStrings,
    Struct(usize),
}

/// Whether a field holds one value, a list or a map with string keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    List,
    Map,
}

/// One field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) ty: Ty,
    pub(crate) shape: Shape,
    pub(crate) pointer: bool,
    pub(crate) omit_empty: bool,
    pub(crate) omit_zero: bool,
    pub(crate) list_type: Option<&'static str>,
    pub(crate) list_keys: Vec<&'static str>,
    pub(crate) map_type: Option<&'static str>,
    pub(crate) patch_strategy: Option<&'static str>,
    pub(crate) patch_key: Option<&'static str>,
    /// The default that OpenAPI shows.
    pub(crate) default: Option<Value>,
    /// The default that the server writes, whether OpenAPI shows it or not.
    pub(crate) written: Option<Value>,
}

impl Field {
    /// Whether the fields of this struct appear in its parent.
    pub(crate) fn inline(&self) -> bool {
        self.name == "."
    }
}

/// A struct.
#[derive(Debug)]
pub(crate) struct Type {
    /// The name in OpenAPI documents.
    pub(crate) name: String,
    /// Whether server-side apply owns it as a whole.
    pub(crate) atomic: bool,
    pub(crate) fields: Vec<Field>,
    /// A field number's place in `fields`.
    pub(crate) by_number: BTreeMap<u64, usize>,
}

/// A type that can be a whole body.
#[derive(Debug)]
pub(crate) struct Root {
    /// `*` for one that belongs to every group.
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) ty: usize,
}

/// All types.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) types: Vec<Type>,
    pub(crate) roots: Vec<Root>,
    pub(crate) by_name: BTreeMap<String, usize>,
}

/// The table, parsed.
pub(crate) fn types() -> &'static Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| parse(include_str!("types.txt")));
    &TYPES
}

impl Types {
    /// The type of a body with this apiVersion and kind.
    pub(crate) fn root(&self, api_version: &str, kind: &str) -> Option<usize> {
        let hit = |r: &&Root| r.kind == kind && (r.api_version == api_version || r.api_version == "*");
        self.roots.iter().find(hit).map(|r| r.ty)
    }

    /// Calls `f` for each field as JSON shows them: those of inline structs in place of the struct.
    pub(crate) fn each_json_field(&'static self, ty: usize, f: &mut impl FnMut(&'static Field)) {
        for field in &self.types[ty].fields {
            match field.ty {
                Ty::Struct(inner) if field.inline() => self.each_json_field(inner, f),
                _ => f(field),
            }
        }
    }

    /// The metadata of a list.
    pub(crate) fn list_meta(&self) -> usize {
        self.by_name["io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"]
    }

    /// The JSON schema type's struct, which the `propsOr...` types refer to.
    pub(crate) fn json_schema_props(&self) -> usize {
        self.by_name[JSON_SCHEMA_PROPS]
    }
}

pub(crate) const JSON_SCHEMA_PROPS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// A struct's line and those of its fields, with what its short names are relative to.
struct Lines {
    alias: &'static str,
    name: String,
    atomic: bool,
    fields: Vec<&'static str>,
}

fn parse(text: &'static str) -> Types {
    let (mut alias, mut package) = ("", "");
    let mut blocks: Vec<Lines> = Vec::new();
    let mut root_lines = Vec::new();
    for line in text.lines() {
        if let Some(header) = line.strip_prefix('@') {
            (alias, package) = header.split_once(' ').unwrap_or((header, ""));
        } else if let Some(entry) = line.strip_prefix(' ') {
            if alias == "roots" {
                root_lines.push(entry);
            } else {
                blocks.last_mut().expect("invariant: fields follow their struct").fields.push(entry);
            }
        } else {
            let (name, flag) = line.split_once(' ').unwrap_or((line, ""));
            blocks.push(Lines {
                alias,
                name: format!("{package}.{name}"),
                atomic: flag == "atomic",
                fields: vec![],
            });
        }
    }
    // Names are unique within a package, so alias and last segment together find a struct.
    let short: BTreeMap<String, usize> = blocks
        .iter()
        .enumerate()
        .map(|(i, b)| (format!("{}.{}", b.alias, b.name.rsplit('.').next().unwrap_or_default()), i))
        .collect();
    let by_name = blocks.iter().enumerate().map(|(i, b)| (b.name.clone(), i)).collect();
    let types = blocks
        .into_iter()
        .map(|b| {
            let fields: Vec<Field> = b.fields.iter().map(|line| field(line, b.alias, &short)).collect();
            let by_number = fields.iter().enumerate().map(|(i, f)| (f.number, i)).collect();
            Type { name: b.name, atomic: b.atomic, fields, by_number }
        })
        .collect();
    let roots = root_lines
        .into_iter()
        .map(|line| {
            let (api_version, name) = line.split_once(' ').expect("invariant: a root has two words");
            let kind = name.rsplit('.').next().unwrap_or(name);
            Root { api_version, kind, ty: short[name] }
        })
        .collect();
    Types { types, roots, by_name }
}

fn field(line: &'static str, alias: &str, short: &BTreeMap<String, usize>) -> Field {
    let mut words = line.split(' ');
    let mut next = || words.next().expect("invariant: a field has four words");
    let (number, name, ty, flags) = (next(), next(), next(), next());
    let (shape, ty) = match (ty.strip_prefix("[]"), ty.strip_prefix("{}")) {
        (Some(item), _) => (Shape::List, item),
        (_, Some(value)) => (Shape::Map, value),
        _ => (Shape::One, ty),
    };
    let ty = match ty {
        "string" => Ty::String,
        "bool" => Ty::Bool,
        "int32" => Ty::Int32,
        "int64" => Ty::Int64,
        "float64" => Ty::Float,
        "bytes" => Ty::Bytes,
        "quantity" => Ty::Quantity,
        "time" => Ty::Time,
        "microtime" => Ty::MicroTime,
        "intstr" => Ty::IntOrString,
        "fields" => Ty::Fields,
        "raw" => Ty::Raw,
        "json" => Ty::Json,
        "extra" => Ty::Extra,
        "propsOrArray" => Ty::PropsOrArray,
        "propsOrBool" => Ty::PropsOrBool,
        "propsOrStrings" => Ty::PropsOrStrings,
        name if name.contains('.') => Ty::Struct(short[name]),
        name => Ty::Struct(short[&format!("{alias}.{name}")]),
    };
    let mut f = Field {
        number: number.parse().expect("invariant: every field has a number"),
        name,
        ty,
        shape,
        pointer: flags.contains('p'),
        omit_empty: flags.contains('o'),
        omit_zero: flags.contains('z'),
        list_type: None,
        list_keys: Vec::new(),
        map_type: None,
        patch_strategy: None,
        patch_key: None,
        default: None,
        written: None,
    };
    for word in words {
        let (key, value) = word.split_once('=').expect("invariant: facts are key=value");
        match key {
            "lt" => f.list_type = Some(value),
            "lk" => f.list_keys = value.split(',').collect(),
            "mt" => f.map_type = Some(value),
            "ps" => f.patch_strategy = Some(value),
            "pk" => f.patch_key = Some(value),
            "d" => {
                f.default = Some(json(value));
                f.written.clone_from(&f.default);
            }
            _ => f.written = Some(json(value)),
        }
    }
    f
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("invariant: a default is JSON")
}
