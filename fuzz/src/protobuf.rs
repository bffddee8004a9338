//! Protobuf bodies.

use crate::make::Source;
use serde_json::Value;

/// A byte of the wire may become so many bytes of JSON: one name and one value for each field.
const GROWTH: usize = 64;

/// Any bytes decode or fail; what decodes is an object that the rest of the kind's rules can take.
///
/// # Panics
/// When a promise is broken.
pub fn protobuf(data: &[u8]) {
    let made;
    let bytes = if data.starts_with(b"k8s\0") {
        data
    } else {
        made = message(&mut Source::new(data));
        &made
    };
    let Ok(mut object) = lifeboat_kinds::protobuf::decode(bytes) else { return };
    let (Some(api_version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str()) else {
        panic!("no apiVersion and kind: {object}");
    };
    let size = object.to_string().len();
    assert!(size <= 256 + bytes.len() * GROWTH, "{} bytes become {size}", bytes.len());
    let Some(kind) = lifeboat_kinds::find_kind(api_version, kind) else { return };
    every_rule(kind, &mut object);
}

/// Everything that the server does with an object of a kind, as far as it fits the schema.
fn every_rule(kind: &lifeboat_kinds::Kind, object: &mut Value) {
    if lifeboat_schema::type_errors(kind.schema(), object).is_some() {
        return;
    }
    let old = object.clone();
    kind.default(object);
    kind.prepare_create(object);
    let _ = kind.validate_create(object);
    let _ = kind.validate_update(object, &old, "");
    let _ = kind.validate_update(object, &old, "status");
    let _ = kind.selectable_fields(object);
    let _ = kind.row(object, jiff::Timestamp::UNIX_EPOCH);
    kind.prepare_update(object, &old, "");
    kind.to_stored(object);
    kind.from_stored(object);
}

/// A body in protobuf form for one of the kinds.
pub fn message(source: &mut Source<'_>) -> Vec<u8> {
    let kinds = lifeboat_kinds::all();
    let kind = &kinds[source.below(kinds.len())];
    let mut meta = Vec::new();
    field(&mut meta, 1, kind.api_version().as_bytes());
    field(&mut meta, 2, kind.kind.as_bytes());
    let mut envelope = Vec::new();
    field(&mut envelope, 1, &meta);
    field(&mut envelope, 2, &body(source, 7));
    [b"k8s\0", envelope.as_slice()].concat()
}

fn body(source: &mut Source<'_>, depth: usize) -> Vec<u8> {
    let mut out = Vec::new();
    if depth == 0 {
        return out;
    }
    for _ in 0..source.below(6) {
        let highest = if source.one_in(4) { 60 } else { 12 };
        let number = 1 + source.below(highest) as u64;
        match source.below(8) {
            0 => {
                varint(&mut out, number << 3);
                varint(&mut out, source.bits());
            }
            1 => {
                varint(&mut out, number << 3);
                varint(&mut out, source.below(3) as u64);
            }
            2 => field(&mut out, number, source.word().as_bytes()),
            3 => field(&mut out, number, &source.bytes(20)),
            4 => {
                varint(&mut out, number << 3 | source.below(8) as u64);
                out.extend(source.bytes(9));
            }
            _ => field(&mut out, number, &body(source, depth - 1)),
        }
    }
    out
}

fn field(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
