//! Reading objects without saying `Option` at every step.

pub use lifeboat_engine::{Words, difference};
use std::collections::BTreeMap;

/// Annotations or labels from pairs.
pub fn pairs<const N: usize>(all: [(&str, &str); N]) -> BTreeMap<String, String> {
    all.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}
