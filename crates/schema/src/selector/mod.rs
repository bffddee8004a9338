//! Label and field selectors: parsing, printing, matching.

mod field;
mod label;
mod lexer;

pub use field::{FieldSelector, FieldTerm};
pub use label::{LabelSelector, Operator, Requirement};

use thiserror::Error;

/// Why a selector could not be parsed; worded as Kubernetes words it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// Selectors longer than this are refused: they come in a URL.
const MAX_LENGTH: usize = 64 * 1024;
