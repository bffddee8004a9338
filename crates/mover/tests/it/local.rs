//! Stories on a repository in a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lifeboat_mover::{
    Backup, Content, Error, Limits, Mover, Progress, Repository, Restore, Rustic, Secret, Store,
};
use rustix::fs::{Mode, OFlags};
use tokio::sync::watch;

use crate::corpus;

pub(crate) fn repository(path: impl Into<PathBuf>) -> Repository {
    Repository { store: Store::Local(path.into()), password: Secret::new("p4ssw0rd-canary") }
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn files(path: &Path) -> Backup {
    Backup {
        content: Content::Files(path.to_owned()),
        path: "/shop/data".into(),
        host: "node-1".into(),
        tags: tags(&[("volume", "v1"), ("namespace", "shop")]),
        limits: Limits::default(),
    }
}

pub(crate) fn into(snapshot: &str, path: &Path) -> Restore {
    Restore {
        snapshot: snapshot.to_owned(),
        content: Content::Files(path.to_owned()),
        special_files: true,
        limits: Limits::default(),
    }
}

pub(crate) fn unwatched() -> watch::Sender<Progress> {
    watch::Sender::new(Progress::default())
}

#[tokio::test]
async fn what_was_backed_up_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    corpus::make(&source);
    fs::create_dir(&target).unwrap();
    let (mover, repository) = (Rustic::new(), repository(folder.path().join("repository")));
    let progress = unwatched();
    let heard = progress.subscribe();
    let made = mover.backup(&repository, files(&source), progress).await.unwrap();
    let seen = *heard.borrow();
    assert_eq!((seen.bytes_done, seen.files_done), (seen.bytes_total, seen.files_total));
    assert!(seen.files_done > 20 && seen.bytes_done > 30_000_000, "{seen:?}");
    assert!(made.bytes_added > 5_000_000 && made.bytes_added < 12_000_000, "{made:?}");
    assert_eq!(made.snapshot.tags, tags(&[("volume", "v1"), ("namespace", "shop")]));
    assert_eq!(made.snapshot.path, "/shop/data");
    assert!(!made.snapshot.device);

    let progress = unwatched();
    let heard = progress.subscribe();
    let restored = mover.restore(&repository, into(&made.snapshot.id, &target), progress).await.unwrap();
    corpus::assert_same(&source, &target);
    assert_eq!(restored.left_out, 0);
    assert_eq!((restored.bytes, restored.files), (made.snapshot.bytes, made.snapshot.files));
    assert_eq!(heard.borrow().bytes_done, restored.bytes);
    for sparse in ["sparse", "all-hole"] {
        assert!(corpus::allocated(&target.join(sparse)) < 1 << 20, "{sparse} has no holes");
    }

    // Again over what is there already, and over what was half done.
    fs::write(target.join("large"), "half").unwrap();
    fs::remove_file(target.join("small")).unwrap();
    mover.restore(&repository, into(&made.snapshot.id, &target), unwatched()).await.unwrap();
    corpus::assert_same(&source, &target);
}

/// Goes down so many directories of long names and gives the lowest.
fn lowest(root: &Path, depth: usize, make: bool) -> std::os::fd::OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut folder = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        let name = "n".repeat(200);
        if make {
            rustix::fs::mkdirat(&folder, &name, Mode::from(0o700)).unwrap();
        }
        folder = rustix::fs::openat(&folder, &name, flags, Mode::empty()).unwrap();
    }
    folder
}

#[tokio::test]
async fn no_path_is_taken_that_could_not_be_given_back() {
    for (depth, taken) in [(19, true), (20, false), (30, false)] {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        fs::create_dir(&source).unwrap();
        fs::create_dir(&target).unwrap();
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let lowest_there = lowest(&source, depth, true);
        let file = rustix::fs::openat(lowest_there, "file", flags, Mode::from(0o600)).unwrap();
        fs::File::from(file).write_all(b"deep down").unwrap();
        let (mover, repository) = (Rustic::new(), repository(folder.path().join("repository")));
        let made = mover.backup(&repository, files(&source), unwatched()).await;
        if !taken {
            let error = made.unwrap_err().to_string();
            assert!(error.contains("File name too long"), "{depth}: {error}");
            continue;
        }
        let id = made.unwrap().snapshot.id;
        mover.restore(&repository, into(&id, &target), unwatched()).await.unwrap();
        let flags = OFlags::RDONLY;
        let file = rustix::fs::openat(lowest(&target, depth, false), "file", flags, Mode::empty()).unwrap();
        assert_eq!(std::io::read_to_string(fs::File::from(file)).unwrap(), "deep down");
    }
}

#[tokio::test]
async fn a_second_backup_stores_only_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    corpus::make(&source);
    let (mover, repository) = (Rustic::new(), repository(folder.path().join("repository")));
    let first = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    let second = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    assert!(second.bytes_added < 1000, "{second:?}");
    fs::write(source.join("empty-file"), corpus::noise(9, 50_000)).unwrap();
    let third = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    assert!((50_000..80_000).contains(&third.bytes_added), "{third:?}");
    let found = mover.find(&repository, &tags(&[("volume", "v1")])).await.unwrap();
    assert_eq!(
        found.iter().map(|snapshot| &snapshot.id).collect::<Vec<_>>(),
        [&first, &second, &third].map(|made| &made.snapshot.id),
    );
    assert_eq!(mover.find(&repository, &tags(&[("volume", "v2")])).await.unwrap(), []);
    assert_eq!(mover.find(&repository, &tags(&[("volume", "v1"), ("namespace", "x")])).await.unwrap(), []);
}

