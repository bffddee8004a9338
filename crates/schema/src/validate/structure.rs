//! Types, required fields, bounds, alternatives: the part of validation that OpenAPI defines.

use super::scalar;
use crate::correlate::Pair;
use crate::equal::same;
use crate::error::quote;
use crate::node::{Additional, Type, View};
use crate::path::Path;
use crate::{FieldError, formats};
use serde_json::{Map, Value};

/// Walks an object along its schema and collects what does not fit.
pub(super) struct Walk {
    path: Path,
    pub(super) errors: Vec<FieldError>,
    /// How many values were looked at: of several alternatives that fail, the one that got furthest is reported.
    visited: usize,
}

impl Walk {
    pub(super) fn new() -> Walk {
        Walk { path: Path::root(), errors: Vec::new(), visited: 0 }
    }

    /// Checks one value; forgives it all where it is what it was before.
    pub(super) fn value(&mut self, view: View<'_>, pair: &Pair<'_>) {
        let before = self.errors.len();
        self.check(view, pair);
        let forgive = self.errors.len() > before && pair.old.is_some_and(|old| same(pair.new, old));
        if forgive {
            self.errors.truncate(before);
        }
    }

    fn check(&mut self, view: View<'_>, pair: &Pair<'_>) {
        self.visited += 1;
        let value = pair.new;
        self.kind(view, value);
        if !value.is_null() {
            self.alternatives(view, pair);
        }
        match value {
            Value::String(text) => scalar::string(view.node, text, self.path.as_str(), &mut self.errors),
            Value::Number(n) => scalar::number(view.node, n, self.path.as_str(), &mut self.errors),
            Value::Array(items) => self.items(view, pair, items),
            _ => {}
        }
        self.enumeration(view, value);
        if let Value::Object(fields) = value {
            self.fields(view, pair, fields);
        }
    }

    /// The type of a value, with the format that goes with it.
    fn kind(&mut self, view: View<'_>, value: &Value) {
        let expected: Vec<Type> = match view.node.int_or_string {
            true => vec![Type::Integer, Type::String],
            false => view.node.types.clone(),
        };
        let format = format_of(view, &expected);
        if expected.is_empty() && format.is_none() {
            return;
        }
        let names = || expected.iter().map(|t| t.name()).collect::<Vec<_>>().join(",");
        let actual = match value {
            Value::Null => {
                if !expected.is_empty() && !view.nullable() && !expected.contains(&Type::Null) {
                    self.wrong_type(&names(), "null");
                }
                return;
            }
            Value::Bool(_) => Type::Boolean,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
            Value::Number(n) if n.is_f64() => Type::Number,
            Value::Number(_) => Type::Integer,
        };
        let whole = value.as_f64().is_some_and(|f| f.fract() == 0.0);
        let fits = expected.contains(&actual)
            || (actual == Type::Number && whole && expected.contains(&Type::Integer))
            || (actual == Type::Integer && expected.contains(&Type::Number));
        if fits {
            return;
        }
        let textual = matches!(actual, Type::String | Type::Array);
        match format {
            Some(format) if !textual => {
                let actual_format = match actual {
                    Type::Integer => "int64",
                    Type::Number => "float64",
                    _ => "",
                };
                self.wrong_type(format, actual_format);
            }
            // A string or list under a format is judged by the format alone, unless numbers are wanted.
            Some(_) if !expected.contains(&Type::Integer) && !expected.contains(&Type::Number) => {}
            _ => self.wrong_type(&names(), actual.name()),
        }
    }

    fn wrong_type(&mut self, expected: &str, actual: &str) {
        let path = self.path.as_str();
        let detail = format!("{path} in body must be of type {expected}: {}", quote(actual));
        self.errors.push(FieldError::type_invalid(field(path), actual, detail));
    }

