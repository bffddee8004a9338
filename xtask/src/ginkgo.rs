//! Reads the JSON report of a ginkgo run: which spec passed, failed or was skipped, and why.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Letters of a message that are worth reading in a table.
const LONGEST: usize = 250;

/// How one spec ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// With the first line of what it said.
    Failed(String),
    /// It decided by itself that it does not apply.
    Skipped(String),
}

/// One spec that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) outcome: Outcome,
    pub(crate) seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    #[serde(default)]
    spec_reports: Option<Vec<Report>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    #[serde(default)]
    container_hierarchy_texts: Option<Vec<String>>,
    #[serde(default)]
    leaf_node_text: String,
    #[serde(default)]
    leaf_node_type: String,
    #[serde(default)]
    state: String,
    /// In nanoseconds.
    #[serde(default)]
    run_time: u64,
    #[serde(default)]
    failure: Failure,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
}

/// Reads a report file; specs that the focus left out are left out here too.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<String, Spec>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    parse(&text).with_context(|| format!("reading {}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<String, Spec>> {
    let suites: Vec<Suite> = serde_json::from_str(text)?;
    let reports = suites.into_iter().flat_map(|suite| suite.spec_reports.unwrap_or_default());
    let mut specs = BTreeMap::new();
    for report in reports {
        let message = report.failure.message.lines().next().unwrap_or_default();
        // Some specs put a whole dump of the server on one line.
        let message: String = message.trim().chars().take(LONGEST).collect();
        let outcome = match report.state.as_str() {
            "passed" => Outcome::Passed,
            // What the focus leaves out is skipped without a message.
            "skipped" if message.is_empty() => continue,
            "skipped" => Outcome::Skipped(message),
            "pending" => continue,
            _ => Outcome::Failed(message),
        };
        let name = match report.leaf_node_type.as_str() {
            "It" => {
                let mut words = report.container_hierarchy_texts.unwrap_or_default();
                words.push(report.leaf_node_text);
                words.join(" ")
            }
            // Preparation of the whole suite: only worth a line when it fails.
            node if matches!(outcome, Outcome::Failed(_)) => format!("[{node}]"),
            _ => continue,
        };
        specs.insert(name, Spec { outcome, seconds: report.run_time / 1_000_000_000 });
    }
    Ok(specs)
}

/// A regular expression (Go's syntax) that matches exactly these names.
///
/// It is open at the front, where ginkgo puts the name of the suite; a name begins with its group, so none is the end of
/// another.
pub(crate) fn focus<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(quote).collect();
    format!("(?:{})$", quoted.join("|"))
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let text = r#"[{"SpecReports": [
            {"ContainerHierarchyTexts": ["[sig-x] A", "b"], "LeafNodeText": "works", "LeafNodeType": "It",
             "State": "passed", "RunTime": 2500000000},
            {"ContainerHierarchyTexts": ["[sig-x] A"], "LeafNodeText": "breaks", "LeafNodeType": "It",
             "State": "failed", "RunTime": 1, "Failure": {"Message": "no\nmore"}},
            {"ContainerHierarchyTexts": ["[sig-x] A"], "LeafNodeText": "hangs", "LeafNodeType": "It",
             "State": "timedout", "Failure": {"Message": "too slow"}},
            {"ContainerHierarchyTexts": ["[sig-x] A"], "LeafNodeText": "left out", "LeafNodeType": "It",
             "State": "skipped"},
            {"ContainerHierarchyTexts": ["[sig-x] A"], "LeafNodeText": "steps back", "LeafNodeType": "It",
             "State": "skipped", "Failure": {"Message": "needs two nodes"}},
            {"ContainerHierarchyTexts": null, "LeafNodeText": "", "LeafNodeType": "SynchronizedBeforeSuite",
             "State": "passed"}
        ]}, {"SpecReports": null}]"#;
        let specs = parse(text).unwrap();
        let check = |name: &str, expected: Option<Outcome>| {
            assert_eq!(specs.get(name).map(|spec| spec.outcome.clone()), expected, "{name}");
        };
        check("[sig-x] A b works", Some(Outcome::Passed));
        check("[sig-x] A breaks", Some(Outcome::Failed("no".to_owned())));
        check("[sig-x] A hangs", Some(Outcome::Failed("too slow".to_owned())));
        check("[sig-x] A left out", None);
        check("[sig-x] A steps back", Some(Outcome::Skipped("needs two nodes".to_owned())));
        assert_eq!(specs.len(), 4);
        assert_eq!(specs["[sig-x] A b works"].seconds, 2);
    }

    #[test]
    fn a_failed_preparation_is_told() {
        let text = r#"[{"SpecReports": [{"LeafNodeType": "BeforeSuite", "State": "failed",
            "Failure": {"Message": "no node"}}]}]"#;
        let specs = parse(text).unwrap();
        assert_eq!(specs["[BeforeSuite]"].outcome, Outcome::Failed("no node".to_owned()));
    }

    #[test]
    fn a_focus_matches_names_letter_by_letter() {
        assert_eq!(focus(["[a] b (c)", "d.e"]), r"(?:\[a\] b \(c\)|d\.e)$");
    }
}