#[tokio::test]
async fn a_device_comes_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    let size = 12 << 20;
    let mut content = corpus::noise(5, size);
    content[1 << 20..6 << 20].fill(0);
    fs::write(&source, &content).unwrap();
    let (mover, repository) = (Rustic::new(), repository(folder.path().join("repository")));
    let device = |path: PathBuf, size: usize| Content::Device { path, size: size as u64 };
    let backup = Backup { content: device(source.clone(), size), ..files(&source) };
    let made = mover.backup(&repository, backup.clone(), unwatched()).await.unwrap();
    assert!(made.snapshot.device);
    assert_eq!((made.snapshot.bytes, made.snapshot.files), (size as u64, 1));

    // Into a new file, over other bytes, and into a larger one.
    let new = folder.path().join("new");
    let used = folder.path().join("used");
    fs::write(&used, vec![0xff; size]).unwrap();
    for (target, length) in [(new.clone(), size), (used, size), (folder.path().join("longer"), size + 4096)] {
        let restore = Restore { content: device(target.clone(), length), ..into(&made.snapshot.id, &target) };
        let restored = mover.restore(&repository, restore, unwatched()).await.unwrap();
        assert_eq!(restored.bytes, size as u64);
        let read = fs::read(&target).unwrap();
        assert_eq!(read.len(), length);
        assert!(read[..size] == content);
    }
    assert!(corpus::allocated(&new) < 8 << 20, "no holes");

    // Changed content with the same size and time is found: a device has no time.
    let mut changed = content.clone();
    changed[11 << 20] ^= 1;
    fs::write(&source, &changed).unwrap();
    let again = mover.backup(&repository, backup.clone(), unwatched()).await.unwrap();
    assert!((1..6 << 20).contains(&again.bytes_added), "{again:?}");

    let short = Restore { content: device(new.clone(), size - 1), ..into(&made.snapshot.id, &new) };
    let error = mover.restore(&repository, short, unwatched()).await.unwrap_err();
    assert!(matches!(error, Error::NoRoom(_)), "{error}");
    let missing = Backup { content: device(source.clone(), size + 1), ..backup };
    let error = mover.backup(&repository, missing, unwatched()).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid(text) if text.contains("shorter")), "{error}");
    let wrong = into(&made.snapshot.id, folder.path());
    assert!(matches!(mover.restore(&repository, wrong, unwatched()).await.unwrap_err(), Error::Invalid(_)));
}

#[tokio::test]
async fn requests_that_cannot_work_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "content").unwrap();
    let (mover, here) = (Rustic::new(), repository(folder.path().join("repository")));
    mover.probe(&here).await.unwrap();
    assert!(matches!(mover.find(&here, &tags(&[])).await.unwrap_err(), Error::NoRepository(_)));
    let made = mover.backup(&here, files(&source), unwatched()).await.unwrap();
    mover.probe(&here).await.unwrap();

    let wrong = Repository { password: Secret::new("another"), ..here.clone() };
    assert!(matches!(mover.probe(&wrong).await.unwrap_err(), Error::WrongPassword(_)));
    assert!(matches!(
        mover.backup(&wrong, files(&source), unwatched()).await.unwrap_err(),
        Error::WrongPassword(_)
    ));
    let error = mover.restore(&here, into(&"0".repeat(64), &source), unwatched()).await.unwrap_err();
    assert_eq!(error, Error::NoSnapshot("0".repeat(64)));
    // A prefix of an id may mean another snapshot tomorrow.
    let error = mover.restore(&here, into(&made.snapshot.id[..8], &source), unwatched()).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let error = mover.backup(&here, files(Path::new("/no/such/place")), unwatched()).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let empty = Repository { password: Secret::new(""), store: Store::Local(folder.path().join("other")) };
    assert!(matches!(
        mover.backup(&empty, files(&source), unwatched()).await.unwrap_err(),
        Error::Invalid(_)
    ));
}

#[tokio::test]
async fn what_was_forgotten_is_gone_and_the_rest_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("stays"), corpus::noise(1, 3_000_000)).unwrap();
    fs::write(source.join("goes"), corpus::noise(2, 3_000_000)).unwrap();
    let (mover, repository) = (Rustic::new(), repository(folder.path().join("repository")));
    let first = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    fs::remove_file(source.join("goes")).unwrap();
    let second = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    let ids = BTreeSet::from([first.snapshot.id.clone()]);
    mover.forget(&repository, &ids).await.unwrap();
    mover.forget(&repository, &ids).await.unwrap();
    // Another process goes on with what this one left.
    Rustic::new().prune(&repository).await.unwrap();
    mover.prune(&repository).await.unwrap();
    let found = mover.find(&repository, &tags(&[])).await.unwrap();
    assert_eq!(found.iter().map(|snapshot| &snapshot.id).collect::<Vec<_>>(), [&second.snapshot.id]);
    let verified = mover.verify(&repository, true).await.unwrap();
    assert_eq!((verified.snapshots, verified.faults.as_slice()), (1, &[][..]));
    assert!(verified.bytes_read > 3_000_000, "{verified:?}");
    let target = folder.path().join("target");
    fs::create_dir(&target).unwrap();
    mover.restore(&repository, into(&second.snapshot.id, &target), unwatched()).await.unwrap();
    corpus::assert_same(&source, &target);
    assert!(matches!(
        mover.restore(&repository, into(&first.snapshot.id, &target), unwatched()).await.unwrap_err(),
        Error::NoSnapshot(_)
    ));
}
