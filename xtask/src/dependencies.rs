//! Checks what the workspace depends on, without any cargo plugin: nothing banned, no licence that is not allowed.
//!
//! The lists and their reasons are those of `deny.toml`, so people with cargo-deny and people without see the same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shell;

/// What `deny.toml` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rules {
    licences: BTreeSet<String>,
    /// Crate and reason.
    banned: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
}

/// Checks every crate that is really built on Linux.
pub(crate) fn check() -> Result<()> {
    let path = shell::root().join("deny.toml");
    let rules = rules(&fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?);
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let text = shell::read(&mut shell::cargo(&[
        "metadata",
        "--format-version=1",
        "--filter-platform",
        &target,
        "--locked",
    ]))?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading the output of cargo metadata")?;
    let built: BTreeSet<&str> = metadata.resolve.nodes.iter().map(|node| node.id.as_str()).collect();
    let mut faults = Vec::new();
    for package in metadata.packages.iter().filter(|package| built.contains(package.id.as_str())) {
        faults.extend(
            fault(&rules, &package.name, package.license.as_deref())
                .map(|fault| format!("{} {}: {fault}", package.name, package.version)),
        );
    }
    if !faults.is_empty() {
        bail!("dependencies break the rules of deny.toml:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

fn fault(rules: &Rules, name: &str, licence: Option<&str>) -> Option<String> {
    if let Some(reason) = rules.banned.get(name) {
        return Some(format!("banned: {reason}"));
    }
    match licence {
        None => Some("it names no licence".to_owned()),
        Some(licence) if !allowed(&rules.licences, licence) => {
            Some(format!("licence {licence} is not allowed"))
        }
        Some(_) => None,
    }
}

/// Whether an SPDX expression can be satisfied with allowed licences.
///
/// `OR` binds weaker than `AND`; the old form with a slash means `OR`. Parentheses only ever wrap one alternative in
/// the crates we see, so a group is judged by itself.
fn allowed(licences: &BTreeSet<String>, expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    any_alternative(licences, expression.trim())
}

fn any_alternative(licences: &BTreeSet<String>, expression: &str) -> bool {
    split(expression, " OR ").iter().any(|side| {
        split(side, " AND ").iter().all(|term| {
            let term = term.trim();
            match term.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
                Some(inner) => any_alternative(licences, inner),
                None => licences.contains(term),
            }
        })
    })
}

/// Splits at a word, but not inside parentheses.
fn split<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= start && text[at..].starts_with(word) => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Reads the two lists that matter here out of `deny.toml`: one entry per line, as this repository writes them.
fn rules(text: &str) -> Rules {
    let mut rules = Rules::default();
    let (mut section, mut list) = ("", "");
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            (section, list) = (name, "");
        } else if let Some(name) = line.strip_suffix(" = [") {
            list = name;
        } else if line == "]" {
            list = "";
        } else if (section, list) == ("licenses", "allow") {
            rules.licences.extend(quoted(line, ""));
        } else if (section, list) == ("bans", "deny") {
            rules.banned.extend(
                quoted(line, "crate = ").map(|name| (name, quoted(line, "reason = ").unwrap_or_default())),
            );
        }
    }
    rules
}

/// The quoted text right after `key`.
fn quoted(line: &str, key: &str) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let after = &line[line.find(key)? + key.len()..];
    let mut parts = after.split('"');
    let before = parts.next()?;
    (before.is_empty() || key.is_empty()).then(|| parts.next().map(str::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions_are_judged() {
        let list = ["MIT", "Apache-2.0", "Unicode-3.0", "ISC"].map(str::to_owned).into();
        let check = |expression, expected| assert_eq!(allowed(&list, expression), expected, "{expression}");
        check("MIT", true);
        check("GPL-3.0-only", false);
        check("GPL-3.0-only OR MIT", true);
        check("GPL-3.0-only AND MIT", false);
        check("MIT/Apache-2.0", true);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND GPL-2.0", false);
        check("Apache-2.0 AND (ISC OR GPL-2.0)", true);
        check("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true);
        check("", false);
    }

    #[test]
    fn the_lists_of_deny_toml_are_read() {
        let text = "[licenses]\nallow = [\n    # why\n    \"MIT\", # plain\n]\n[bans]\nmultiple-versions = \"warn\"\n\
                    deny = [\n    { crate = \"openssl-sys\", reason = \"needs OpenSSL\" },\n]\n";
        let read = rules(text);
        assert_eq!(read.licences, ["MIT".to_owned()].into());
        assert_eq!(read.banned, [("openssl-sys".to_owned(), "needs OpenSSL".to_owned())].into());
        assert_eq!(fault(&read, "openssl-sys", Some("MIT")), Some("banned: needs OpenSSL".to_owned()));
        assert_eq!(fault(&read, "fine", Some("MIT")), None);
        assert!(fault(&read, "unlicensed", None).is_some());
    }

    #[test]
    fn the_repository_has_lists() {
        let read = rules(&fs::read_to_string(shell::root().join("deny.toml")).unwrap());
        assert!(read.licences.contains("Apache-2.0"), "{read:?}");
        assert!(read.banned.contains_key("aws-lc-rs"), "{read:?}");
    }
}
