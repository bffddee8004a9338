//! Label and field selectors.

use lifeboat_schema::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn label_selectors_parse_and_print() {
    let check =
        |text: &str, want: &str| assert_eq!(LabelSelector::parse(text).unwrap().to_string(), want, "{text}");
    check("", "");
    check("a=b", "a=b");
    check(" a == b ", "a==b");
    check("a!=b", "a!=b");
    check("b,a", "a,b");
    check("!a", "!a");
    check("a in (c,b)", "a in (b,c)");
    check("a notin (b)", "a notin (b)");
    check("a in ()", "a in ()");
    check("a=", "a=");
    check("x.io/a=b", "x.io/a=b");
    check("a>1,b<2", "a>1,b<2");
    check("in=notin", "in=notin");
}

#[test]
fn label_selectors_that_make_no_sense() {
    let check = |text: &str, want: &str| {
        let error = LabelSelector::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(want), "{text}: {error}");
    };
    check("a=b,", "found '', expected: identifier after ','");
    check("=a", "found '=', expected: !, identifier, or 'end of string'");
    check("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    check("a in b", "unable to parse requirement: found 'b' expected: '('");
    check("a=b c", "found 'c', expected: ',' or 'end of string'");
    check("a@=b", r#"unable to parse requirement: <nil>: Invalid value: "a@": name part must consist of"#);
    check("a=b@", r#"unable to parse requirement: values[0][a]: Invalid value: "b@": a valid label must be"#);
    check("a>x", r#"unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators"#);
}

#[test]
fn label_selectors_select() {
    let check = |text: &str, labels: Value, want: bool| {
        assert_eq!(LabelSelector::parse(text).unwrap().matches(&labels), want, "{text} on {labels}");
    };
    check("", json!(null), true);
    check("a=b", json!({"a": "b"}), true);
    check("a=b", json!({"a": "c"}), false);
    check("a=b", json!(null), false);
    check("a!=b", json!(null), true);
    check("a notin (b)", json!({"a": "c"}), true);
    check("a", json!({"a": ""}), true);
    check("!a", json!({"a": ""}), false);
    check("a in (b,c),!d", json!({"a": "c"}), true);
    check("a>1", json!({"a": "2"}), true);
    check("a>1", json!({"a": "x"}), false);
}

#[test]
fn label_selectors_from_objects() {
    let parse = |value: Value| LabelSelector::from_json(&value);
    assert!(parse(json!({})).unwrap().is_everything());
    assert!(!parse(json!(null)).unwrap().matches(&json!({})), "null selects nothing");
    let selector = parse(json!({"matchLabels": {"a": "b"}, "matchExpressions": [
        {"key": "c", "operator": "NotIn", "values": ["d"]}, {"key": "e", "operator": "Exists"}]}))
    .unwrap();
    assert_eq!(selector.to_string(), "a=b,c notin (d),e");
    assert!(selector.matches(&json!({"a": "b", "e": ""})));
    assert_eq!(
        parse(json!({"matchExpressions": [{"key": "a", "operator": "Is"}]})).unwrap_err().to_string(),
        r#""Is" is not a valid label selector operator"#
    );
}

#[test]
fn field_selectors() {
    let check =
        |text: &str, want: &str| assert_eq!(FieldSelector::parse(text).unwrap().to_string(), want, "{text}");
    check("", "");
    check("metadata.name=x", "metadata.name=x");
    check("a==b,c!=d", "a=b,c!=d");
    check(r"a=b\,c\=d\\e", r"a=b\,c\=d\\e");
    check("a=", "a=");
    let error = |text: &str| FieldSelector::parse(text).unwrap_err().to_string();
    assert_eq!(error("a"), "invalid selector: 'a'; can't understand 'a'");
    assert_eq!(error(r"a=\x"), r"invalid field selector: invalid escape sequence: \x");
    assert_eq!(error("a=b=c"), "invalid field selector: unescaped character in value: 61");
    let fields = BTreeMap::from([("metadata.name".to_owned(), "x".to_owned())]);
    assert!(FieldSelector::parse("metadata.name=x,spec.y!=z").unwrap().matches(&fields));
    assert!(!FieldSelector::parse("metadata.name!=x").unwrap().matches(&fields));
    assert!(FieldSelector::parse("spec.y=").unwrap().matches(&fields));
    assert_eq!(FieldSelector::parse("metadata.name=x").unwrap().required("metadata.name"), Some("x"));
}
