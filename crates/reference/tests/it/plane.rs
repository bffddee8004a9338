//! The control plane comes up, answers as an API server does, and leaves nothing behind.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lifeboat_reference::{Binaries, ControlPlane, StartError, skip};

/// Starts one, or reports the skip.
fn start(test: &str, controllers: &[&str]) -> Option<ControlPlane> {
    match ControlPlane::builder().controllers(controllers.iter().copied()).start() {
        Ok(plane) => Some(plane),
        Err(StartError::Missing(missing)) => {
            skip(test, missing);
            None
        }
        Err(other) => panic!("{other}: {:?}", std::error::Error::source(&other)),
    }
}

fn kubectl(plane: &ControlPlane, args: &[&str]) -> (bool, String) {
    let program = Binaries::in_cache().kubectl().unwrap();
    let output =
        Command::new(program).arg("--kubeconfig").arg(plane.kubeconfig()).args(args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn an_administrator_uses_it_and_nothing_is_left_behind() {
    let Some(plane) = start("reference::an_administrator_uses_it", &[]) else { return };
    if let Err(missing) = Binaries::in_cache().kubectl() {
        return skip("reference::an_administrator_uses_it", missing);
    }
    let (ok, version) = kubectl(&plane, &["version"]);
    assert!(
        ok && version.contains(&format!("Server Version: v{}", lifeboat_reference::Pins::read().kubernetes)),
        "{version}"
    );
    let (ok, who) = kubectl(&plane, &["auth", "whoami"]);
    assert!(ok && who.contains("system:masters"), "{who}");
    let (ok, made) = kubectl(&plane, &["create", "namespace", "one"]);
    assert!(ok, "{made}");

    let pids = plane.pids();
    let folder = plane.folder().to_owned();
    drop(plane);
    for (program, pid) in pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{program} still runs");
    }
    assert!(!folder.exists());
}

#[test]
fn chosen_controllers_run() {
    let controllers = ["serviceaccount-controller", "root-ca-certificate-publisher-controller"];
    let Some(mut plane) = start("reference::chosen_controllers_run", &controllers) else { return };
    if let Err(missing) = Binaries::in_cache().kubectl() {
        return skip("reference::chosen_controllers_run", missing);
    }
    let begin = Instant::now();
    loop {
        let (made, text) = kubectl(&plane, &["get", "serviceaccount/default", "configmap/kube-root-ca.crt"]);
        if made {
            break;
        }
        assert!(plane.controllers_run(), "kube-controller-manager ended");
        assert!(begin.elapsed() < Duration::from_secs(60), "{text}");
        thread::yield_now();
    }
}
