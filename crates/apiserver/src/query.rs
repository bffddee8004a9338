//! The query string as typed options: list, watch, write and delete options of `meta/v1`, with Kubernetes' errors for
//! values that make no sense.

use crate::error::{ApiError, Result};
use lifeboat_schema::FieldError;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Query parameters by name; the last of a repeated parameter wins except where all are asked for.
#[derive(Debug, Clone, Default)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Parses a raw query string; stray `&` are ignored, as kube-rs sends them.
    pub fn parse(raw: &str) -> Self {
        let mut map = BTreeMap::<String, Vec<String>>::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            map.entry(decode(name)).or_default().push(decode(value));
        }
        Self(map)
    }

    /// The value of a parameter; absent and empty are the same.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All values of a parameter.
    pub fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The same query with one parameter set.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), vec![value.to_owned()]);
        self
    }

    /// A boolean parameter: absent is false, present without value is true, as Kubernetes reads them.
    pub fn flag(&self, name: &str) -> bool {
        self.0
            .get(name)
            .and_then(|values| values.last())
            .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
        self.get(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    ApiError::bad_request(format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
                })
            })
            .transpose()
    }

    /// `timeoutSeconds`.
    pub fn timeout(&self) -> Result<Option<Duration>> {
        Ok(self.number("timeoutSeconds")?.map(Duration::from_secs))
    }

    /// Checks `timeout`, the time a client gives the server: a Go duration, or nothing.
    pub fn check_timeout(&self) -> Result<()> {
        match self.get("timeout") {
            Some(text) if !is_duration(text) => Err(ApiError::bad_request(format!(
                "invalid timeout specified in the request URL - time: invalid duration {text:?}"
            ))),
            _ => Ok(()),
        }
    }

    /// `resourceVersion` as a number; `None` when absent.
    pub fn revision(&self) -> Result<Option<u64>> {
        self.get("resourceVersion").map(parse_revision).transpose()
    }
}

/// Whether a text is a duration as Go writes them: numbers with units, such as `1m30s`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
        let Some(unit) = units.iter().find(|unit| number.starts_with(**unit) && number.len() < rest.len())
        else {
            return false;
        };
        // `m` also begins `ms`, which stands before it in the list.
        rest = &number[unit.len()..];
    }
    !text.is_empty()
}

/// Reads a resource version.
pub fn parse_revision(text: &str) -> Result<u64> {
    text.parse()
        .map_err(|_| ApiError::bad_request(format!("Invalid value: {text:?}: invalid resource version {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")))
}

fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

/// How a write treats unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them in silence.
    Ignore,
    /// Drop them and say so in a Warning header.
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of a write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Do everything but the write.
    pub dry_run: bool,
    /// Who is recorded in managedFields.
    pub manager: String,
    /// Take fields over from other managers (server-side apply only).
    pub force: bool,
    /// How unknown fields are treated.
    pub validation: FieldValidation,
    /// Who writes, where an object records it.
    pub requester: Value,
}

impl WriteOptions {
    /// Reads the options of a write; `user_agent` names the manager when none is given.
    pub fn parse(query: &Query, user_agent: &str) -> Result<Self> {
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", other, &supported);
                return Err(ApiError::invalid_option("CreateOptions", error));
            }
        };
        let manager = query.get("fieldManager").map_or_else(|| manager_of(user_agent), str::to_owned);
        if manager.len() > 128 {
            return Err(ApiError::invalid_option("PatchOptions", FieldError::too_long("fieldManager", 128)));
        }
        let dry_run = dry_run(query.all("dryRun"))?;
        Ok(Self { dry_run, manager, force: query.flag("force"), validation, requester: Value::Null })
    }

    /// Options for what the server itself writes.
    pub fn internal(manager: &str) -> Self {
        Self {
            dry_run: false,
            manager: manager.into(),
            force: false,
            validation: FieldValidation::Ignore,
            requester: Value::Null,
        }
    }
}

/// Whether `dryRun` asks for a dry run; anything but `All` is refused.
pub fn dry_run(values: &[String]) -> Result<bool> {
    let mut asked = false;
    for value in values.iter().filter(|value| !value.is_empty()) {
        if value != "All" {
            return Err(ApiError::invalid_option(
                "CreateOptions",
                FieldError::not_supported("dryRun", value.as_str(), &["All"]),
            ));
        }
        asked = true;
    }
    Ok(asked)
}

/// Kubernetes names the manager after the program in the User-Agent header.
fn manager_of(user_agent: &str) -> String {
    let program = user_agent.split('/').next().unwrap_or_default();
    let printable: String = program.chars().filter(|c| !c.is_control()).take(128).collect();
    if printable.is_empty() { "unknown".into() } else { printable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stray_ampersands_and_escapes_are_read() {
        let query = Query::parse("&limit=5&labelSelector=a%3Db%2Cc&watch=&x=1+2");
        assert_eq!(query.number("limit").ok().flatten(), Some(5));
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch"));
        assert_eq!(query.get("x"), Some("1 2"));
    }

    #[test]
    fn the_manager_is_the_program_of_the_user_agent() {
        let options = WriteOptions::parse(&Query::default(), "kubectl/v1.36 (linux/amd64)").expect("valid");
        assert_eq!(options.manager, "kubectl");
    }

    #[test]
    fn durations_are_read_as_go_does() {
        for good in ["0", "0s", "1s", "34m0s", "1.5h", "100ms"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["", "10", "s", "ten", "1x", "invalid"] {
            assert!(!is_duration(bad), "{bad}");
        }
    }

    #[test]
    fn an_unknown_dry_run_value_is_refused() {
        assert!(dry_run(&["Some".into()]).is_err());
        assert_eq!(dry_run(&["All".into()]).ok(), Some(true));
    }
}
