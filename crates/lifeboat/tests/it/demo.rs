//! The demo is a test: it is played to its end, and its own exit code says whether every promise was kept.

use serde_json::Value;

fn play(way: &str) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(["demo", "--output", "json", "--storage", way])
        // What every controller did is printed with a promise that was not kept.
        .env("RUST_LOG", "warn,lifeboat_engine=debug,lifeboat_runner=debug")
        .output()
        .expect("ran");
    let said = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(said.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {said}\n{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(document["kept"], true, "{}\n{document:#}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    let promises = document["promises"].as_array().expect("promises");
    assert!(promises.len() >= 7 && promises.iter().all(|one| one["kept"] == true), "{document:#}");
    let steps = document["steps"].as_array().expect("steps");
    assert!(steps.len() >= 9, "{document:#}");
}

#[test]
fn a_cluster_is_lost_and_found_with_copies_by_a_mover() {
    play("volsync");
}

#[test]
fn a_cluster_is_lost_and_found_with_mirrored_storage() {
    play("volrep");
}
