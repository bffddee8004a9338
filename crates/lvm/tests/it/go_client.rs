//! TopoLVM's own Go messages against our socket: the program in `tools/lvmd/client`.

use lifeboat_lvm::{Config, Listening, Program, Storage};
use lifeboat_reference::skip;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Builds the program; `Err` says why it cannot be built here. A program that does not compile is a failure, not a skip.
fn build() -> Result<PathBuf, String> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/lvmd/client");
    let go = |arguments: &[&str]| Command::new("go").args(arguments).current_dir(&module).output();
    let download = go(&["mod", "download"]).map_err(|error| format!("go: {error}"))?;
    if !download.status.success() {
        return Err(format!("go mod download: {}", String::from_utf8_lossy(&download.stderr)));
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lvmd-client");
    let built = go(&["build", "-o", program.to_str().unwrap(), "."]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(program)
}

#[tokio::test]
async fn topolvms_go_client_gets_what_it_expects() {
    let program = match tokio::task::spawn_blocking(build).await.unwrap() {
        Ok(program) => program,
        Err(reason) => return skip("topolvms_go_client_gets_what_it_expects", reason),
    };
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "device-classes: [{{name: plain, type: dir, path: {}, limit-gb: 1, default: true}}]",
        folder.path().join("volumes").display()
    );
    let storage = Storage::open(Config::read(&text).unwrap(), Arc::new(Program::direct())).unwrap();
    let socket = folder.path().join("lvmd.sock");
    let listening = Listening::on(&socket).await.unwrap();
    let serving = tokio::spawn(listening.serve(Arc::new(storage), std::future::pending()));
    let ran = tokio::process::Command::new(program).arg(&socket).arg("plain").output().await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    serving.abort();
}
