//! Kubernetes' protobuf bodies, read into the JSON form that everything else works on and written from it.
//!
//! Kubernetes' JSON is not the JSON form of its protobuf messages: inline structs, quantities, times and embedded JSON
//! each have their own shape on either side, and whether a zero is shown depends on whether the Go field is a pointer.
//! Generated message types (such as the crate k8s-pb has) know none of that, so a table of the fields is needed in any
//! case; with it, reading or writing the wire is one small generic function, and message types would only add code.

mod encode;
mod wire;

#[cfg(test)]
mod tests;

use crate::types::{Field, Shape, Ty, types};
use base64::Engine as _;
use serde_json::{Map, Value};
use wire::{Reader, Wire};

pub use encode::{encode, watch_frame};

/// The media type of protobuf bodies.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// How deep messages may nest; real objects stay far below, and the bound keeps hostile bodies off the end of the stack.
const MAX_DEPTH: usize = 100;

const MAGIC: &[u8] = b"k8s\0";

/// Why a body could not be read or written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The body does not start with `k8s\0`.
    #[error("the body does not start with the magic number of Kubernetes' protobuf form")]
    Magic,
    /// The bytes end in the middle of a value, or a tag, length or value makes no sense.
    #[error("malformed protobuf: {0}")]
    Malformed(&'static str),
    /// A field of an object to write holds something else than its type says.
    #[error("field {0:?} does not hold what its type says")]
    Mismatch(&'static str),
    /// No type is known under this name.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The apiVersion of the envelope.
        api_version: String,
        /// The kind of the envelope.
        kind: String,
    },
}

/// What the message in a body is.
enum Body {
    One(usize),
    /// A list of these.
    List(usize),
}

fn body(api_version: &str, kind: &str) -> Option<Body> {
    let ty = |kind: &str| types().root(api_version, kind);
    ty(kind).map(Body::One).or_else(|| Some(Body::List(ty(kind.strip_suffix("List")?)?)))
}

/// Reads `k8s\0` + `runtime.Unknown` + message into a JSON object with `apiVersion` and `kind`.
pub fn decode(bytes: &[u8]) -> Result<Value, Error> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(Error::Magic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Reader::new(envelope) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Reader::new(type_meta) {
                    match field? {
                        (1, Wire::Bytes(v)) => api_version = text(v)?,
                        (2, Wire::Bytes(v)) => kind = text(v)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(v)) => raw = v,
            _ => {}
        }
    }
    let Some(body) = body(&api_version, &kind) else {
        return Err(Error::UnknownKind { api_version, kind });
    };
    let mut object = Map::new();
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    match body {
        Body::One(ty) => message(ty, raw, &mut object, MAX_DEPTH)?,
        Body::List(ty) => list(ty, raw, &mut object)?,
    }
    Ok(Value::Object(object))
}

/// Every list has its metadata first and its items second.
fn list(ty: usize, bytes: &[u8], object: &mut Map<String, Value>) -> Result<(), Error> {
    let (mut metadata, mut items) = (Value::Object(Map::new()), Vec::new());
    for entry in Reader::new(bytes) {
        match entry? {
            (1, wire) => metadata = value(Ty::Struct(types().list_meta()), wire, MAX_DEPTH)?,
            (2, wire) => items.push(value(Ty::Struct(ty), wire, MAX_DEPTH)?),
            _ => {}
        }
    }
    object.insert("metadata".into(), metadata);
    object.insert("items".into(), Value::Array(items));
    Ok(())
}

