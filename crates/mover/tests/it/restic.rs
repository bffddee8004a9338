//! The real restic: it reads what we wrote, and we read what it wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lifeboat_mover::{Backup, Content, Error, Mover, Restore, Rustic};

use crate::corpus;
use crate::local::{files, into, repository, tags, unwatched};

const MODULE: &str = include_str!("../../../../tools/restic/go.mod");

/// The pinned restic, or none with a reason that is counted.
fn restic(test: &str) -> Option<PathBuf> {
    let version = MODULE
        .lines()
        .find_map(|line| {
            line.trim().trim_start_matches("require ").strip_prefix("github.com/restic/restic v")
        })
        .expect("the module names the release");
    let path = lifeboat_reference::cache_root().join(format!("restic-{version}")).join("restic");
    if path.is_file() {
        return Some(path);
    }
    lifeboat_reference::skip(test, "restic is not built (`cargo xtask tools` builds it; needs Go 1.26)");
    None
}

fn run(restic: &Path, place: &Path, arguments: &[&str]) -> String {
    let output = Command::new(restic)
        .args(["--repo", place.to_str().unwrap(), "--no-cache"])
        .args(arguments)
        .env_clear()
        .env("RESTIC_PASSWORD", "p4ssw0rd-canary")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[tokio::test]
async fn restic_reads_what_we_wrote() {
    let Some(restic) = restic("restic::restic_reads_what_we_wrote") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, place) = (folder.path().join("source"), folder.path().join("repository"));
    corpus::make(&source);
    let device = folder.path().join("device");
    fs::write(&device, corpus::noise(7, 3_000_000)).unwrap();
    let (mover, repository) = (Rustic::new(), repository(&place));
    let first = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    let raw = Backup {
        content: Content::Device { path: device.clone(), size: 3_000_000 },
        path: "/shop/raw".into(),
        ..files(&source)
    };
    let raw = mover.backup(&repository, raw, unwatched()).await.unwrap();

    run(&restic, &place, &["check", "--read-data"]);
    let listed: serde_json::Value =
        serde_json::from_str(&run(&restic, &place, &["snapshots", "--json"])).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["id"], first.snapshot.id);
    assert_eq!(listed[0]["hostname"], "node-1");
    assert_eq!(listed[0]["paths"], serde_json::json!(["/shop/data"]));
    assert_eq!(listed[0]["tags"], serde_json::json!(["namespace=shop", "volume=v1"]));

    let target = folder.path().join("target");
    run(&restic, &place, &["restore", &first.snapshot.id, "--target", target.to_str().unwrap(), "--sparse"]);
    let target = target.join("shop/data");
    corpus::assert_same(&source, &target);
    assert!(corpus::allocated(&target.join("all-hole")) < 1 << 20);
    let whole = folder.path().join("whole");
    run(&restic, &place, &["restore", &raw.snapshot.id, "--target", whole.to_str().unwrap()]);
    assert!(fs::read(whole.join("shop/raw")).unwrap() == fs::read(&device).unwrap());

    // restic goes on with what we began, and after it has pruned everything is still whole.
    mover.forget(&repository, &[raw.snapshot.id.clone()].into()).await.unwrap();
    mover.prune(&repository).await.unwrap();
    run(&restic, &place, &["prune"]);
    run(&restic, &place, &["check", "--read-data"]);
    assert_eq!(mover.verify(&repository, true).await.unwrap().faults, Vec::<String>::new());
    let again = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    assert!(again.bytes_added < 1000, "{again:?}");
    run(&restic, &place, &["check", "--read-data"]);
}

