//! Whether an object fits its schema.
//!
//! In the order of Kubernetes: structure, embedded resources, the uniqueness that lists promise, and CEL rules where
//! nothing found before makes them pointless. On an update, what was wrong before and did not change is forgiven.

mod lists;
mod scalar;
mod structure;

use crate::correlate::Pair;
use crate::node::View;
use crate::path::Path;
use crate::{ErrorKind, FieldError, Schema, cel};
use serde_json::Value;
use std::collections::BTreeSet;
use structure::Walk;

/// Everything wrong with `new` according to `schema`: structure first, then CEL rules where the structure holds. On an
/// update (`old` given) what was wrong before and did not change is forgiven.
pub fn validate(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let view = schema.view();
    let pair = Pair::root(new, old);
    let mut errors = structure(view, &pair);
    lists::embedded(view, new, &mut Path::root(), &mut errors);
    if old.is_none_or(|old| lists::unique(view, old).is_empty()) {
        errors.extend(lists::unique(view, new));
    }
    if !view.ruled() {
        return errors;
    }
    if errors.iter().any(blocks_rules) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        errors.push(FieldError::invalid("", Value::Null, why));
    } else {
        cel::evaluate(view, &pair, true, &mut errors);
    }
    errors
}

/// What is wrong with the structure of a value.
pub(crate) fn structure(view: View<'_>, pair: &Pair<'_>) -> Vec<FieldError> {
    let mut walk = Walk::new();
    walk.value(view, pair);
    // What several alternatives find wrong is said once.
    let mut said = BTreeSet::new();
    walk.errors.retain(|error| said.insert(error.to_string()));
    walk.errors
}

/// Rules may assume that types, bounds and enumerations hold.
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        ErrorKind::NotSupported
            | ErrorKind::Required
            | ErrorKind::TooLong
            | ErrorKind::TooMany
            | ErrorKind::TypeInvalid
    )
}
