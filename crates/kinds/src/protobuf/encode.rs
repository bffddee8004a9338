//! Writing JSON objects as Kubernetes' protobuf bodies, byte for byte as its own server does.
//!
//! Go writes fields in the order of their numbers, plain fields even when they are zero, pointers, lists and maps only
//! when they are set, and maps sorted by key. A message is written back to front: its length stands before it but is
//! only known after it, and so nothing has to be measured first or copied later.

use super::{Body, Error, MAGIC, body};
use crate::types::{Field, Shape, Ty, types};
use base64::Engine as _;
use serde_json::{Map, Value};

/// Writes an object as `k8s\0` + `runtime.Unknown` + message. Knows every built-in kind and its list, the bodies of
/// subresources, `Status` and `PartialObjectMetadata` with its list. Fields that the type does not have are left out.
pub fn encode(object: &Value) -> Result<Vec<u8>, Error> {
    let name = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (name("apiVersion"), name("kind"));
    let Some(body) = body(api_version, kind) else {
        return Err(Error::UnknownKind { api_version: api_version.into(), kind: kind.into() });
    };
    let fields = object.as_object().expect("invariant: it has a kind");
    let mut out = Writer::default();
    // The encoding and type of the content, which say nothing here.
    out.text(4, "");
    out.text(3, "");
    out.message(2, |out| match body {
        Body::One(ty) => fields_of(ty, fields, out),
        Body::List(ty) => {
            for item in array(object.get("items"), "items")?.iter().rev() {
                out.message(2, |out| value(Ty::Struct(ty), item, "items", out))?;
            }
            let metadata = object.get("metadata").unwrap_or(&Value::Null);
            out.message(1, |out| value(Ty::Struct(types().list_meta()), metadata, "metadata", out))
        }
    })?;
    out.message(1, |out| {
        out.text(2, kind);
        out.text(1, api_version);
        Ok(())
    })?;
    out.raw(MAGIC);
    Ok(out.finish())
}

/// A frame of a protobuf watch: the length as four bytes, big end first, then a bare `WatchEvent` around an object that
/// [`encode`] has written.
#[must_use]
pub fn watch_frame(event: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    let written: Result<(), Error> = out.message(2, |out| {
        out.bytes(1, object);
        Ok(())
    });
    written.expect("invariant: writing bytes cannot fail");
    out.text(1, event);
    let length = u32::try_from(out.reversed.len()).expect("invariant: no object is that large");
    out.raw(&length.to_be_bytes());
    out.finish()
}

/// What is written, last byte first.
#[derive(Default)]
struct Writer {
    reversed: Vec<u8>,
}

impl Writer {
    fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    fn varint(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        loop {
            let low = u8::try_from(value & 0x7f).expect("invariant: seven bits");
            value >>= 7;
            bytes[length] = if value == 0 { low } else { low | 0x80 };
            length += 1;
            if value == 0 {
                break;
            }
        }
        self.raw(&bytes[..length]);
    }

    fn tag(&mut self, number: u64, wire: u64) {
        self.varint(number << 3 | wire);
    }

    fn number(&mut self, number: u64, value: i64) {
        self.varint(value.cast_unsigned());
        self.tag(number, 0);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.raw(bytes);
        self.varint(bytes.len() as u64);
        self.tag(number, 2);
    }

    fn text(&mut self, number: u64, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    fn message(
        &mut self,
        number: u64,
        content: impl FnOnce(&mut Writer) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let before = self.reversed.len();
        content(self)?;
        self.varint((self.reversed.len() - before) as u64);
        self.tag(number, 2);
        Ok(())
    }
}

/// The fields of a message, last one first.
fn fields_of(ty: usize, object: &Map<String, Value>, out: &mut Writer) -> Result<(), Error> {
    let ty = &types().types[ty];
    for field in ty.by_number.values().rev().map(|at| &ty.fields[*at]) {
        if let (Ty::Struct(inner), true) = (field.ty, field.inline()) {
            out.message(field.number, |out| fields_of(inner, object, out))?;
            continue;
        }
        let value = object.get(field.name).filter(|v| !v.is_null());
        match field.shape {
            Shape::One => one(field, value, out)?,
            Shape::List => {
                for item in array(value, field.name)?.iter().rev() {
                    tagged(field.number, field.ty, item, field.name, out)?;
                }
            }
            Shape::Map => map(field, value, out)?,
        }
    }
    Ok(())
}

fn one(field: &Field, value: Option<&Value>, out: &mut Writer) -> Result<(), Error> {
    match value {
        Some(value) => tagged(field.number, field.ty, value, field.name, out),
        // Bytes are a slice in Go: nothing where nobody set them.
        None if field.pointer || field.ty == Ty::Bytes => Ok(()),
        None => tagged(field.number, field.ty, &Value::Null, field.name, out),
    }
}

fn map(field: &Field, value: Option<&Value>, out: &mut Writer) -> Result<(), Error> {
    let entries = match value {
        None => return Ok(()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(Error::Mismatch(field.name)),
    };
    let mut keys: Vec<&String> = entries.keys().collect();
    keys.sort_unstable();
    for key in keys.into_iter().rev() {
        out.message(field.number, |out| {
            tagged(2, field.ty, &entries[key], field.name, out)?;
            out.text(1, key);
            Ok(())
        })?;
    }
    Ok(())
}

/// A value with its number in front; null is what Go has where nothing was set.
fn tagged(number: u64, ty: Ty, v: &Value, name: &'static str, out: &mut Writer) -> Result<(), Error> {
    let wrong = || Error::Mismatch(name);
    match ty {
        Ty::String => out.text(number, text(v).ok_or_else(wrong)?),
        Ty::Bytes => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text(v).ok_or_else(wrong)?);
            out.bytes(number, &bytes.map_err(|_| wrong())?);
        }
        Ty::Bool => out.number(number, i64::from(bool_of(v).ok_or_else(wrong)?)),
        Ty::Int32 | Ty::Int64 => out.number(number, int(v).ok_or_else(wrong)?),
        Ty::Float => {
            let float = if v.is_null() { 0.0 } else { v.as_f64().ok_or_else(wrong)? };
            out.raw(&float.to_le_bytes());
            out.tag(number, 1);
        }
        _ => out.message(number, |out| value(ty, v, name, out))?,
    }
    Ok(())
}