#[tokio::test]
async fn we_restore_what_restic_wrote() {
    let Some(restic) = restic("restic::we_restore_what_restic_wrote") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, place, target) =
        (folder.path().join("source"), folder.path().join("repository"), folder.path().join("target"));
    corpus::make(&source);
    fs::create_dir(&target).unwrap();
    run(&restic, &place, &["init"]);
    run(&restic, &place, &["backup", "--host", "node-9", "--tag", "volume=v9", source.to_str().unwrap()]);
    let (mover, repository) = (Rustic::new(), repository(&place));
    mover.probe(&repository).await.unwrap();
    let found = mover.find(&repository, &tags(&[("volume", "v9")])).await.unwrap();
    let [snapshot] = &found[..] else { panic!("{found:?}") };
    assert_eq!(snapshot.path, source.to_str().unwrap());
    mover.restore(&repository, into(&snapshot.id, &target), unwatched()).await.unwrap();
    corpus::assert_same(&source, &target);
    // What restic holds already is not stored again.
    let made = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    assert!(made.bytes_added < 20_000, "{made:?}");
    run(&restic, &place, &["check", "--read-data"]);
    assert_eq!(mover.verify(&repository, true).await.unwrap().faults, Vec::<String>::new());
}

#[tokio::test]
async fn restic_and_we_keep_to_each_others_locks() {
    let Some(restic) = restic("restic::restic_and_we_keep_to_each_others_locks") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (source, place) = (folder.path().join("source"), folder.path().join("repository"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), corpus::noise(3, 30_000_000)).unwrap();
    let (mover, repository) = (Rustic::new(), repository(&place));
    let made = mover.backup(&repository, files(&source), unwatched()).await.unwrap();

    // While we write, restic may not prune.
    fs::write(source.join("file"), corpus::noise(4, 30_000_000)).unwrap();
    let mut slow = files(&source);
    slow.limits.bytes_per_second = 10_000_000;
    let progress = unwatched();
    let mut heard = progress.subscribe();
    let running = tokio::spawn({
        let (mover, repository) = (mover.clone(), repository.clone());
        async move { mover.backup(&repository, slow, progress).await }
    });
    heard.wait_for(|progress| progress.bytes_done > 0).await.unwrap();
    let prune = tokio::task::spawn_blocking({
        let (restic, place) = (restic.clone(), place.clone());
        move || {
            let mut command = Command::new(restic);
            command.args(["--repo", place.to_str().unwrap(), "--no-cache", "prune"]);
            command.env_clear().env("RESTIC_PASSWORD", "p4ssw0rd-canary").output().unwrap()
        }
    });
    let pruned = prune.await.unwrap();
    let told = String::from_utf8_lossy(&pruned.stderr).into_owned();
    assert!(!pruned.status.success() && told.contains("locked"), "{told}");
    assert!(told.contains("lifeboat"), "{told}");
    running.await.unwrap().unwrap();
    assert_eq!(fs::read_dir(place.join("locks")).unwrap().count(), 0);
    run(&restic, &place, &["prune"]);

    // While restic holds the repository alone, we wait. It dies without giving the lock back, as a crash would leave it.
    let mut holder = Command::new(&restic)
        .args([
            "--repo",
            place.to_str().unwrap(),
            "--no-cache",
            "prune",
            "--limit-download",
            "1",
            "--max-unused",
            "0",
        ])
        .env_clear()
        .env("RESTIC_PASSWORD", "p4ssw0rd-canary")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let locked = async {
        // A lock that has no whole name yet is no lock yet.
        let whole = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().len() == 64;
        while !fs::read_dir(place.join("locks")).unwrap().any(whole) {
            if let Some(ended) = holder.try_wait().unwrap() {
                panic!("restic ended without a lock: {ended}");
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), locked).await.unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    let target = tempfile::tempdir().unwrap();
    let restore = Restore { ..into(&made.snapshot.id, target.path()) };
    let error = mover.restore(&repository, restore.clone(), unwatched()).await.unwrap_err();
    assert!(matches!(&error, Error::Transient(text) if text.contains("in use")), "{error:?}");
    assert!(matches!(
        mover.backup(&repository, files(&source), unwatched()).await.unwrap_err(),
        Error::Transient(_)
    ));
    run(&restic, &place, &["unlock", "--remove-all"]);
    mover.restore(&repository, restore, unwatched()).await.unwrap();
}
