//! Bounds of strings and numbers.

use crate::error::{go_float, quote};
use crate::node::{Node, Type};
use crate::{FieldError, formats};
use serde_json::{Number, Value};

/// Length, pattern and format of a string.
pub(super) fn string(node: &Node, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(error) = bounds(node, text, path) {
        errors.push(error);
    }
    let applies = matches!(node.types.as_slice(), [] | [Type::String]) && !node.int_or_string;
    let format = node.format.as_deref().filter(|_| applies).and_then(|f| Some((f, formats::known(f)?)));
    if let Some((format, name)) = format
        && !formats::fits(name, text)
    {
        let detail = format!("{path} in body must be of type {format}: {}", quote(text));
        errors.push(FieldError::type_invalid(path, text, detail));
    }
}

/// The first of length and pattern that fails; the others are not looked at.
fn bounds(node: &Node, text: &str, path: &str) -> Option<FieldError> {
    let length = text.chars().count() as i64;
    if let Some(max) = node.max_length.filter(|max| length > *max) {
        return Some(FieldError::too_long(path, max));
    }
    if let Some(min) = node.min_length.filter(|min| length < *min) {
        let detail = format!("{path} in body should be at least {min} chars long");
        return Some(FieldError::invalid(path, text, detail));
    }
    let pattern = node.pattern.as_ref()?;
    let why = match pattern.regex() {
        Ok(regex) if regex.is_match(text) => return None,
        Ok(_) => pattern.source.clone(),
        Err(error) => format!("{}, but pattern is invalid: {error}", pattern.source),
    };
    Some(FieldError::invalid(path, text, format!("{path} in body should match '{why}'")))
}

/// Range, bounds and factor of a number.
pub(super) fn number(node: &Node, n: &Number, path: &str, errors: &mut Vec<FieldError>) {
    let value = Value::Number(n.clone());
    let float = n.as_f64().unwrap_or(f64::NAN);
    if let Some(detail) = out_of_range(node, n, path) {
        errors.push(FieldError::invalid("", "", detail));
    }
    // Bounds are floats; against an integer they are compared, and shown, as integers.
    let show = |bound: f64| if n.is_f64() { go_float(bound) } else { format!("{}", bound as i64) };
    if let Some(factor) = node.multiple_of {
        let fits = match (n.as_i64(), factor > 0.0) {
            (_, false) => false,
            (Some(i), _) if factor as i64 > 0 => i % (factor as i64) == 0,
            _ => (float / factor).fract().abs() < 1e-9,
        };
        if !fits {
            let detail = match factor > 0.0 {
                true => format!("{path} in body should be a multiple of {}", show(factor)),
                false => format!("factor MultipleOf declared for {path} must be positive: {}", show(factor)),
            };
            errors.push(FieldError::invalid(path, value.clone(), detail));
        }
    }
    let compare = |bound: f64| match n.as_i64() {
        Some(i) => Some(i.cmp(&(bound as i64))),
        None => float.partial_cmp(&bound),
    };
    if let Some(min) = node.minimum {
        let order = compare(min);
        if order.is_none_or(|o| o.is_lt() || (node.exclusive_minimum && o.is_eq())) {
            let or_equal = if node.exclusive_minimum { "" } else { " or equal to" };
            let detail = format!("{path} in body should be greater than{or_equal} {}", show(min));
            errors.push(FieldError::invalid(path, value.clone(), detail));
        }
    }
    if let Some(max) = node.maximum {
        let order = compare(max);
        if order.is_none_or(|o| o.is_gt() || (node.exclusive_maximum && o.is_eq())) {
            let or_equal = if node.exclusive_maximum { "" } else { " or equal to" };
            let detail = format!("{path} in body should be less than{or_equal} {}", show(max));
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
}

/// Whether the number fits the width that type and format promise.
fn out_of_range(node: &Node, n: &Number, path: &str) -> Option<String> {
    let format = node.format.as_deref().unwrap_or_default();
    let float = n.as_f64().unwrap_or(f64::NAN);
    let (fits, kind) = match node.types.as_slice() {
        [Type::Integer] => {
            let whole = n.as_i64().or_else(|| {
                let whole = float.fract() == 0.0 && float.abs() < 9.2e18;
                whole.then_some(float as i64)
            });
            let fits = match format {
                "int32" => whole.is_some_and(|i| i32::try_from(i).is_ok()),
                _ => whole.is_some(),
            };
            (fits, "integer")
        }
        [Type::Number] if format == "float" => (float.abs() <= f64::from(f32::MAX), "number"),
        _ => return None,
    };
    let known = matches!(format, "int32" | "int64" | "float" | "double");
    match (fits, known) {
        (true, _) => None,
        (false, true) => Some(format!("Checked value must be of type {kind} with format {format} in {path}")),
        (false, false) => Some(format!("Checked value must be of type {kind} (default format) in {path}")),
    }
}