/// Reads the fields of a message into a JSON object.
fn message(ty: usize, bytes: &[u8], object: &mut Map<String, Value>, depth: usize) -> Result<(), Error> {
    let depth = depth.checked_sub(1).ok_or(Error::Malformed("messages nest too deep"))?;
    let ty = &types().types[ty];
    for entry in Reader::new(bytes) {
        let (number, wire) = entry?;
        // A number that is not in the table is a newer field: protobuf readers skip it.
        let Some(&at) = ty.by_number.get(&number) else { continue };
        let field = &ty.fields[at];
        match field.shape {
            Shape::One => one(field, wire, object, depth)?,
            Shape::List => {
                let mut items = Vec::new();
                list_items(field, wire, &mut items, depth)?;
                if let Value::Array(list) =
                    object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()))
                {
                    list.append(&mut items);
                }
            }
            Shape::Map => {
                let (key, value) = map_entry(field, wire, depth)?;
                if let Value::Object(map) =
                    object.entry(field.name).or_insert_with(|| Value::Object(Map::new()))
                {
                    map.insert(key, value);
                }
            }
        }
    }
    Ok(())
}

fn one(field: &Field, wire: Wire<'_>, object: &mut Map<String, Value>, depth: usize) -> Result<(), Error> {
    if let (Ty::Struct(inner), true) = (field.ty, field.inline()) {
        return message(inner, wire.bytes()?, object, depth);
    }
    let read = value(field.ty, wire, depth)?;
    // Go writes fields that are not pointers even when they are zero; JSON omits those marked so. An empty struct that is not a
    // pointer says nothing either.
    let blank = match &read {
        Value::Null => true,
        _ if field.pointer => false,
        Value::Object(o) => matches!(field.ty, Ty::Struct(_)) && o.is_empty(),
        // A struct in Go, and so never omitted.
        _ if field.ty == Ty::IntOrString => false,
        v => field.omit_empty && is_zero(v),
    };
    if !blank {
        object.insert(field.name.into(), read);
    }
    Ok(())
}

fn is_zero(v: &Value) -> bool {
    match v {
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        _ => false,
    }
}

/// Reads one entry of a list, or a packed run of numbers.
fn list_items(field: &Field, wire: Wire<'_>, items: &mut Vec<Value>, depth: usize) -> Result<(), Error> {
    match (field.ty, wire) {
        (Ty::Int32 | Ty::Int64, Wire::Bytes(packed)) => {
            let mut rest = packed;
            while !rest.is_empty() {
                items.push(number(wire::varint(&mut rest)?));
            }
        }
        (ty, wire) => items.push(value(ty, wire, depth)?),
    }
    Ok(())
}

fn map_entry(field: &Field, wire: Wire<'_>, depth: usize) -> Result<(String, Value), Error> {
    let (mut key, mut read) = (String::new(), None);
    for entry in Reader::new(wire.bytes()?) {
        match entry? {
            (1, Wire::Bytes(k)) => key = text(k)?,
            (2, v) => read = Some(value(field.ty, v, depth)?),
            _ => {}
        }
    }
    let read = match read {
        Some(v) => v,
        None => value(field.ty, Wire::Bytes(&[]), depth).unwrap_or(Value::Null),
    };
    Ok((key, read))
}

fn value(ty: Ty, wire: Wire<'_>, depth: usize) -> Result<Value, Error> {
    Ok(match ty {
        Ty::String => text(wire.bytes()?)?.into(),
        Ty::Bytes => base64::engine::general_purpose::STANDARD.encode(wire.bytes()?).into(),
        Ty::Bool => (wire.varint()? != 0).into(),
        Ty::Int32 | Ty::Int64 => number(wire.varint()?),
        Ty::Float => float(f64::from_bits(wire.fixed64()?)),
        Ty::Quantity => {
            let text = first_string(wire.bytes()?)?;
            if text.is_empty() { "0".into() } else { text.into() }
        }
        Ty::Time => time(wire.bytes()?, 0)?,
        Ty::MicroTime => time(wire.bytes()?, 6)?,
        Ty::IntOrString => int_or_string(wire.bytes()?)?,
        Ty::Fields | Ty::Raw | Ty::Json => embedded(wire.bytes()?)?,
        Ty::Extra => {
            let mut items = Vec::new();
            for entry in Reader::new(wire.bytes()?) {
                if let (1, Wire::Bytes(v)) = entry? {
                    items.push(text(v)?.into());
                }
            }
            Value::Array(items)
        }
        Ty::PropsOrArray | Ty::PropsOrBool | Ty::PropsOrStrings => props_or(ty, wire.bytes()?, depth)?,
        Ty::Struct(inner) => {
            let mut object = Map::new();
            message(inner, wire.bytes()?, &mut object, depth)?;
            Value::Object(object)
        }
    })
}

