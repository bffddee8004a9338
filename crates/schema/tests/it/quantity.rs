//! Quantities: reading, comparing, canonical text.

use lifeboat_schema::quantity::{Quantity, QuantityError};

#[test]
fn canonical_forms() {
    let check =
        |text: &str, want: &str| assert_eq!(Quantity::parse(text).unwrap().to_string(), want, "{text}");
    check("0", "0");
    check("0.0Gi", "0");
    check("1", "1");
    check("+1", "1");
    check("-1", "-1");
    check("1.5", "1500m");
    check("1000m", "1");
    check("1500", "1500");
    check("1000", "1k");
    check("0.1", "100m");
    check("100m", "100m");
    check("1024Mi", "1Gi");
    check("1536Mi", "1536Mi");
    check("1.5Gi", "1536Mi");
    check("512", "512");
    check("0.5Ki", "512");
    check("0.1Gi", "107374182400m");
    check("1e3", "1e3");
    check("12e5", "1200e3");
    check("1E", "1E");
    check("1n", "1n");
    check("0.1n", "1n");
    check("1.0000000001", "1000000001n");
    check("123456789.123456789", "123456789123456789n");
    check(".5", "500m");
    check("5.", "5");
}

#[test]
fn what_is_no_quantity() {
    let check =
        |text: &str, want: QuantityError| assert_eq!(Quantity::parse(text).unwrap_err(), want, "{text}");
    check("", QuantityError::Format);
    check("x", QuantityError::Format);
    check("1.2.3", QuantityError::Format);
    check("1x", QuantityError::Format);
    check("1KI", QuantityError::Format);
    check("1K", QuantityError::Suffix);
    check("1mm", QuantityError::Suffix);
    check("1e", QuantityError::Suffix);
    check("--1", QuantityError::Suffix);
}

#[test]
fn values_compare_and_round_up() {
    let q = |text: &str| Quantity::parse(text).unwrap();
    assert!(q("1Gi") > q("1G"));
    assert_eq!(q("1000m"), q("1"));
    assert!(q("-1") < q("0"));
    assert_eq!(q("1.5").value(), 2);
    assert_eq!(q("-1.5").value(), -2);
    assert_eq!(q("1.5").milli_value(), 1500);
    assert_eq!(q("1Gi").value(), 1 << 30);
    assert_eq!(q("100E").value(), i64::MAX);
    assert_eq!(q("1Gi").add(&q("1Gi")).to_string(), "2Gi");
    assert_eq!(q("1Gi").sub(&q("2Gi")).to_string(), "-1Gi");
}
