//! The directory back end: the promises of every back end, and those of its own.

use crate::{suite, trees};
use lifeboat_lvm::{Access, AccessMode, Consistency, Directories, DirectoryClass, Error, Gate, Lvm, Volume};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const CLASS: &str = "ssd";

fn class(path: &Path) -> DirectoryClass {
    DirectoryClass { limit: Some(256 << 20), ..DirectoryClass::new(CLASS, path) }
}

fn open(path: &Path) -> Directories {
    Directories::new(vec![class(path)]).unwrap()
}

fn data(volume: &Volume) -> PathBuf {
    match &volume.access {
        Access::Directory(path) => path.clone(),
        Access::Device(path) => panic!("{} is no directory", path.display()),
    }
}

#[tokio::test]
async fn directories_keep_the_promises_of_every_back_end() {
    let folder = tempfile::tempdir().unwrap();
    let lvm = open(folder.path());
    suite::life_of_a_volume(&lvm, CLASS).await;
    suite::bad_requests(&lvm, CLASS).await;
    suite::snapshots(&lvm, CLASS).await;
    suite::exchanges(&lvm, CLASS).await;
}

#[tokio::test]
async fn the_default_class_is_the_one_without_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let named = open(&folder.path().join("named"));
    assert_eq!(named.volumes("").await, Err(Error::NoClass(String::new())));
    let default = Directories::new(vec![class(&folder.path().join("default")).default_class()]).unwrap();
    default.create(suite::volume("", "a", 1)).await.unwrap();
    assert_eq!(default.volumes(CLASS).await.unwrap().len(), 1);
    let twice = Directories::new(vec![class(folder.path()), class(folder.path())]);
    assert!(matches!(twice, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn a_copy_keeps_all_that_files_have() {
    let folder = tempfile::tempdir().unwrap();
    let lvm = open(folder.path());
    let source = data(&lvm.create(suite::volume(CLASS, "a", suite::SMALL)).await.unwrap());
    trees::plant(&source);
    let taken = lvm.snapshot(suite::copy(CLASS, "s", "a", AccessMode::ReadOnly)).await.unwrap();
    let copy = data(&taken.volume);
    assert_eq!(trees::describe(&copy), trees::describe(&source));
    let (hole, whole) = (trees::used(&copy.join("sparse")), trees::used(&source.join("sparse")));
    assert!(hole <= whole.max(1 << 20), "a sparse file stays sparse: {hole} bytes from {whole}");
    fs::write(source.join("plain"), "changed").unwrap();
    assert_eq!(fs::read(copy.join("plain")).unwrap(), b"some bytes");
}

#[tokio::test]
async fn a_copy_is_called_consistent_only_if_writers_were_held() {
    let folder = tempfile::tempdir().unwrap();
    let impatient = DirectoryClass { patience: Duration::from_millis(5), ..class(folder.path()) };
    let lvm = Directories::new(vec![impatient]).unwrap();
    let source = data(&lvm.create(suite::volume(CLASS, "a", suite::SMALL)).await.unwrap());
    let worth = async |name: &str, source: &str| {
        lvm.snapshot(suite::copy(CLASS, name, source, AccessMode::ReadOnly)).await.unwrap().consistency
    };
    assert_eq!(worth("undeclared", "a").await, Consistency::Fuzzy);
    assert_eq!(
        worth("of-fuzzy", "undeclared").await,
        Consistency::Fuzzy,
        "a copy is worth no more than its source"
    );

    let gate = Gate::of(&source);
    gate.declare().unwrap();
    assert_eq!(worth("held", "a").await, Consistency::Crash);
    assert_eq!(worth("of-held", "held").await, Consistency::Crash);
    let writing = gate.write().unwrap();
    assert_eq!(worth("stuck-writer", "a").await, Consistency::Fuzzy);
    drop(writing);
    gate.withdraw().unwrap();
    assert_eq!(worth("withdrawn", "a").await, Consistency::Fuzzy);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_files_written_in_turn_are_never_torn_apart() {
    let folder = tempfile::tempdir().unwrap();
    let lvm = open(folder.path());
    let source = data(&lvm.create(suite::volume(CLASS, "a", suite::SMALL)).await.unwrap());
    Gate::of(&source).declare().unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (stop, source) = (stop.clone(), source.clone());
        move || {
            let gate = Gate::of(&source);
            let mut count = 0_u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let writing = gate.write().unwrap();
                count += 1;
                fs::write(source.join("first"), count.to_string()).unwrap();
                fs::write(source.join("second"), count.to_string()).unwrap();
                drop(writing);
            }
            count
        }
    });
    for round in 0..20 {
        let name = format!("s{round}");
        let taken = lvm.snapshot(suite::copy(CLASS, &name, "a", AccessMode::ReadOnly)).await.unwrap();
        assert_eq!(taken.consistency, Consistency::Crash);
        let copy = data(&taken.volume);
        let read = |file: &str| fs::read_to_string(copy.join(file)).unwrap_or_default();
        assert_eq!(read("first"), read("second"));
        lvm.remove(CLASS, &name).await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0);
}