/// The three unions of a JSON schema: a schema or something simpler.
fn props_or(ty: Ty, bytes: &[u8], depth: usize) -> Result<Value, Error> {
    let (mut schema, mut list, mut allows) = (None, Vec::new(), false);
    let props = types().json_schema_props();
    let read = |bytes: &[u8]| -> Result<Value, Error> {
        let mut object = Map::new();
        message(props, bytes, &mut object, depth)?;
        Ok(Value::Object(object))
    };
    for entry in Reader::new(bytes) {
        match (ty, entry?) {
            (Ty::PropsOrBool, (1, Wire::Varint(v))) => allows = v != 0,
            (Ty::PropsOrBool, (2, Wire::Bytes(v))) | (_, (1, Wire::Bytes(v))) => schema = Some(read(v)?),
            (Ty::PropsOrArray, (2, Wire::Bytes(v))) => list.push(read(v)?),
            (Ty::PropsOrStrings, (2, Wire::Bytes(v))) => list.push(text(v)?.into()),
            _ => {}
        }
    }
    Ok(match (ty, schema) {
        (_, Some(schema)) if list.is_empty() => schema,
        (Ty::PropsOrBool, _) => allows.into(),
        _ => Value::Array(list),
    })
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::Malformed("a string is not UTF-8"))
}

fn first_string(bytes: &[u8]) -> Result<String, Error> {
    let mut found = String::new();
    for entry in Reader::new(bytes) {
        if let (1, Wire::Bytes(v)) = entry? {
            found = text(v)?;
        }
    }
    Ok(found)
}

/// JSON inside a bytes field; an empty one is null.
fn embedded(bytes: &[u8]) -> Result<Value, Error> {
    let mut raw = &[][..];
    for entry in Reader::new(bytes) {
        if let (1, Wire::Bytes(v)) = entry? {
            raw = v;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|_| Error::Malformed("embedded JSON does not parse"))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Error> {
    let (mut is_string, mut int, mut string) = (false, 0, String::new());
    for entry in Reader::new(bytes) {
        match entry? {
            (1, Wire::Varint(v)) => is_string = v == 1,
            (2, Wire::Varint(v)) => int = v,
            (3, Wire::Bytes(v)) => string = text(v)?,
            _ => {}
        }
    }
    Ok(if is_string { string.into() } else { number(int) })
}

/// A timestamp; an empty message is the zero time, which JSON leaves out.
fn time(bytes: &[u8], digits: usize) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    for entry in Reader::new(bytes) {
        match entry? {
            (1, Wire::Varint(v)) => seconds = v.cast_signed(),
            (2, Wire::Varint(v)) => nanos = i32::try_from(v.cast_signed()).unwrap_or(0),
            _ => {}
        }
    }
    let at = jiff::Timestamp::new(seconds, nanos).map_err(|_| Error::Malformed("a time is out of range"))?;
    Ok(format!("{at:.digits$}").into())
}

/// Negative numbers come as their 64-bit two's complement.
fn number(v: u64) -> Value {
    v.cast_signed().into()
}

/// A float as Go's JSON shows it: whole ones without a fraction.
fn float(v: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only whole numbers that a f64 holds exactly get here"
    )]
    if v.fract() == 0.0 && v.abs() < 9e15 { (v as i64).into() } else { v.into() }
}
