//! The version 2 document in protobuf (`openapi.v2.Document` of gnostic): kubectl reads no other form of it, and it reads it to check what is in a `List`.
//! Definitions only: paths are in the JSON form.

use serde_json::{Map, Value};

/// The types that ask for it: clients use the first, which is no valid type and therefore never sent back.
pub const ACCEPTED: [&str; 2] = ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", CONTENT_TYPE];
/// The type that it is sent as.
pub const CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Encodes a version 2 document.
pub fn document(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, document["swagger"].as_str().unwrap_or_default());
    out.message(2, |info| {
        info.text(1, document["info"]["title"].as_str().unwrap_or_default());
        info.text(2, document["info"]["version"].as_str().unwrap_or_default());
    });
    if let Some(definitions) = document["definitions"].as_object() {
        out.message(9, |out| schemas(definitions, out));
    }
    out.0
}

/// The bytes of a message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The low seven bits, with the mark that more follow.
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut below = Self::default();
        fill(&mut below);
        self.bytes(field, &below.0);
    }

    /// Any value, as YAML; JSON is that.
    fn any(&mut self, field: u64, value: &Value) {
        self.message(field, |any| any.text(2, &value.to_string()));
    }
}

fn schemas(all: &Map<String, Value>, out: &mut Message) {
    for (name, value) in all {
        out.message(1, |named| {
            named.text(1, name);
            named.message(2, |out| schema(value, out));
        });
    }
}

fn schema(value: &Value, out: &mut Message) {
    for (word, value) in value.as_object().into_iter().flatten() {
        match (word.as_str(), value) {
            ("$ref", Value::String(text)) => out.text(1, text),
            ("format", Value::String(text)) => out.text(2, text),
            ("title", Value::String(text)) => out.text(3, text),
            ("description", Value::String(text)) => out.text(4, text),
            ("pattern", Value::String(text)) => out.text(13, text),
            ("default", value) => out.any(5, value),
            ("multipleOf", value) => out.double(6, value.as_f64().unwrap_or_default()),
            ("maximum", value) => out.double(7, value.as_f64().unwrap_or_default()),
            ("minimum", value) => out.double(9, value.as_f64().unwrap_or_default()),
            ("exclusiveMaximum", value) => out.number(8, value.as_bool().unwrap_or_default().into()),
            ("exclusiveMinimum", value) => out.number(10, value.as_bool().unwrap_or_default().into()),
            ("maxLength", value) => out.number(11, value.as_u64().unwrap_or_default()),
            ("minLength", value) => out.number(12, value.as_u64().unwrap_or_default()),
            ("maxItems", value) => out.number(14, value.as_u64().unwrap_or_default()),
            ("minItems", value) => out.number(15, value.as_u64().unwrap_or_default()),
            ("uniqueItems", value) => out.number(16, value.as_bool().unwrap_or_default().into()),
            ("maxProperties", value) => out.number(17, value.as_u64().unwrap_or_default()),
            ("minProperties", value) => out.number(18, value.as_u64().unwrap_or_default()),
            ("required", Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).for_each(|name| out.text(19, name));
            }
            ("enum", Value::Array(values)) => values.iter().for_each(|value| out.any(20, value)),
            ("additionalProperties", Value::Bool(allowed)) => {
                out.message(21, |item| item.number(2, (*allowed).into()));
            }
            ("additionalProperties", below) => {
                out.message(21, |item| item.message(1, |out| schema(below, out)));
            }
            ("type", Value::String(name)) => out.message(22, |item| item.text(1, name)),
            ("items", below) => out.message(23, |item| item.message(1, |out| schema(below, out))),
            ("allOf", Value::Array(all)) => {
                all.iter().for_each(|below| out.message(24, |out| schema(below, out)));
            }
            ("properties", Value::Object(all)) => out.message(25, |out| schemas(all, out)),
            (word, value) if word.starts_with("x-") => out.message(31, |named| {
                named.text(1, word);
                named.any(2, value);
            }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_written_as_gnostic_numbers_it() {
        let check = |schema_of: Value, expected: &[u8]| {
            let mut out = Message::default();
            schema(&schema_of, &mut out);
            assert_eq!(out.0, expected, "{schema_of}");
        };
        check(json!({"type": "string"}), &[0xb2, 0x01, 8, 0x0a, 6, b's', b't', b'r', b'i', b'n', b'g']);
        check(json!({"$ref": "#/a"}), &[0x0a, 3, b'#', b'/', b'a']);
        check(json!({"maxLength": 300}), &[0x58, 0xac, 0x02]);
        check(json!({"minimum": 1}), &[0x49, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        check(
            json!({"properties": {"a": {"format": "b"}}}),
            &[0xca, 0x01, 10, 0x0a, 8, 0x0a, 1, b'a', 0x12, 3, 0x12, 1, b'b'],
        );
        check(
            json!({"x-k": [1]}),
            &[0xfa, 0x01, 12, 0x0a, 3, b'x', b'-', b'k', 0x12, 5, 0x12, 3, b'[', b'1', b']'],
        );
    }
}