    fn enumeration(&mut self, view: View<'_>, value: &Value) {
        let Some(allowed) = &view.node.enumeration else { return };
        if allowed.iter().any(|a| same(a, value)) {
            return;
        }
        let names: Vec<String> =
            allowed.iter().map(|a| a.as_str().map_or_else(|| a.to_string(), str::to_owned)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.errors.push(FieldError::not_supported(field(self.path.as_str()), value.clone(), &names));
    }

    fn items(&mut self, view: View<'_>, pair: &Pair<'_>, items: &[Value]) {
        if let Some(of_items) = view.items() {
            for index in 0..items.len() {
                let length = self.path.push_index(index);
                self.value(of_items, &pair.item(view, index));
                self.path.truncate(length);
            }
        }
        let path = self.path.as_str();
        let size = items.len() as i64;
        if let Some(min) = view.node.min_items.filter(|min| size < *min) {
            let detail = format!("{path} in body should have at least {min} items");
            self.errors.push(FieldError::invalid(field(path), size, detail));
        }
        if let Some(max) = view.node.max_items.filter(|max| size > *max) {
            self.errors.push(FieldError::too_many(field(path), size, max));
        }
        let duplicate = || items.iter().enumerate().any(|(i, a)| items[..i].iter().any(|b| same(a, b)));
        if view.node.unique_items && items.len() <= 1000 && duplicate() {
            let detail = format!("{path} in body shouldn't contain duplicates");
            self.errors.push(FieldError::invalid(field(path), "", detail));
        }
    }

    fn fields(&mut self, view: View<'_>, pair: &Pair<'_>, fields: &Map<String, Value>) {
        let path = self.path.as_str().to_owned();
        let size = fields.len() as i64;
        if let Some(min) = view.node.min_properties.filter(|min| size < *min) {
            let detail = format!("{path} in body should have at least {min} properties");
            self.errors.push(FieldError::invalid(field(&path), size, detail));
        }
        if let Some(max) = view.node.max_properties.filter(|max| size > *max) {
            self.errors.push(FieldError::too_many(field(&path), size, max));
        }
        for name in fields.keys() {
            if let Some(property) = view.property(name) {
                let length = self.path.push(name);
                self.value(property, &pair.field(name));
                self.path.truncate(length);
                continue;
            }
            match &view.node.additional {
                Additional::Fit(node) => {
                    // An entry of a map that is the root is told with a dot before it.
                    let dot = if path.is_empty() { "." } else { "" };
                    let length = self.path.push(&format!("{dot}{name}"));
                    self.value(view.of(node), &pair.field(name));
                    self.path.truncate(length);
                }
                Additional::No => {
                    let detail = format!("{path}.{name} in body is a forbidden property");
                    self.errors.push(FieldError::invalid(field(&path), name.as_str(), detail));
                }
                Additional::Any | Additional::Unsaid => {}
            }
        }
        for name in view.node.required.iter().filter(|name| !fields.contains_key(*name)) {
            self.errors.push(FieldError::required(self.path.child(name), ""));
        }
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`.
    fn alternatives(&mut self, view: View<'_>, pair: &Pair<'_>) {
        let node = view.node;
        let name = quote(self.path.as_str());
        if !node.any_of.is_empty() {
            let tries: Vec<Walk> = node.any_of.iter().map(|n| self.attempt(view.of(n), pair)).collect();
            if !tries.iter().any(|t| t.errors.is_empty()) {
                self.composite(format!("{name} must validate at least one schema (anyOf)"));
                self.best(tries);
            }
        }
        if !node.one_of.is_empty() {
            let tries: Vec<Walk> = node.one_of.iter().map(|n| self.attempt(view.of(n), pair)).collect();
            match tries.iter().filter(|t| t.errors.is_empty()).count() {
                1 => {}
                0 => {
                    self.composite(format!(
                        "{name} must validate one and only one schema (oneOf). Found none valid"
                    ));
                    self.best(tries);
                }
                n => self.composite(format!(
                    "{name} must validate one and only one schema (oneOf). Found {n} valid alternatives"
                )),
            }
        }
        if !node.all_of.is_empty() {
            let tries: Vec<Walk> = node.all_of.iter().map(|n| self.attempt(view.of(n), pair)).collect();
            let valid = tries.iter().filter(|t| t.errors.is_empty()).count();
            let complete = valid == tries.len();
            self.errors.extend(tries.into_iter().flat_map(|t| t.errors));
            if !complete {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.composite(format!("{name} must validate all the schemas (allOf){none}"));
            }
        }
        if let Some(not) = &node.not
            && self.attempt(view.of(not), pair).errors.is_empty()
        {
            self.composite(format!("{name} must not validate the schema (not)"));
        }
    }

    fn attempt(&self, view: View<'_>, pair: &Pair<'_>) -> Walk {
        let mut walk = Walk { path: self.path.clone(), errors: Vec::new(), visited: 0 };
        walk.check(view, pair);
        walk
    }

    fn best(&mut self, tries: Vec<Walk>) {
        let mut best: Option<Walk> = None;
        for attempt in tries {
            if best.as_ref().is_none_or(|b| attempt.visited > b.visited) {
                best = Some(attempt);
            }
        }
        self.errors.extend(best.into_iter().flat_map(|b| b.errors));
    }

    /// Errors about alternatives name their field in the text and none beside it.
    fn composite(&mut self, detail: String) {
        self.errors.push(FieldError::invalid("", "", detail));
    }
}

/// The path of a field in an error: without the dot that the root's children start with.
fn field(path: &str) -> &str {
    path.trim_start_matches('.')
}

/// The format that counts for values of these types; formats that nobody knows count for nothing.
pub(super) fn format_of<'a>(view: View<'a>, types: &[Type]) -> Option<&'a str> {
    let format = view.node.format.as_deref()?;
    let counts = match types {
        [] | [Type::String] => formats::known(format).is_some(),
        [Type::Integer] => matches!(format, "int32" | "int64"),
        [Type::Number] => matches!(format, "float" | "double"),
        _ => false,
    };
    counts.then_some(format)
}
