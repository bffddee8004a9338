//! The form in which Kubernetes stores and shows an object: what is left of a body after it went through the Go types.
//!
//! Reading a body into a struct and writing it out again drops nulls and empty optional fields, shows structs and
//! scalars that are not optional even when nobody set them, and brings quantities and times into their canonical
//! text. Clients see that form in every answer, and comparing objects field by field relies on it. Unknown fields are
//! left alone: pruning them is the schema's work.

use crate::types::{Field, Shape, Ty, types};
use serde_json::{Map, Value, json};

/// Brings an object of type `ty` into its stored form.
pub(crate) fn canonicalize(ty: usize, object: &mut Map<String, Value>) {
    types().each_json_field(ty, &mut |field| {
        if let Some(value) = object.get_mut(field.name) {
            canonical_field(field, value);
            if !drops(field, value) {
                return;
            }
            object.remove(field.name);
        }
        if let Some(value) = shown_anyway(field) {
            object.insert(field.name.to_owned(), value);
        }
    });
}

fn canonical_field(field: &Field, value: &mut Value) {
    match (field.shape, value) {
        (Shape::One, value) => canonical_value(field.ty, value),
        (Shape::List, Value::Array(items)) => items.iter_mut().for_each(|v| canonical_value(field.ty, v)),
        (Shape::Map, Value::Object(map)) if field.ty == Ty::Quantity => map.values_mut().for_each(resource),
        (Shape::Map, Value::Object(map)) => map.values_mut().for_each(|v| canonical_value(field.ty, v)),
        _ => {}
    }
}

fn canonical_value(ty: Ty, value: &mut Value) {
    let text = match (ty, &*value) {
        (Ty::Struct(inner), Value::Object(_)) => {
            if let Value::Object(map) = value {
                canonicalize(inner, map);
            }
            return;
        }
        (Ty::Quantity, Value::String(s)) => quantity(s),
        (Ty::Quantity, Value::Number(n)) => quantity(&n.to_string()),
        (Ty::Time, Value::String(s)) => time(s, 0),
        (Ty::MicroTime, Value::String(s)) => time(s, 6),
        _ => None,
    };
    if let Some(text) = text {
        *value = Value::String(text);
    }
}

/// An amount in a list of resources has no more than three decimals.
fn resource(value: &mut Value) {
    canonical_value(Ty::Quantity, value);
    if let Some(text) = value.as_str()
        && text.ends_with(['n', 'u'])
        && let Some((nanos, _)) = parse_nanos(text)
    {
        let thousandths = nanos / 1_000_000 + i128::from(nanos % 1_000_000 > 0);
        *value = quantity(&format!("{thousandths}m")).unwrap_or_default().into();
    }
}

/// Whether writing the Go struct would leave this value out.
pub(crate) fn drops(field: &Field, value: &Value) -> bool {
    match value {
        Value::Null => true,
        _ if field.pointer || !field.omit_empty => false,
        Value::Bool(b) => !b,
        // The text of a quantity is never empty, and "0" is shown.
        Value::Number(n) => field.ty != Ty::IntOrString && n.as_f64() == Some(0.0),
        Value::String(s) => field.ty != Ty::IntOrString && s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => field.shape == Shape::Map && map.is_empty(),
    }
}

/// What writing the Go struct shows for a field that is not set.
fn shown_anyway(field: &Field) -> Option<Value> {
    if field.pointer || field.omit_zero || field.shape != Shape::One {
        return None;
    }
    match field.ty {
        Ty::Struct(inner) => {
            let mut map = Map::new();
            canonicalize(inner, &mut map);
            Some(Value::Object(map))
        }
        Ty::Quantity => Some("0".into()),
        Ty::IntOrString => Some(json!(0)),
        _ if field.omit_empty => None,
        Ty::String => Some("".into()),
        Ty::Bool => Some(false.into()),
        Ty::Int32 | Ty::Int64 => Some(json!(0)),
        _ => None,
    }
}

fn time(text: &str, digits: usize) -> Option<String> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(format!("{at:.digits$}"))
}

const DECIMAL: &[(&str, i32)] = &[
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: &[(&str, u32)] = &[("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Which family of suffixes a quantity was written with; it keeps to it.
#[derive(PartialEq)]
enum Family {
    Decimal,
    Binary,
    Exponent,
}

/// The canonical text of a quantity: no fraction, the largest suffix that fits, the suffix family of the original. `None`
/// where the text is no quantity or too large for exact arithmetic; it then stays as it is and validation has its say.
pub(crate) fn quantity(text: &str) -> Option<String> {
    let (nanos, family) = parse_nanos(text)?;
    if nanos == 0 {
        return Some("0".into());
    }
    // Small binary quantities are shown in decimal.
    let small = nanos.unsigned_abs() < 1024 * NANO.unsigned_abs();
    if family == Family::Binary && !small && nanos % NANO == 0 {
        let units = nanos / NANO;
        let (suffix, bits) =
            BINARY.iter().rev().find(|(_, bits)| units % (1_i128 << bits) == 0).copied().unwrap_or(("", 0));
        return Some(format!("{}{suffix}", units >> bits));
    }
    let (mut value, mut exponent) = (nanos, -9);
    while value % 1000 == 0 && exponent < 18 {
        value /= 1000;
        exponent += 3;
    }
    if family == Family::Exponent {
        return Some(if exponent == 0 { value.to_string() } else { format!("{value}e{exponent}") });
    }
    let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(s, _)| s);
    Some(format!("{value}{suffix}"))
}

const NANO: i128 = 1_000_000_000;

/// The value in billionths, rounded up in magnitude where it is finer than that.
fn parse_nanos(text: &str) -> Option<(i128, Family)> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 30 {
        return None;
    }
    let mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let scale = -i32::try_from(fraction.len()).ok()?;
    let (exponent, bits, family) = if let Some((_, e)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        (*e, 0, Family::Decimal)
    } else if let Some((_, b)) = BINARY.iter().find(|(s, _)| *s == suffix) {
        (0, *b, Family::Binary)
    } else {
        (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, 0, Family::Exponent)
    };
    let mut value = mantissa.checked_mul(1_i128 << bits)?;
    // Beyond this no i128 could hold the value, and adding could overflow.
    if !(-100..=100).contains(&exponent) {
        return None;
    }
    let power = scale + exponent + 9;
    if power.abs() > 38 {
        return None;
    }
    if power >= 0 {
        value = value.checked_mul(10_i128.checked_pow(power.unsigned_abs())?)?;
    } else {
        let divisor = 10_i128.checked_pow(power.unsigned_abs())?;
        value = value / divisor + i128::from(value % divisor != 0);
    }
    Some((if negative { -value } else { value }, family))
}

/// The whole number of a quantity, rounded up.
pub(crate) fn whole(v: &Value) -> Option<i64> {
    let (nanos, _) = parse_nanos(v.as_str()?)?;
    i64::try_from(nanos.div_euclid(NANO) + i128::from(nanos.rem_euclid(NANO) != 0)).ok()
}

/// Compares two quantities; `None` where either is not one.
pub(crate) fn compare_quantities(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    let nanos = |v: &Value| match v {
        Value::String(s) => parse_nanos(s),
        Value::Number(n) => parse_nanos(&n.to_string()),
        _ => None,
    };
    Some(nanos(a)?.0.cmp(&nanos(b)?.0))
}
