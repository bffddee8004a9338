//! Documents made of choices: whatever the bytes, something of a plausible shape comes out.

use arbitrary::Unstructured;
use serde_json::{Map, Value, json};

/// Words that mean something to one rule or another.
pub const WORDS: &[&str] = &[
    "a",
    "b",
    "",
    "default",
    "kube-system",
    "x.example.com/y",
    "app",
    "metadata.name",
    "Always",
    "Delete",
    "Retain",
    "ReadWriteOnce",
    "Filesystem",
    "ClusterIP",
    "100m",
    "1Gi",
    "1e3",
    "-1",
    "2024-01-02T03:04:05Z",
    "2024-01-02T03:04:05.123456Z",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "*",
    "%",
    "50%",
    "http",
    "TCP",
    "Foreground",
    "Background",
    "Orphan",
    "foregroundDeletion",
    "orphan",
    "kubernetes.io/pvc-protection",
    "v1",
    "fuzz.example.com/v1",
    "Thing",
    "ConfigMap",
    "Pod",
    "True",
    "False",
    "Unknown",
    "aGVsbG8=",
    "not base64!",
    "A",
    "-",
    "..",
    "a/b/c",
    "\u{0}",
    "é\u{301}🦀",
    "system:masters",
    "kubectl",
    "cluster-admin",
    "Namespace",
    "delete",
    "replace",
    "merge",
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "9223372036854775807",
    "18446744073709551616",
    "1",
    "0",
];

/// Names of fields that many kinds have, and those that patches treat apart.
pub const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "managedFields",
    "apiVersion",
    "kind",
    "data",
    "n",
    "s",
    "set",
    "list",
    "map",
    "free",
    "whole",
    "k",
    "v",
    "selector",
    "matchLabels",
    "containers",
    "ports",
    "conditions",
    "type",
    "replicas",
    "template",
    "$patch",
    "$retainKeys",
    "$setElementOrder/list",
    "$deleteFromPrimitiveList/set",
    "f:spec",
    "fieldsV1",
    "operation",
    "manager",
    "a",
];

/// An endless source of choices: zeros once the bytes are used up, so that everything made of it ends.
pub struct Source<'a>(Unstructured<'a>);

impl<'a> Source<'a> {
    /// Choices from bytes.
    pub fn new(data: &'a [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number below `end`, which must not be zero.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.int_in_range(0..=end - 1).unwrap_or(0)
    }

    /// True in one of `of` cases.
    pub fn one_in(&mut self, of: usize) -> bool {
        self.below(of) + 1 == of
    }

