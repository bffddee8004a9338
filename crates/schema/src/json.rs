//! JSON from outside: bounded in size and depth, with duplicate keys reported by path.

use crate::path::Path;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;
use thiserror::Error;

/// Bodies larger than this are refused, as by Kubernetes.
pub const MAX_BYTES: usize = 3 * 1024 * 1024;

/// How many duplicates are reported at most: a hostile body has no claim to a long answer.
const MAX_DUPLICATES: usize = 100;

/// A decoded document.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document; of duplicate keys the last one wins.
    pub value: Value,
    /// The paths of keys that occurred twice, such as `spec.x`: word them as `duplicate field "spec.x"`.
    pub duplicates: Vec<String>,
}

/// Why a document could not be decoded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Not JSON.
    #[error("{0}")]
    Syntax(String),
    /// Nested deeper than [`crate::MAX_DEPTH`].
    #[error("exceeded max depth")]
    TooDeep,
    /// Larger than [`MAX_BYTES`].
    #[error("Request entity too large: limit is {MAX_BYTES}")]
    TooLarge,
}

/// Decodes one JSON document that must fill `bytes`.
pub fn decode_strict(bytes: &[u8]) -> Result<Decoded, Error> {
    if bytes.len() > MAX_BYTES {
        return Err(Error::TooLarge);
    }
    let state = RefCell::new(State::default());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Seed(&state).deserialize(&mut reader).and_then(|v| reader.end().map(|()| v));
    match value {
        Ok(value) => Ok(Decoded { value, duplicates: state.into_inner().duplicates }),
        Err(e) if e.to_string().starts_with("recursion limit exceeded") => Err(Error::TooDeep),
        Err(e) => Err(Error::Syntax(e.to_string())),
    }
}

#[derive(Default)]
struct State {
    path: Path,
    duplicates: Vec<String>,
}

/// Decodes a value at the place the state points to.
struct Seed<'s>(&'s RefCell<State>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        // Kubernetes writes 2.0 back as 2; so that both agree, it is one from the start.
        if v.fract() == 0.0 && v.abs() < 1e15 {
            return Ok(Value::from(v as i64));
        }
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let length = self.0.borrow_mut().path.push_index(items.len());
            let item = seq.next_element_seed(Seed(self.0))?;
            self.0.borrow_mut().path.truncate(length);
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let slot = fields.entry(key);
            let length = {
                let mut state = self.0.borrow_mut();
                if matches!(slot, Entry::Occupied(_)) && state.duplicates.len() < MAX_DUPLICATES {
                    let path = state.path.child(slot.key());
                    if !state.duplicates.contains(&path) {
                        state.duplicates.push(path);
                    }
                }
                state.path.push(slot.key())
            };
            let value = map.next_value_seed(Seed(self.0))?;
            self.0.borrow_mut().path.truncate(length);
            match slot {
                Entry::Vacant(slot) => {
                    slot.insert(value);
                }
                Entry::Occupied(mut slot) => {
                    slot.insert(value);
                }
            }
        }
        Ok(Value::Object(fields))
    }
}
