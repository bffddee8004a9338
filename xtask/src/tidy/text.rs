//! Rules for the text of one file.

/// Words that tell of one machine and not of the product. Written in two halves, or this file would be untidy.
const FORBIDDEN: [(&str, &str); 5] = [
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("proxy.", "golang"), "a registry host: which one is used is up to the machine"),
    (concat!("index.", "crates.io"), "a registry host: which one is used is up to the machine"),
];

/// What a deciding module must not mention: it gets a world and a time, and gives a decision.
const UNDECIDED: [&str; 17] = [
    "async fn",
    "async move",
    "async {",
    ".await",
    "kube::Client",
    "kube::Api",
    "Api<",
    "tokio",
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "Zoned::now",
    "rand::",
    "HashMap",
    "HashSet",
    "tracing::",
    "std::env",
];

/// Whether a word stands in a line by itself: in the midst of a longer path it is a folder of that.
fn begins_in(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric()))
}

/// Faults of one file, each beginning with `:line: `.
pub(super) fn faults(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    // Seeds of the fuzzers are inputs byte by byte: a line break would be another input.
    let generated = path.ends_with("go.sum")
        || path.ends_with("Cargo.lock")
        || path.ends_with(".snap")
        || path.contains("/corpus-seeds/");
    for (number, line) in (1..).zip(text.lines()) {
        let mut fault = |what: &str| faults.push(format!(":{number}: {what}"));
        if !generated && line != line.trim_end() {
            fault("white space at the end");
        }
        if !generated {
            FORBIDDEN.iter().filter(|(word, _)| begins_in(line, word)).for_each(|(word, why)| {
                fault(&format!("`{word}` is {why}"));
            });
        }
        if path.ends_with(".rs") {
            if line.trim_start().starts_with(concat!("#[ig", "nore")) {
                fault("an ignored test: it runs, or says by skip() why it cannot, or goes");
            }
            if decides(path) {
                UNDECIDED.iter().filter(|word| line.contains(*word)).for_each(|word| {
                    fault(&format!(
                        "`{word}` in a deciding module: what it needs comes in through the world"
                    ));
                });
            }
        }
    }
    if !generated && !text.is_empty() && !text.ends_with('\n') {
        faults.push(": no line break at the end".to_owned());
    }
    if path.ends_with(".rs") && !opens_with_docs(text) {
        faults.push(": a module opens with `//!`: what it is for and what it leaves to others".to_owned());
    }
    faults
}

/// Links in a page that lead to nothing in the repository.
pub(super) fn dead_links(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    if !path.ends_with(".md") {
        return Vec::new();
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if !exists(&resolve(folder, target)) {
                faults.push(format!("{path}:{number}: the link {link} leads nowhere"));
            }
        }
    }
    faults
}

fn resolve(folder: &str, target: &str) -> String {
    let start = if target.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = start.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn decides(path: &str) -> bool {
    path.starts_with("crates/") && (path.ends_with("/decide.rs") || path.contains("/decide/"))
}

fn opens_with_docs(text: &str) -> bool {
    text.lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!"))
        .is_some_and(|l| l.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = faults(path, text);
        assert_eq!(found.len(), expected.len(), "{path} {text:?}: {found:?}");
        for (fault, part) in found.iter().zip(expected) {
            assert!(fault.contains(part), "{fault:?} should tell of {part:?}");
        }
    }

    #[test]
    fn text_is_clean() {
        check("a.md", "fine\n", &[]);
        check("a.md", "space \n", &[":1: white space"]);
        check("a.md", "one\ntab\t\n", &[":2: white space"]);
        check("a.md", "no end", &["line break"]);
        check("tools/x/go.sum", "space \n", &[]);
        check("a.md", concat!("see /wo", "rk/x\n"), &["path of one machine"]);
        check("a.go", concat!("import example.io/api/wo", "rk/v1\n"), &[]);
        check("a.md", concat!("from https://proxy.", "golang.org\n"), &["registry host"]);
    }

    #[test]
    fn modules_open_with_their_purpose() {
        check("a.rs", "//! Why.\n", &[]);
        check("a.rs", "#![no_std]\n//! Why.\n", &[]);
        check("a.rs", "use std::fs;\n", &["opens with"]);
        check("a.rs", "", &["opens with"]);
    }

    #[test]
    fn no_test_is_ignored() {
        check("a.rs", concat!("//! Why.\n#[ig", "nore]\n"), &["ignored test"]);
        check("a.rs", concat!("//! Why.\n    #[ig", "nore = \"slow\"]\n"), &["ignored test"]);
    }

    #[test]
    fn deciding_modules_only_decide() {
        let decide = "crates/x/src/decide.rs";
        check(decide, "//! Why.\nfn decide(world: &World, now: Timestamp) -> Decision {}\n", &[]);
        check(decide, "//! Why.\nasync fn f() {}\n", &["`async fn`"]);
        check(
            "crates/x/src/decide/move.rs",
            "//! Why.\nlet now = Timestamp::now();\n",
            &["`Timestamp::now`"],
        );
        check("crates/x/src/effects.rs", "//! Why.\nasync fn f() { g().await }\n", &[]);
        check(decide, "//! Why.\nuse std::collections::HashMap;\n", &["`HashMap`"]);
    }

    #[test]
    fn links_lead_somewhere() {
        let check = |text: &str, expected: usize| {
            let found = dead_links("docs/a.md", text, |path| path == "docs/b.md" || path == "README.md");
            assert_eq!(found.len(), expected, "{text}: {found:?}");
        };
        check("see [b](b.md) and [top](../README.md#x) and [web](https://example.com)", 0);
        check("see [b](#here)", 0);
        check("see [c](c.md)", 1);
        check("[root](/README.md)", 0);
    }
}
