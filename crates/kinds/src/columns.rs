//! How `kubectl get` shows a kind: the columns of its Table and the cells of one object.

use crate::Kind;
use serde_json::Value;

/// One column of a Table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The header.
    pub name: &'static str,
    /// `string`, `integer`, `boolean`.
    pub kind: &'static str,
    /// `name` for the column that names the object, else empty.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0 is always shown, higher ones with `-o wide`.
    pub priority: i32,
}

impl Kind {
    /// The columns of this kind's Table.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        Vec::new()
    }

    /// The cells of one object, one per column.
    #[must_use]
    pub fn row(&self, _obj: &Value, _now: jiff::Timestamp) -> Vec<Value> {
        Vec::new()
    }
}
