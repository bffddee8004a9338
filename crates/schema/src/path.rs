//! The path of a field as Kubernetes prints it, built up while walking down.

use std::fmt::Write;

/// A growing and shrinking path: `spec.ports[0].name`, `data[key]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn root() -> Path {
        Path::default()
    }

    /// Goes down to a field; returns what [`Path::truncate`] needs to come back.
    pub(crate) fn push(&mut self, field: &str) -> usize {
        let length = self.0.len();
        if !self.0.is_empty() {
            self.0.push('.');
        }
        self.0.push_str(field);
        length
    }

    /// Goes down to an item of a list.
    pub(crate) fn push_index(&mut self, index: usize) -> usize {
        let length = self.0.len();
        let _ = write!(self.0, "[{index}]");
        length
    }

    /// Goes down to an entry of a map.
    pub(crate) fn push_key(&mut self, key: &str) -> usize {
        let length = self.0.len();
        let _ = write!(self.0, "[{key}]");
        length
    }

    /// Comes back to where a push started.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// The path of a field below this one.
    pub(crate) fn child(&self, field: &str) -> String {
        if self.0.is_empty() { field.to_owned() } else { format!("{}.{field}", self.0) }
    }

    /// The path of an item below this one.
    pub(crate) fn index(&self, index: usize) -> String {
        format!("{}[{index}]", self.0)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
