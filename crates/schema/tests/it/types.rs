//! What Go's decoder would refuse.

use lifeboat_schema::{Schema, type_errors};
use serde_json::{Value, json};

#[test]
fn what_go_would_say() {
    let definitions = json!({
        "io.k8s.api.x.v1.Thing": {"type": "object", "properties": {
            "spec": {"$ref": "#/definitions/io.k8s.api.x.v1.ThingSpec"}}},
        "io.k8s.api.x.v1.ThingSpec": {"type": "object", "properties": {
            "replicas": {"type": "integer", "format": "int32"},
            "names": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "flag": {"type": "boolean"},
            "inner": {"$ref": "#/definitions/io.k8s.api.x.v1.ThingSpec"},
            "size": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            "port": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
            "data": {"type": "string", "format": "byte"}}},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
    });
    let of =
        Schema::parse_with(&json!({"$ref": "#/definitions/io.k8s.api.x.v1.Thing"}), &definitions).unwrap();
    let check = |spec: Value, want: Option<&str>| {
        assert_eq!(type_errors(&of, &json!({"spec": spec})).as_deref(), want, "{spec}");
    };
    check(json!({"replicas": 1, "names": ["a"], "labels": {"a": "b"}, "flag": true, "inner": {}}), None);
    check(json!({"replicas": null, "size": 1, "port": 80}), None);
    check(json!({"size": "1Gi", "port": "http", "data": "aGk="}), None);
    check(
        json!({"replicas": "x"}),
        Some("json: cannot unmarshal string into Go struct field ThingSpec.spec.replicas of type int32"),
    );
    check(
        json!({"inner": {"names": "x"}}),
        Some(
            "json: cannot unmarshal string into Go struct field ThingSpec.spec.inner.names of type []string",
        ),
    );
    check(
        json!({"labels": {"a": 1}}),
        Some("json: cannot unmarshal number into Go struct field ThingSpec.spec.labels.a of type string"),
    );
    check(
        json!({"inner": []}),
        Some("json: cannot unmarshal array into Go struct field ThingSpec.spec.inner of type v1.ThingSpec"),
    );
    check(
        json!({"replicas": 3_000_000_000_i64}),
        Some(
            "json: cannot unmarshal number 3000000000 into Go struct field ThingSpec.spec.replicas of type int32",
        ),
    );
    check(
        json!({"size": "x"}),
        Some("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    );
    check(json!({"data": "*"}), Some("illegal base64 data at input byte 0"));
}
