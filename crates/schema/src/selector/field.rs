//! Field selectors.

use super::{MAX_LENGTH, SelectorError};
use std::collections::BTreeMap;
use std::fmt;

/// A parsed field selector; the default one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The terms, all of which must hold.
    pub terms: Vec<FieldTerm>,
}

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field's path, such as `metadata.name`.
    pub field: String,
    /// The value compared with.
    pub value: String,
    /// Whether the term asks for inequality.
    pub negated: bool,
}

impl FieldSelector {
    /// Parses `metadata.name=x,status.phase!=Running`; in values, `\` escapes itself, `,` and `=`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_LENGTH {
            return Err(SelectorError("selector is too long".into()));
        }
        let mut terms = Vec::new();
        let mut parts = split(text);
        parts.sort_unstable();
        for part in parts {
            if part.is_empty() {
                continue;
            }
            let Some((field, negated, value)) = operator(part) else {
                return Err(SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            if field.is_empty() && value.is_empty() {
                continue;
            }
            terms.push(FieldTerm { field: field.to_owned(), value: unescape(value)?, negated });
        }
        Ok(FieldSelector { terms })
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether `fields` are selected; a missing field counts as empty.
    pub fn matches(&self, fields: &BTreeMap<String, String>) -> bool {
        self.matches_with(|name| fields.get(name).cloned().unwrap_or_default())
    }

    /// Whether the fields that `get` yields are selected.
    pub fn matches_with(&self, get: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|t| (get(&t.field) == t.value) != t.negated)
    }

    /// The value that `field` must equal, where a term says so.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| !t.negated && t.field == field).map(|t| t.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{comma}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// The parts between commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Field, whether negated, and value: split at the first operator.
fn operator(part: &str) -> Option<(&str, bool, &str)> {
    for (at, _) in part.char_indices() {
        for (token, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = part[at..].strip_prefix(token) {
                return Some((&part[..at], negated, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => {
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: \\{c}"
                    )));
                }
                None => {
                    return Err(SelectorError("invalid field selector: invalid escape sequence: \\".into()));
                }
            },
            ',' | '=' => {
                let why = format!("invalid field selector: unescaped character in value: {}", c as u32);
                return Err(SelectorError(why));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}