    /// One of several.
    pub fn pick<'s, T: ?Sized>(&mut self, from: &[&'s T]) -> &'s T {
        from[self.below(from.len())]
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// A few raw bytes.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1).min(self.0.len());
        self.0.bytes(length).map(<[u8]>::to_vec).unwrap_or_default()
    }

    /// A word, or a few random characters, or a long text.
    pub fn word(&mut self) -> String {
        match self.below(16) {
            15 => String::from_utf8_lossy(&self.bytes(12)).into_owned(),
            14 => self.pick(WORDS).repeat(1 + self.below(300)),
            13 => format!("{}.{}", self.pick(WORDS), self.pick(WORDS)),
            _ => self.pick(WORDS).to_owned(),
        }
    }

    /// A number as JSON may hold it.
    pub fn number(&mut self) -> Value {
        match self.below(8) {
            7 => json!(self.bits()),
            6 => json!(self.bits() as i64),
            5 => json!(f64::from_bits(self.bits())),
            4 => json!(-1),
            3 => json!(i64::MAX),
            _ => json!(self.below(5)),
        }
    }

    /// Any document.
    pub fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => self.number(),
            3 | 4 => self.word().into(),
            5 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
            _ => {
                let fields = (0..self.below(5)).map(|_| (self.name(), self.json(depth - 1)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// A field's name.
    pub fn name(&mut self) -> String {
        if self.one_in(8) { self.word() } else { self.pick(NAMES).to_owned() }
    }

    /// A document that an OpenAPI schema describes, more or less.
    pub fn shaped(&mut self, schema: &Value, schemas: &Map<String, Value>, depth: usize) -> Value {
        if depth == 0 || self.one_in(40) {
            return self.json(2);
        }
        if let Some(target) = reference(schema) {
            let name = target.rsplit('/').next().unwrap_or_default();
            return self.shaped(schemas.get(name).unwrap_or(&Value::Null), schemas, depth - 1);
        }
        match schema["type"].as_str() {
            Some("object") => match schema["properties"].as_object() {
                Some(properties) => self.object(schema, properties, schemas, depth),
                None => {
                    let of = &schema["additionalProperties"];
                    (0..self.below(3)).map(|_| (self.word(), self.shaped(of, schemas, depth - 1))).collect()
                }
            },
            Some("array") => {
                (0..self.below(3)).map(|_| self.shaped(&schema["items"], schemas, depth - 1)).collect()
            }
            Some("string") => match schema["enum"].as_array() {
                Some(values) if !values.is_empty() && !self.one_in(10) => {
                    values[self.below(values.len())].clone()
                }
                _ => self.word().into(),
            },
            Some("integer") => json!(self.below(100)),
            Some("number") => self.number(),
            Some("boolean") => json!(self.one_in(2)),
            _ => self.json(2),
        }
    }

    fn object(
        &mut self,
        schema: &Value,
        properties: &Map<String, Value>,
        schemas: &Map<String, Value>,
        depth: usize,
    ) -> Value {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut object = Map::new();
        for name in required.iter().filter_map(Value::as_str) {
            if let Some(of) = properties.get(name) {
                object.insert(name.to_owned(), self.shaped(of, schemas, depth - 1));
            }
        }
        let names: Vec<&String> = properties.keys().collect();
        for _ in 0..self.below(4).min(names.len()) {
            let name = names[self.below(names.len())];
            object.insert(name.clone(), self.shaped(&properties[name], schemas, depth - 1));
        }
        Value::Object(object)
    }

    /// Changes something somewhere in a document.
    pub fn edit(&mut self, document: &mut Value) {
        let path = self.pointer(document);
        let Some(place) = document.pointer_mut(&path) else { return };
        match (self.below(6), place) {
            (0, place) => *place = self.json(2),
            (1, Value::Object(fields)) if !fields.is_empty() => {
                let nth = self.below(fields.len());
                if let Some(name) = fields.keys().nth(nth).cloned() {
                    fields.remove(&name);
                }
            }
            (1, Value::Array(items)) if !items.is_empty() => {
                let at = self.below(items.len());
                items.remove(at);
            }
            (_, Value::Object(fields)) => {
                let (name, value) = (self.name(), self.json(3));
                fields.insert(name, value);
            }
            (_, Value::Array(items)) => match items.first() {
                Some(first) if self.one_in(2) => items.push(first.clone()),
                _ => items.push(self.json(2)),
            },
            (_, Value::String(text)) => *text = self.word(),
            (_, place @ Value::Number(_)) => *place = self.number(),
            (_, place) => *place = self.json(1),
        }
    }

    /// A pointer to something in a document.
    pub fn pointer(&mut self, document: &Value) -> String {
        let mut path = String::new();
        let mut at = document;
        while !self.one_in(4) {
            let (token, below) = match at {
                Value::Object(fields) if !fields.is_empty() => {
                    let nth = self.below(fields.len());
                    let Some((name, value)) = fields.iter().nth(nth) else { break };
                    (name.replace('~', "~0").replace('/', "~1"), value)
                }
                Value::Array(items) if !items.is_empty() => {
                    let nth = self.below(items.len());
                    (nth.to_string(), &items[nth])
                }
                _ => break,
            };
            path.push('/');
            path.push_str(&token);
            at = below;
        }
        path
    }

    /// A JSON patch, mostly of places that the document has.
    pub fn json_patch(&mut self, document: &Value) -> Value {
        let count = self.below(6);
        let mut operations = Vec::new();
        for _ in 0..count {
            let mut path = self.pointer(document);
            match self.below(5) {
                0 => path = format!("{path}/{}", self.name()),
                1 => path.push_str("/-"),
                2 if self.one_in(4) => path = self.word(),
                _ => {}
            }
            let from = self.pointer(document);
            let op = self.pick(&["add", "replace", "remove", "test", "copy", "move", "nonsense"]);
            operations.push(json!({"op": op, "path": path, "from": from, "value": self.json(3)}));
        }
        Value::Array(operations)
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str())
}
