//! What is written reads back as it was, for objects of every type with any of their fields set.

use super::{decode, encode, watch_frame};
use crate::form::canonicalize;
use crate::types::{Field, Shape, Ty, types};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Picks that follow from a seed.
struct Picks(u64);

impl Picks {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn of(&mut self, choices: &[Value]) -> Value {
        let at = usize::try_from(self.below(choices.len() as u64)).expect("small");
        choices[at].clone()
    }

    fn object(&mut self, ty: usize, depth: u64) -> Map<String, Value> {
        let mut object = Map::new();
        types().each_json_field(ty, &mut |field| {
            // Deep down few fields are set, so that recursive types come to an end.
            if self.below(2 + depth * depth) == 0 {
                object.insert(field.name.into(), self.field(field, depth));
            }
        });
        object
    }

    fn field(&mut self, field: &Field, depth: u64) -> Value {
        match field.shape {
            Shape::One => self.value(field.ty, depth),
            Shape::List => (0..=self.below(2)).map(|_| self.value(field.ty, depth)).collect(),
            Shape::Map => {
                let entry = |key: &str| (key.to_owned(), self.value(field.ty, depth));
                Value::Object(["b", "a/x", ""].map(entry).into_iter().collect())
            }
        }
    }

    fn value(&mut self, ty: Ty, depth: u64) -> Value {
        let schema = json!({ "type": "object", "maximum": 1.5 });
        let choices: &[Value] = match ty {
            Ty::String => &[json!("a"), json!("ü"), json!("x".repeat(300))],
            Ty::Bool => &[json!(true), json!(false)],
            Ty::Int32 => &[json!(0), json!(-1), json!(i32::MAX)],
            Ty::Int64 => &[json!(0), json!(i64::MIN), json!(i64::MAX)],
            Ty::Float => &[json!(0), json!(-2), json!(0.25)],
            Ty::Bytes => &[json!("AP8="), json!("eA==")],
            Ty::Quantity => &[json!("0"), json!("1Gi"), json!("100m")],
            Ty::Time => &[json!("2024-05-06T07:08:09Z"), json!("1969-12-31T23:59:59Z")],
            Ty::MicroTime => &[json!("2024-05-06T07:08:09.123456Z"), json!("1969-12-31T23:59:58.500000Z")],
            Ty::IntOrString => &[json!(0), json!(-1), json!("25%"), json!("")],
            Ty::Fields | Ty::Raw => &[json!({}), json!({ "f:a": {} })],
            Ty::Json => &[json!(1), json!("a"), json!({ "a": [true, null] })],
            Ty::Extra => &[json!([]), json!(["a", ""])],
            Ty::PropsOrArray => &[schema.clone(), json!([schema, {}])],
            Ty::PropsOrBool => &[schema, json!(true), json!(false)],
            Ty::PropsOrStrings => &[schema, json!(["a", "b"])],
            Ty::Struct(inner) => return Value::Object(self.object(inner, depth + 1)),
        };
        self.of(choices)
    }
}

/// An object of the kind in its stored form.
fn any_object(picks: &mut Picks, api_version: &str, kind: &str, ty: usize) -> Value {
    let mut object = picks.object(ty, 0);
    canonicalize(ty, &mut object);
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Value::Object(object)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_reads_back(seed in any::<u64>()) {
        let mut picks = Picks(seed);
        for root in &types().roots {
            let api_version = if root.api_version == "*" { "v1" } else { root.api_version };
            let object = any_object(&mut picks, api_version, root.kind, root.ty);
            let mut read = decode(&encode(&object).unwrap()).unwrap();
            canonicalize(root.ty, read.as_object_mut().unwrap());
            prop_assert_eq!(read, object);
        }
    }
}

#[test]
fn a_list_has_metadata_and_items() {
    let list = json!({ "apiVersion": "v1", "kind": "PodList",
        "metadata": { "resourceVersion": "7", "remainingItemCount": 0 },
        "items": [{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }] });
    let read = decode(&encode(&list).unwrap()).unwrap();
    assert_eq!(read["metadata"], list["metadata"]);
    assert_eq!(
        (&read["items"][1]["metadata"], read["items"].as_array().unwrap().len()),
        (&json!({ "name": "b" }), 2)
    );
}

#[test]
fn a_frame_is_its_length_and_an_event() {
    let frame = watch_frame("ADDED", b"object");
    assert_eq!(frame, b"\0\0\0\x11\x0a\x05ADDED\x12\x08\x0a\x06object");
}
