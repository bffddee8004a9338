//! Stories on a repository behind the S3 protocol.

use std::fs;
use std::time::Duration;

use lifeboat_mover::{Error, Mover, Patience, Repository, Rustic, S3Store, Secret, Store};

use crate::corpus;
use crate::local::{files, into, tags, unwatched};
use crate::server::{ACCESS, BUCKET, Fault, SECRET, Server};

pub(crate) fn hasty() -> Rustic {
    Rustic::patient(Patience {
        attempts: 3,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(2),
        connect: Duration::from_secs(2),
        silence: Duration::from_secs(2),
    })
}

pub(crate) fn repository(server: &Server) -> Repository {
    let store = S3Store {
        endpoint: format!("http://{}", server.address),
        bucket: BUCKET.into(),
        prefix: "volumes".into(),
        access_key: Secret::new(ACCESS),
        secret_key: Secret::new(SECRET),
        ..S3Store::default()
    };
    Repository { store: Store::S3(store), password: Secret::new("p4ssw0rd-canary") }
}

#[tokio::test]
async fn a_bucket_holds_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    corpus::make(&source);
    fs::create_dir(&target).unwrap();
    let server = Server::start().await;
    // Lists come in many pages.
    server.state.lock().unwrap().page = 2;
    let (mover, repository) = (hasty(), repository(&server));
    mover.probe(&repository).await.unwrap();
    let first = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    let second = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
    assert!(second.bytes_added < 1000, "{second:?}");
    // Another process, with nothing but the description.
    let other = hasty();
    other.probe(&repository).await.unwrap();
    let found = other.find(&repository, &tags(&[("volume", "v1")])).await.unwrap();
    assert_eq!(found.len(), 2);
    other.restore(&repository, into(&first.snapshot.id, &target), unwatched()).await.unwrap();
    corpus::assert_same(&source, &target);
    other.forget(&repository, &[first.snapshot.id.clone()].into()).await.unwrap();
    other.prune(&repository).await.unwrap();
    let verified = other.verify(&repository, true).await.unwrap();
    assert_eq!((verified.snapshots, verified.faults.as_slice()), (1, &[][..]));
    let keys = server.keys();
    assert!(keys.iter().all(|key| key.starts_with("volumes/")), "{keys:?}");
    assert!(!keys.iter().any(|key| key.contains("locks/") || key.contains("probe")), "left behind: {keys:?}");
}

#[tokio::test]
async fn a_backup_outlives_faults_that_pass() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    corpus::make(&source);
    for fault in [Fault::Status(503, "SlowDown"), Fault::Cut, Fault::LoseAnswer] {
        let server = Server::start().await;
        let (mover, repository) = (hasty(), repository(&server));
        for path in ["config", "keys", "data", "index", "snapshots", "locks"] {
            server.plan("PUT", path, fault.clone(), 2);
            server.plan("GET", path, fault.clone(), 1);
        }
        let made = mover.backup(&repository, files(&source), unwatched()).await.unwrap();
        let target = tempfile::tempdir().unwrap();
        server.state.lock().unwrap().plans.clear();
        server.plan("GET", "data", fault.clone(), 2);
        mover.restore(&repository, into(&made.snapshot.id, target.path()), unwatched()).await.unwrap();
        corpus::assert_same(&source, target.path());
    }
}

#[tokio::test]
async fn faults_that_stay_leave_no_snapshot_and_tell_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    corpus::make(&source);
    let check = async |path: &'static str, fault: Fault, expected: fn(&Error) -> bool| {
        let server = Server::start().await;
        let (mover, repository) = (hasty(), repository(&server));
        server.plan("PUT", path, fault.clone(), 1000);
        let error = mover.backup(&repository, files(&source), unwatched()).await.unwrap_err();
        assert!(expected(&error), "{path} {fault:?}: {error:?}");
        assert!(!server.keys().iter().any(|key| key.contains("/snapshots/")), "{path} {fault:?}");
        for text in [error.to_string(), format!("{error:?}"), format!("{repository:?}")] {
            assert!(!text.contains("canary"), "{text}");
        }
        // When it is over, everything works.
        server.state.lock().unwrap().plans.clear();
        mover.backup(&repository, files(&source), unwatched()).await.unwrap();
        let verified = mover.verify(&repository, true).await.unwrap();
        assert_eq!(verified.faults, Vec::<String>::new(), "{path} {fault:?}");
    };
    let denied = |error: &Error| matches!(error, Error::Denied(_));
    let transient = |error: &Error| matches!(error, Error::Transient(_));
    for path in ["config", "keys", "data", "index", "snapshots", "locks"] {
        check(path, Fault::Status(403, "AccessDenied"), denied).await;
        check(path, Fault::Cut, transient).await;
    }
    check("data", Fault::Status(507, ""), |error| matches!(error, Error::NoRoom(_))).await;
    // A store that takes and forgets is found out before a snapshot relies on it.
    check("data", Fault::LoseWrite, transient).await;
    check("index", Fault::LoseWrite, transient).await;
}

#[tokio::test]
async fn stores_that_cannot_be_used_are_told_apart_by_the_probe() {
    let server = Server::start().await;
    let good = repository(&server);
    let Store::S3(s3) = &good.store else { unreachable!() };
    let check = async |store: S3Store, expected: fn(&Error) -> bool| {
        let repository = Repository { store: Store::S3(store), ..good.clone() };
        let error = hasty().probe(&repository).await.unwrap_err();
        assert!(expected(&error), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("canary"), "{error:?}");
    };
    let wrong = Secret::new("another-canary");
    check(S3Store { secret_key: wrong.clone(), ..s3.clone() }, |error| matches!(error, Error::Denied(_)))
        .await;
    check(S3Store { access_key: wrong, ..s3.clone() }, |error| matches!(error, Error::Denied(_))).await;
    check(S3Store { bucket: "other".into(), ..s3.clone() }, |error| matches!(error, Error::Invalid(_))).await;
    check(S3Store { endpoint: "nonsense".into(), ..s3.clone() }, |error| matches!(error, Error::Invalid(_)))
        .await;
    server.plan("PUT", "probe", Fault::LoseWrite, 1);
    check(s3.clone(), |error| matches!(error, Error::Transient(_))).await;
    let gone = Server::start().await.address;
    let nobody = S3Store { endpoint: format!("http://{gone}"), ..s3.clone() };
    check(nobody, |error| matches!(error, Error::Transient(_))).await;
    hasty().probe(&good).await.unwrap();
}