/// The content of a value that is a message.
fn value(ty: Ty, v: &Value, name: &'static str, out: &mut Writer) -> Result<(), Error> {
    let wrong = || Error::Mismatch(name);
    match (ty, v) {
        (Ty::Struct(inner), Value::Object(object)) => fields_of(inner, object, out)?,
        (Ty::Struct(inner), Value::Null) => fields_of(inner, &Map::new(), out)?,
        (Ty::Quantity, Value::Null) => out.text(1, "0"),
        (Ty::Quantity, Value::Number(n)) => out.text(1, &n.to_string()),
        (Ty::Quantity, Value::String(s)) => out.text(1, s),
        (Ty::Time, _) => time(v, 1_000_000_000, out).ok_or_else(wrong)?,
        (Ty::MicroTime, _) => time(v, 1_000, out).ok_or_else(wrong)?,
        (Ty::IntOrString, Value::String(s)) => {
            out.text(3, s);
            out.number(2, 0);
            out.number(1, 1);
        }
        (Ty::IntOrString, _) => {
            out.text(3, "");
            out.number(2, int(v).ok_or_else(wrong)?);
            out.number(1, 0);
        }
        (Ty::Fields | Ty::Raw | Ty::Json | Ty::Extra, Value::Null) => {}
        (Ty::Fields | Ty::Raw | Ty::Json, _) => out.text(1, &v.to_string()),
        (Ty::Extra, Value::Array(items)) => {
            for item in items.iter().rev() {
                out.text(1, text(item).ok_or_else(wrong)?);
            }
        }
        (Ty::PropsOrArray | Ty::PropsOrBool | Ty::PropsOrStrings, _) => props_or(ty, v, name, out)?,
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The three unions of a JSON schema: a schema or something simpler.
fn props_or(ty: Ty, v: &Value, name: &'static str, out: &mut Writer) -> Result<(), Error> {
    let schema = Ty::Struct(types().json_schema_props());
    match (ty, v) {
        (Ty::PropsOrBool, Value::Object(_)) => {
            tagged(2, schema, v, name, out)?;
            out.number(1, 1);
        }
        (Ty::PropsOrBool, _) => out.number(1, i64::from(bool_of(v).ok_or(Error::Mismatch(name))?)),
        (_, Value::Object(_)) => tagged(1, schema, v, name, out)?,
        (_, _) => {
            let item = if ty == Ty::PropsOrStrings { Ty::String } else { schema };
            for entry in array(Some(v), name)?.iter().rev() {
                tagged(2, item, entry, name, out)?;
            }
        }
    }
    Ok(())
}

/// Seconds and a fraction cut to `unit` nanoseconds; a time that nobody set is an empty message.
fn time(v: &Value, unit: i32, out: &mut Writer) -> Option<()> {
    if v.is_null() {
        return Some(());
    }
    let at: jiff::Timestamp = v.as_str()?.parse().ok()?;
    // Before 1970 jiff counts a fraction backwards, protobuf always forwards.
    let nanos = at.subsec_nanosecond().rem_euclid(1_000_000_000);
    let seconds = at.as_second() - i64::from(at.subsec_nanosecond() < 0);
    out.number(2, i64::from(nanos / unit * unit));
    out.number(1, seconds);
    Some(())
}

fn text(v: &Value) -> Option<&str> {
    if v.is_null() { Some("") } else { v.as_str() }
}

fn bool_of(v: &Value) -> Option<bool> {
    if v.is_null() { Some(false) } else { v.as_bool() }
}

fn int(v: &Value) -> Option<i64> {
    if v.is_null() { Some(0) } else { v.as_i64() }
}

fn array<'a>(v: Option<&'a Value>, name: &'static str) -> Result<&'a [Value], Error> {
    match v {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Error::Mismatch(name)),
    }
}
