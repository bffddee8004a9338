//! Every rule has a row: this list knows them, and fails where one is named by no test. What others do, or nobody yet, stands here with the reason.

use std::collections::BTreeSet;
use std::path::Path;

/// Rules of this crate: scenarios (R, Y, H), hazards of peers (D), and the steps of bringing in, letting go, demoting and deleting.
const ROWS: &[&str] = &[
    "R1",
    "R2",
    "R3",
    "R4",
    "R5",
    "R6",
    "R7",
    "R8",
    "R9",
    "R10",
    "R11",
    "R12",
    "R13",
    "R15",
    "R16",
    "R17",
    "R18",
    "R19",
    "Y1",
    "Y2",
    "H1",
    "H2",
    "H3",
    "H4",
    "H5",
    "H7",
    "H8",
    "H9",
    "D1",
    "D2",
    "D3",
    "D4",
    "D5",
    "D6",
    "D8",
    "D11",
    "D12",
    "D13",
    "D14",
    "D16",
    "D17",
    "D18",
    "D19",
    "D20",
    "D21",
    "D22",
    "D24",
    "D25",
    "D26",
    "D27",
    "D28",
    "D29",
    "D31",
    "D32",
    "D33",
    "D34",
    "protect 1",
    "protect 2",
    "protect 4",
    "protect 5",
    "protect 7",
    "undo 1",
    "undo 2",
    "undo 3",
    "secondary 3",
    "secondary 4",
    "delete 0",
    "delete 3",
    "delete 5",
    "delete 9",
    "delete 10",
];

/// Rules that have no row here, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("R14", "groups of volumes are not served: each claim is told so"),
    ("H6", "a mover of ours needs no pod to have mounted the claim"),
    ("D7", "who is promoted by force is the driver's business: crates/mirror"),
    ("D9", "groups of volumes are not served"),
    ("D10", "copies by difference are ordinary copies, and that is said"),
    ("D15", "deadlines and kinds of errors of a store: crates/store"),
    ("D23", "captures of Kubernetes objects are not served: D22"),
    ("D30", "secrets of a restored volume: crates/records"),
    ("D35", "the survey's own tests"),
];

fn words(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            words(&path, into);
        } else if path.file_name().is_some_and(|name| name != "index.rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_rule_has_a_row() {
    let mut all = String::new();
    words(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"), &mut all);
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let named = |rule: &str| {
        // In the words of a row, or in the name of its test.
        [rule.to_owned(), rule.to_lowercase()].iter().any(|rule| {
            all.match_indices(rule.as_str()).any(|(at, _)| {
                !letter(all[..at].chars().next_back()) && !letter(all[at + rule.len()..].chars().next())
            })
        })
    };
    let missing: Vec<&&str> = ROWS.iter().filter(|rule| !named(rule)).collect();
    assert!(missing.is_empty(), "no row is named after {missing:?}");
    let known: BTreeSet<&str> = ROWS.iter().copied().chain(ELSEWHERE.iter().map(|(rule, _)| *rule)).collect();
    let all: BTreeSet<String> =
        (1..=35).map(|n| format!("D{n}")).chain((1..=19).map(|n| format!("R{n}"))).collect();
    let forgotten: Vec<&String> = all.iter().filter(|rule| !known.contains(rule.as_str())).collect();
    assert!(forgotten.is_empty(), "nobody has said where {forgotten:?} are");
}
