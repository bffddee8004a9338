//! The rules for the schema of a CRD: structural, without what Kubernetes does not support, with defaults that fit and
//! CEL rules that compile.

mod defaults;
mod invariants;
mod openapi;
mod raw;
mod rules;

use crate::{FieldError, Schema};
use raw::Raw;
use serde_json::Value;

/// What keeps `schema` (an `openAPIV3Schema`) from being accepted in a CRD. Paths are relative to the schema; see
/// [`check_structural_at`] for full ones.
pub fn check_structural(schema: &Value) -> Vec<FieldError> {
    check_structural_at(schema, "")
}

/// As [`check_structural`], with paths below `path`, such as `spec.versions[0].schema.openAPIV3Schema`.
pub fn check_structural_at(schema: &Value, path: &str) -> Vec<FieldError> {
    let parsed = match Schema::parse(schema) {
        Ok(parsed) => parsed,
        Err(errors) => {
            let at = |e: FieldError| FieldError { field: path.to_owned(), ..e };
            return errors.into_iter().map(at).collect();
        }
    };
    let Some(root) = Raw::new(schema) else {
        return vec![FieldError::type_invalid(path, schema.clone(), "must be an object")];
    };
    let mut errors = Vec::new();
    if root.flag("nullable") {
        errors.push(FieldError::forbidden(child(path, "nullable"), "nullable cannot be true at the root"));
    }
    // What cannot be read as a structural schema at all is only told what it may not use.
    let mut sound = !invariants::unreadable(root);
    if sound {
        let mut found = invariants::check(root, path);
        if found.is_empty() {
            found = defaults::check(root, &parsed, path);
        }
        sound = found.is_empty();
        errors.extend(found);
    }
    errors.extend(openapi::check(root, &parsed, path, sound));
    errors
}

/// The path of a keyword below `path`.
fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The path of an entry of a keyword: `properties[spec]`.
fn keyed(path: &str, name: &str, key: &str) -> String {
    format!("{}[{key}]", child(path, name))
}
