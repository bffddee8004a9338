//! Kubernetes' field errors: what is wrong, where, with which value, in Kubernetes' words.

use serde_json::{Value, json};
use std::fmt;

/// The class of a [`FieldError`]; each has its own wording and its own reason on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// A referenced thing does not exist.
    NotFound,
    /// A mandatory field is missing or empty.
    Required,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// The value is malformed or out of range.
    Invalid,
    /// The value is not one of an enumeration.
    NotSupported,
    /// The value is well formed but not allowed here.
    Forbidden,
    /// A string has more bytes than allowed.
    TooLong,
    /// A list has more items than allowed.
    TooMany,
    /// Something failed that is not the user's fault.
    Internal,
    /// The value has the wrong JSON type.
    TypeInvalid,
}

impl ErrorKind {
    /// The reason a `StatusCause` carries for this kind, such as `FieldValueRequired`.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn words(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooMany => "Too many",
            ErrorKind::Internal => "Internal error",
        }
    }
}

/// One thing wrong with one field, worded as Kubernetes words it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What class of error this is.
    pub kind: ErrorKind,
    /// The path of the field, such as `spec.ports[0].name`; empty for the whole object.
    pub field: String,
    /// The offending value, where the wording shows one.
    pub bad_value: Option<Value>,
    /// What is wrong with it, or how to do better.
    pub detail: String,
}

impl FieldError {
    fn new(kind: ErrorKind, field: impl Into<String>, bad: Option<Value>, detail: impl Into<String>) -> Self {
        FieldError { kind, field: field.into(), bad_value: bad, detail: detail.into() }
    }

    /// A value that is malformed or out of range.
    pub fn invalid(field: impl Into<String>, bad: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, field, Some(bad.into()), detail)
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(field: impl Into<String>, bad: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, field, Some(bad.into()), detail)
    }

    /// A mandatory field that is missing.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, field, None, detail)
    }

    /// A value that may not be there although it is well formed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, field, None, detail)
    }

    /// A value that occurs twice where it must be unique.
    pub fn duplicate(field: impl Into<String>, bad: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, field, Some(bad.into()), "")
    }

    /// A reference to something that is not there.
    pub fn not_found(field: impl Into<String>, bad: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, field, Some(bad.into()), "")
    }

    /// A value outside an enumeration; lists the `supported` ones in the given order.
    pub fn not_supported(field: impl Into<String>, bad: impl Into<Value>, supported: &[&str]) -> Self {
        let names: Vec<String> = supported.iter().map(|v| quote(v)).collect();
        let detail =
            if names.is_empty() { String::new() } else { format!("supported values: {}", names.join(", ")) };
        Self::new(ErrorKind::NotSupported, field, Some(bad.into()), detail)
    }

    /// A string with more than `max` bytes.
    pub fn too_long(field: impl Into<String>, max: i64) -> Self {
        let detail = match max {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {max} bytes"),
            _ => "value is too long".to_owned(),
        };
        Self::new(ErrorKind::TooLong, field, None, detail)
    }

    /// A list with more than `max` items.
    pub fn too_many(field: impl Into<String>, actual: i64, max: i64) -> Self {
        let detail = match max {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {max} items"),
            _ => "has too many items".to_owned(),
        };
        Self::new(ErrorKind::TooMany, field, Some(actual.into()), detail)
    }

    /// A failure that is not the user's fault.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, field, None, detail)
    }

    /// What is wrong, without the path: the `message` of a `StatusCause`.
    pub fn message(&self) -> String {
        let words = self.kind.words();
        let bare = match self.kind {
            ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong | ErrorKind::Internal => {
                words.to_owned()
            }
            _ => match &self.bad_value {
                Some(value) => format!("{words}: {}", show(value)),
                None => words.to_owned(),
            },
        };
        if self.detail.is_empty() { bare } else { format!("{bare}: {}", self.detail) }
    }

    /// The `StatusCause` of this error: `reason`, `message`, `field`.
    pub fn cause(&self) -> Value {
        json!({ "reason": self.kind.reason(), "message": self.message(), "field": self.path() })
    }

    fn path(&self) -> &str {
        if self.field.is_empty() { "<nil>" } else { &self.field }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path(), self.message())
    }
}

impl std::error::Error for FieldError {}

/// A value as Kubernetes prints it in an error: strings quoted, numbers bare, the rest as JSON.
fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(s) => quote(s),
        Value::Number(n) if n.is_f64() => go_float(n.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// A string in double quotes with Go's escapes.
pub(crate) fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A float as Go prints it: shortest form, with an exponent from a million on and below a ten thousandth.
pub(crate) fn go_float(f: f64) -> String {
    let scientific = format!("{f:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) || f == 0.0 {
        return format!("{f}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
