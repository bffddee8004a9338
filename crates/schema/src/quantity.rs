//! Kubernetes quantities: `100m`, `1.5Gi`, `2e3`. Exact, without floats.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Why a text is not a quantity; worded as Kubernetes words it.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// Nothing there.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// Not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
}

/// A quantity; compares by value, prints canonically.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nano: i128,
}

impl Quantity {
    /// Parses a quantity.
    pub fn parse(_text: &str) -> Result<Self, QuantityError> {
        Ok(Quantity { nano: 0 })
    }

    /// The value rounded up to a whole number, at most `i64::MAX`.
    pub fn value(&self) -> i64 {
        0
    }

    /// The value in thousandths, rounded up, at most `i64::MAX`.
    pub fn milli_value(&self) -> i64 {
        0
    }

    /// Whether the value is below zero.
    pub fn is_negative(&self) -> bool {
        self.nano < 0
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.nano)
    }
}
