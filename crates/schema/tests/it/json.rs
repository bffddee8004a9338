//! Reading JSON from outside: limits, duplicates, numbers.

use lifeboat_schema::json::{Error, decode_strict};

#[test]
fn duplicates_are_reported_by_path() {
    let check = |text: &str, want: &[&str]| {
        let decoded = decode_strict(text.as_bytes()).unwrap();
        assert_eq!(decoded.duplicates, want, "{text}");
    };
    check(r#"{"a":1,"b":2}"#, &[]);
    check(r#"{"a":1,"a":2}"#, &["a"]);
    check(r#"{"spec":{"x":1,"x":2,"x":3}}"#, &["spec.x"]);
    check(r#"{"l":[{"a":1},{"a":1,"a":2}]}"#, &["l[1].a"]);
    let decoded = decode_strict(br#"{"a":1,"a":2}"#).unwrap();
    assert_eq!(decoded.value["a"], 2, "the last one wins");
}

#[test]
fn what_is_refused() {
    assert!(matches!(decode_strict(b"{"), Err(Error::Syntax(_))));
    assert!(matches!(decode_strict(b"{} {}"), Err(Error::Syntax(_))));
    assert!(matches!(decode_strict(b"\xff"), Err(Error::Syntax(_))));
    assert!(matches!(decode_strict(b"1e999"), Err(Error::Syntax(_))));
    assert_eq!(decode_strict("[".repeat(10_000).as_bytes()), Err(Error::TooDeep));
    assert_eq!(decode_strict(&vec![b' '; 4 << 20]), Err(Error::TooLarge));
}

#[test]
fn numbers_are_written_as_kubernetes_writes_them() {
    let decoded = decode_strict(b"[1, -1, 1.5, 18446744073709551615, 1.0]").unwrap();
    assert_eq!(decoded.value.to_string(), "[1,-1,1.5,18446744073709551615,1]");
}
