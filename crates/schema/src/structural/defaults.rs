//! Defaults must themselves fit the schema and be free of unknown fields.

use super::raw::Raw;
use super::{child, keyed};
use crate::correlate::Pair;
use crate::node::View;
use crate::objectmeta::is_meta;
use crate::{FieldError, Schema, cel, prune, validate};

/// What is wrong with the defaults of a schema.
pub(super) fn check(root: Raw<'_>, parsed: &Schema, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(root, parsed.view(), path, true, &mut errors);
    errors
}

fn walk(s: Raw<'_>, view: View<'_>, path: &str, resource: bool, errors: &mut Vec<FieldError>) {
    if let Some(default) = view.node.default.as_ref() {
        let at = child(path, "default");
        let mut pruned = default.clone();
        let mut found = Vec::new();
        if prune::prune_value(view, &mut pruned) {
            found.push(FieldError::invalid(&*at, default.clone(), "must not have unknown fields"));
        }
        let mut unfit = validate::structure(view, &Pair::root(default, None));
        if found.is_empty() && unfit.is_empty() {
            cel::evaluate(view, &Pair::root(default, None), view.node.embedded, &mut unfit);
        }
        // Fields are told from the root, while the words speak of the default alone.
        found.extend(unfit.into_iter().map(|error| FieldError {
            field: match error.field.as_str() {
                "" => at.clone(),
                below => format!("{at}.{below}"),
            },
            ..error
        }));
        errors.extend(found);
    }
    if let (Some(items), Some(of_items)) = (s.schema("items"), view.items()) {
        walk(items, of_items, &child(path, "items"), false, errors);
    }
    for (name, property) in s.properties() {
        // Defaults inside metadata are forbidden elsewhere.
        if resource && is_meta(name) {
            continue;
        }
        if let Some(below) = view.property(name) {
            walk(property, below, &keyed(path, "properties", name), below.node.embedded, errors);
        }
    }
}
