//! Rules for crates: every room has its place, and none uses what stands below it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

/// The rooms in reading order: a crate may use what stands above it, never what stands below.
const ROOMS: [&str; 27] = [
    "lifeboat-api",
    "lifeboat-engine",
    "lifeboat-schema",
    "lifeboat-kinds",
    "lifeboat-apiserver",
    "lifeboat-lvm",
    "lifeboat-store",
    "lifeboat-s3",
    "lifeboat-beneath",
    "lifeboat-mover",
    "lifeboat-stream",
    "lifeboat-records",
    "lifeboat-binder",
    "lifeboat-node",
    "lifeboat-protect",
    "lifeboat-replicate",
    "lifeboat-mirror",
    "lifeboat-fleet",
    "lifeboat-hub",
    "lifeboat-runner",
    "lifeboat-sim",
    "lifeboat-reference",
    "lifeboat-vm",
    "lifeboat-testbed",
    "lifeboat-mortal",
    "lifeboat-bench",
    "lifeboat",
];

/// Rooms that any test may use, wherever its crate stands.
const FOR_TESTS: [&str; 7] = [
    "lifeboat-apiserver",
    "lifeboat-mortal",
    "lifeboat-reference",
    "lifeboat-s3",
    "lifeboat-sim",
    "lifeboat-testbed",
    "lifeboat-vm",
];

/// Rooms that must not know others, beyond the order: the one in front must not use those behind it.
const STRANGERS: [(&str, &[&str]); 14] = [
    ("lifeboat-schema", &["lifeboat-engine", "lifeboat-api"]),
    ("lifeboat-kinds", &["lifeboat-engine"]),
    ("lifeboat-apiserver", &["lifeboat-engine"]),
    ("lifeboat-lvm", &["lifeboat-api", "lifeboat-engine", "lifeboat-apiserver"]),
    ("lifeboat-mover", &["lifeboat-api", "lifeboat-engine", "lifeboat-apiserver"]),
    ("lifeboat-store", &["lifeboat-api", "lifeboat-engine", "lifeboat-apiserver", "lifeboat-lvm"]),
    ("lifeboat-stream", &["lifeboat-api", "lifeboat-engine", "lifeboat-apiserver"]),
    ("lifeboat-binder", &["lifeboat-lvm", "lifeboat-mover", "lifeboat-records"]),
    ("lifeboat-protect", &["lifeboat-binder", "lifeboat-node"]),
    ("lifeboat-replicate", &["lifeboat-protect", "lifeboat-binder"]),
    ("lifeboat-mirror", &["lifeboat-protect", "lifeboat-binder"]),
    ("lifeboat-fleet", &["lifeboat-protect", "lifeboat-binder", "lifeboat-node"]),
    ("lifeboat-runner", &["lifeboat-protect", "lifeboat-binder", "lifeboat-node", "lifeboat-hub"]),
    (
        "lifeboat-hub",
        &["lifeboat-protect", "lifeboat-binder", "lifeboat-node", "lifeboat-lvm", "lifeboat-mover"],
    ),
];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    path: Option<String>,
}

/// Faults of all crates of the workspace.
pub(super) fn faults(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let text = shell::read(&mut shell::cargo(&["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading the output of cargo metadata")?;
    let mut faults: Vec<String> = metadata.packages.iter().flat_map(package_faults).collect();
    let manifests = files.iter().filter(|(path, _)| {
        path.ends_with("/Cargo.toml") && (path.starts_with("crates/") || path.starts_with("xtask/"))
    });
    for (path, text) in manifests {
        if !text.contains("[lints]\nworkspace = true") {
            faults.push(format!("{path}: it does not take the lints of the workspace"));
        }
    }
    Ok(faults)
}

fn package_faults(package: &Package) -> Vec<String> {
    let mut faults = Vec::new();
    let name = package.name.as_str();
    let mut fault = |what: String| faults.push(format!("crate {name}: {what}"));
    if package.description.as_deref().is_none_or(|description| description.trim().len() < 10) {
        fault("it has no description of its job".to_owned());
    }
    // xtask stands outside the house: it runs things, and nothing may use it.
    let outside = name == "xtask";
    let place = place(name);
    if place.is_none() && !outside {
        fault("it has no place among the rooms; give it one, in docs/architecture.md as well".to_owned());
    }
    for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_some()) {
        let used = dependency.name.as_str();
        let for_tests = dependency.kind.as_deref() == Some("dev");
        if outside || (for_tests && FOR_TESTS.contains(&used)) {
            continue;
        }
        if STRANGERS.iter().any(|(room, strangers)| *room == name && strangers.contains(&used)) && !for_tests
        {
            fault(format!("it must not know {used}"));
        }
        if place <= self::place(used) {
            fault(format!("it uses {used}, which stands below it"));
        }
    }
    faults
}

fn place(name: &str) -> Option<usize> {
    ROOMS.iter().position(|room| *room == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: Some(String::new()),
        };
        Package {
            name: name.to_owned(),
            description: Some("does one thing well".to_owned()),
            dependencies: uses.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn rooms_use_only_what_stands_above() {
        let check = |name, uses: &[(&str, Option<&str>)], expected: usize| {
            let found = package_faults(&package(name, uses));
            assert_eq!(found.len(), expected, "{name} {uses:?}: {found:?}");
        };
        check("lifeboat-binder", &[("lifeboat-api", None), ("lifeboat-engine", None)], 0);
        check("lifeboat-engine", &[("lifeboat-binder", None)], 1);
        check("lifeboat-kinds", &[("lifeboat-schema", None)], 0);
        check("lifeboat-schema", &[("lifeboat-kinds", None)], 1);
        check("lifeboat-binder", &[("lifeboat-testbed", Some("dev"))], 0);
        check("lifeboat-binder", &[("lifeboat-testbed", None)], 1);
        check("lifeboat-binder", &[("lifeboat-lvm", None)], 1);
        check("lifeboat-binder", &[("lifeboat-hub", Some("dev"))], 1);
        check("lifeboat-unheard-of", &[], 1);
        check("xtask", &[("lifeboat-reference", None)], 0);
    }
}
