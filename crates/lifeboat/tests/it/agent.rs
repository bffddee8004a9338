//! `lifeboat agent` by itself, where something is lacking that it needs.

use crate::process::Up;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

#[test]
fn an_agent_without_a_place_for_its_lease_says_so() {
    let data = tempfile::tempdir().expect("folder");
    let _up = Up::start(data.path(), &["--clusters", "hub", "--bare"]);
    let kubeconfig = data.path().join("kubeconfig");
    let mut agent = Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(["agent", "--name", "east", "--namespace", "nowhere", "--kubeconfig"])
        .arg(&kubeconfig)
        .arg("--hub-kubeconfig")
        .arg(&kubeconfig)
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = String::new();
    let read = BufReader::new(agent.stderr.take().expect("piped")).read_line(&mut said);
    // It would wait for ever.
    agent.kill().expect("killed");
    agent.wait().expect("ended");
    read.expect("a line");
    assert!(said.contains("there is no namespace nowhere"), "{said}");
    assert!(said.contains("kubectl create namespace nowhere"), "{said}");
}