#[tokio::test]
async fn what_a_crash_left_is_cleared_and_volumes_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let lvm = open(folder.path());
    let made = lvm.create(suite::volume(CLASS, "a", suite::SMALL)).await.unwrap();
    fs::write(data(&made).join("file"), "bytes").unwrap();
    let taken = lvm.snapshot(suite::copy(CLASS, "s", "a", AccessMode::ReadOnly)).await.unwrap().volume;
    let second = open(folder.path());
    let refused = second.volumes(CLASS).await;
    assert!(matches!(&refused, Err(Error::Transient(why)) if why.contains("another process")), "{refused:?}");
    drop(lvm);

    for leftover in ["staging/77/data/half", "trash/78/data/half"] {
        let path = folder.path().join(leftover);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "half").unwrap();
    }
    assert_eq!(second.volumes(CLASS).await.unwrap(), [made, taken]);
    for cleared in ["staging", "trash"] {
        assert_eq!(fs::read_dir(folder.path().join(cleared)).unwrap().count(), 0, "{cleared}");
    }
}

#[tokio::test]
async fn a_volume_that_cannot_be_read_stays_one_bad_volume() {
    let folder = tempfile::tempdir().unwrap();
    let lvm = open(folder.path());
    lvm.create(suite::volume(CLASS, "bad", suite::SMALL)).await.unwrap();
    let good = lvm.create(suite::volume(CLASS, "good", suite::SMALL)).await.unwrap();
    drop(lvm);
    fs::write(folder.path().join("volumes/bad/meta.json"), "{").unwrap();
    let lvm = open(folder.path());
    let listed = lvm.volumes(CLASS).await.unwrap();
    assert_eq!(listed.iter().map(|volume| volume.name.as_str()).collect::<Vec<_>>(), ["bad", "good"]);
    assert_eq!(listed[1], good);
    assert!(matches!(lvm.resize(CLASS, "bad", 1).await, Err(Error::Invalid(_))));
    lvm.remove(CLASS, "bad").await.unwrap();
    assert_eq!(lvm.volumes(CLASS).await.unwrap(), [good]);
}

#[tokio::test]
async fn a_class_that_cannot_be_served_fails_alone_and_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "in the way").unwrap();
    let other = DirectoryClass::new("other", &blocked);
    let lvm = Directories::new(vec![other, class(&folder.path().join("fine"))]).unwrap();
    assert!(matches!(lvm.volumes("other").await, Err(Error::Transient(_))));
    assert_eq!(lvm.volumes(CLASS).await.unwrap(), []);
    fs::remove_file(&blocked).unwrap();
    assert_eq!(lvm.volumes("other").await.unwrap(), []);
}

#[tokio::test]
async fn promises_are_kept_count_of() {
    let folder = tempfile::tempdir().unwrap();
    let one = DirectoryClass { limit: Some(100 << 20), spare: 20 << 20, ..class(folder.path()) };
    let lvm = Directories::new(vec![one]).unwrap();
    let free = async || lvm.capacity(CLASS).await.unwrap().free;
    assert_eq!(free().await, 80 << 20);
    lvm.create(suite::volume(CLASS, "a", 50 << 20)).await.unwrap();
    assert_eq!(free().await, 30 << 20);
    let refused = lvm.snapshot(suite::copy(CLASS, "s", "a", AccessMode::ReadOnly)).await;
    assert!(
        matches!(refused, Err(Error::NoRoom { wanted, free, .. }) if wanted == 50 << 20 && free == 30 << 20)
    );
    let refused = lvm.resize(CLASS, "a", 90 << 20).await;
    assert!(matches!(refused, Err(Error::NoRoom { wanted, .. }) if wanted == 40 << 20), "{refused:?}");
    assert_eq!(lvm.resize(CLASS, "a", (80 << 20) - 1).await.unwrap(), 80 << 20);
    assert_eq!(free().await, 0);
    lvm.remove(CLASS, "a").await.unwrap();
    assert_eq!(free().await, 80 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_at_the_same_moment_do_not_share_room() {
    let folder = tempfile::tempdir().unwrap();
    let one = DirectoryClass { limit: Some(100 << 20), ..class(folder.path()) };
    let lvm = std::sync::Arc::new(Directories::new(vec![one]).unwrap());
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let lvm = lvm.clone();
            tokio::spawn(
                async move { lvm.create(suite::volume(CLASS, &format!("v{number}"), 30 << 20)).await },
            )
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        made += usize::from(task.await.unwrap().is_ok());
    }
    assert_eq!(made, 3, "100 MiB hold three volumes of 30");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_caller_went_away_is_finished_and_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let lvm = open(folder.path());
    let source = data(&lvm.create(suite::volume(CLASS, "a", suite::SMALL)).await.unwrap());
    let gate = Gate::of(&source);
    gate.declare().unwrap();
    let writing = gate.write().unwrap();
    let began = lvm.snapshot(suite::copy(CLASS, "s", "a", AccessMode::ReadOnly));
    // The snapshot waits for the writer; its caller gives up.
    assert!(tokio::time::timeout(Duration::from_millis(50), began).await.is_err());
    drop(writing);
    let again = lvm.snapshot(suite::copy(CLASS, "s", "a", AccessMode::ReadOnly)).await;
    assert_eq!(again, Err(Error::Exists { class: CLASS.to_owned(), name: "s".to_owned() }));
}
