//! What goes wrong on the volume's side, while it runs, and between two that run at once.

use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use lifeboat_mover::{Error, Limits, Mover, Rustic};

use crate::corpus;
use crate::local::{files, into, repository, tags, unwatched};

/// Every file below a folder of a repository.
fn list(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { list(&path) } else { vec![path] }
        })
        .collect()
}

#[tokio::test]
async fn a_backup_that_is_dropped_stops_and_leaves_no_snapshot_and_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("large"), corpus::noise(1, 40_000_000)).unwrap();
    let place = folder.path().join("repository");
    let (mover, repository) = (Rustic::new(), repository(&place));
    let mut slow = files(&source);
    slow.limits = Limits { bytes_per_second: 20_000_000 };
    let progress = unwatched();
    let mut heard = progress.subscribe();
    {
        let running = mover.backup(&repository, slow, progress);
        tokio::pin!(running);
        // Dropped as soon as bytes move.
        tokio::select! {
            ended = &mut running => panic!("{ended:?}"),
            _ = heard.wait_for(|progress| progress.bytes_done > 0) => {}
        }
    }
    // The threads end by themselves; the lock is the last thing they give back.
    let gone = async {
        while !list(&place.join("locks")).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap();
    assert_eq!(mover.find(&repository, &tags(&[])).await.unwrap(), []);
    mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    assert_eq!(mover.verify(&repository, true).await.unwrap().faults, Vec::<String>::new());
}

#[tokio::test]
async fn damage_is_found_by_verify_and_refused_by_restore() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    corpus::make(&source);
    let place = folder.path().join("repository");
    let (mover, repository) = (Rustic::new(), repository(&place));
    let made = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    let largest =
        list(&place.join("data")).into_iter().max_by_key(|pack| pack.metadata().unwrap().len()).unwrap();
    let original = fs::read(&largest).unwrap();
    let check = async |what: &str| {
        let target = tempfile::tempdir().unwrap();
        let error = mover
            .restore(&repository, into(&made.snapshot.id, target.path()), unwatched())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Damaged(_) | Error::Transient(_)), "{what}: {error:?}");
        let verified = mover.verify(&repository, true).await.unwrap();
        assert!(!verified.faults.is_empty(), "{what}");
    };
    let file = fs::OpenOptions::new().write(true).open(&largest).unwrap();
    file.write_all_at(&[original[5000] ^ 1], 5000).unwrap();
    check("a flipped bit").await;
    fs::write(&largest, &original[..original.len() / 2]).unwrap();
    check("half a pack").await;
    fs::remove_file(&largest).unwrap();
    check("a missing pack").await;
    fs::write(&largest, &original).unwrap();
    assert_eq!(mover.verify(&repository, true).await.unwrap().faults, Vec::<String>::new());
}

#[tokio::test]
async fn many_that_make_the_same_repository_at_once_share_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), corpus::noise(1, 100_000)).unwrap();
    let repository = repository(folder.path().join("repository"));
    let mut running = tokio::task::JoinSet::new();
    for index in 0..4 {
        let (repository, mut backup) = (repository.clone(), files(&source));
        backup.tags = tags(&[("volume", &format!("v{index}"))]);
        // Each as in a process of its own: no keys are shared.
        running.spawn(async move { Rustic::new().backup(&repository, backup, unwatched()).await });
    }
    for made in running.join_all().await {
        made.unwrap();
    }
    let mover = Rustic::new();
    assert_eq!(mover.find(&repository, &tags(&[])).await.unwrap().len(), 4);
    assert_eq!(mover.verify(&repository, true).await.unwrap().faults, Vec::<String>::new());
    assert_eq!(list(&folder.path().join("repository/keys")).len(), 1);
}

#[tokio::test]
async fn a_source_that_changes_under_the_hand_or_cannot_be_read_gives_no_snapshot() {
    // Root reads everything, so that the fault is a file that the kernel cannot read.
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let (mover, repository) = (Rustic::new(), repository(folder.path().join("repository")));
    let error =
        mover.backup(&repository, files(std::path::Path::new("/proc/self")), unwatched()).await.unwrap_err();
    assert!(matches!(&error, Error::Transient(text) if text.contains("/proc/self")), "{error:?}");
    assert_eq!(mover.find(&repository, &tags(&[])).await.unwrap(), []);
}
