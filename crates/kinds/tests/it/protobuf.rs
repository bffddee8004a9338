//! Bodies as Go encodes them, read and written.

use lifeboat_kinds::protobuf::{Error, decode, encode};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Three lines each: name, bytes as hex, the JSON that Go writes for the same object.
const FIXTURES: &str = include_str!("protobuf.txt");

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// Go shows nulls and structs that nobody set; a decoded body leaves them out.
fn strip(v: &mut Value) {
    match v {
        Value::Object(o) => {
            o.values_mut().for_each(strip);
            o.retain(|k, v| {
                let shown_anyway = ["metadata", "spec", "status", "template"].contains(&k.as_str());
                !(v.is_null() || shown_anyway && *v == json!({}))
            });
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[test]
fn decodes_to_the_json_of_the_same_object() {
    let lines: Vec<&str> = FIXTURES.lines().collect();
    assert!(lines.len() >= 30);
    for fixture in lines.chunks(3) {
        let mut expected: Value = serde_json::from_str(fixture[2]).unwrap();
        strip(&mut expected);
        assert_eq!(decode(&bytes(fixture[1])).unwrap(), expected, "{}", fixture[0]);
    }
}

#[test]
fn writes_the_bytes_that_go_writes() {
    for fixture in FIXTURES.lines().collect::<Vec<_>>().chunks(3) {
        let object: Value = serde_json::from_str(fixture[2]).unwrap();
        assert_eq!(encode(&object).unwrap(), bytes(fixture[1]), "{}", fixture[0]);
    }
}

#[test]
fn refuses_to_write_what_no_type_fits() {
    let custom = json!({ "apiVersion": "a/v1", "kind": "B" });
    assert!(matches!(encode(&custom), Err(Error::UnknownKind { .. })));
    assert!(matches!(encode(&json!([])), Err(Error::UnknownKind { .. })));
    let wrong = json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": {} } });
    assert_eq!(encode(&wrong), Err(Error::Mismatch("containers")));
}

#[test]
fn zeros_of_pointers_are_kept_and_of_plain_fields_dropped() {
    let deployment = FIXTURES.lines().skip_while(|l| *l != "deployment_with_zero_replicas").nth(1).unwrap();
    let obj = decode(&bytes(deployment)).unwrap();
    assert_eq!(obj["spec"]["replicas"], 0);
    assert!(obj["spec"].get("minReadySeconds").is_none());
}

#[test]
fn refuses_what_is_no_kubernetes_protobuf() {
    assert_eq!(decode(b"{}"), Err(Error::Magic));
    assert!(matches!(decode(b"k8s\0"), Err(Error::UnknownKind { .. })));
    assert!(matches!(decode(b"k8s\0\x0a\xff"), Err(Error::Malformed(_))));
}

#[test]
fn refuses_bottomless_nesting() {
    // not: not: not: ... within the schema of a definition.
    let mut schema = Vec::new();
    for _ in 0..5_000 {
        let mut outer = vec![0xe2, 0x01];
        length(&mut outer, schema.len());
        outer.append(&mut schema);
        schema = outer;
    }
    let mut body = schema;
    for tag in [0x0a, 0x22, 0x3a, 0x12] {
        let mut outer = vec![tag];
        length(&mut outer, body.len());
        outer.append(&mut body);
        body = outer;
    }
    let mut type_meta = b"\x0a\x17apiextensions.k8s.io/v1\x12\x18CustomResourceDefinition".to_vec();
    let mut envelope = b"k8s\0\x0a".to_vec();
    length(&mut envelope, type_meta.len());
    envelope.append(&mut type_meta);
    envelope.push(0x12);
    length(&mut envelope, body.len());
    envelope.append(&mut body);
    assert_eq!(decode(&envelope), Err(Error::Malformed("messages nest too deep")));
}

fn length(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
        n >>= 7;
    }
    out.push(u8::try_from(n).unwrap());
}

proptest! {
    #[test]
    fn never_panics(mut tail in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..200) {
        let _ = decode(&tail);
        let pod = FIXTURES.lines().nth(1).unwrap();
        let mut body = bytes(pod);
        body.truncate(at);
        body.append(&mut tail);
        let _ = decode(&body);
    }
}
