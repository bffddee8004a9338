//! The S3 protocol with a server that does not always do as it should.

use std::time::{Duration, Instant};

use bytes::Bytes;
use lifeboat_store::{Bucket, Error, Patience, S3Store, Secret, Throttle};

use crate::server::{ACCESS, BUCKET, Fault, SECRET, Server};

/// Tries fast, so that faults are over soon.
fn hasty() -> Patience {
    Patience {
        attempts: 3,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(2),
        connect: Duration::from_secs(2),
        silence: Duration::from_millis(200),
    }
}

pub(crate) fn store(server: &Server, prefix: &str) -> S3Store {
    S3Store {
        endpoint: format!("http://{}", server.address),
        bucket: BUCKET.into(),
        prefix: prefix.into(),
        access_key: Secret::new(ACCESS),
        secret_key: Secret::new(SECRET),
        ..S3Store::default()
    }
}

async fn hurt(method: &'static str, fault: Fault, times: usize) -> (Server, Bucket) {
    let server = Server::start().await;
    let bucket = Bucket::open(&store(&server, ""), hasty()).unwrap();
    bucket.put("there", &[Bytes::from_static(b"content")]).await.unwrap();
    server.plan(method, "/", fault, times);
    (server, bucket)
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let faults = [
        Fault::Status(500, "InternalError"),
        Fault::Status(503, "SlowDown"),
        Fault::Status(429, ""),
        Fault::Cut,
        Fault::LoseAnswer,
        Fault::Silence,
    ];
    for fault in faults {
        let (_server, bucket) = hurt("GET", fault.clone(), 2).await;
        assert_eq!(bucket.get("there").await.unwrap(), "content", "{fault:?}");
        let (server, bucket) = hurt("PUT", fault.clone(), 2).await;
        bucket.put("new", &[Bytes::from_static(b"a"), Bytes::from_static(b"b")]).await.unwrap();
        assert_eq!(server.state.lock().unwrap().objects["new"], "ab", "{fault:?}");
        // The one who wrote first is us, even if the first answer was lost.
        let (_server, bucket) = hurt("PUT", fault.clone(), 2).await;
        bucket.put_if_absent("new", &[Bytes::from_static(b"mine")]).await.unwrap();
        let (_server, bucket) = hurt("GET", fault.clone(), 2).await;
        assert_eq!(bucket.list("").await.unwrap().len(), 1, "{fault:?}");
        let (server, bucket) = hurt("DELETE", fault.clone(), 2).await;
        bucket.delete("there").await.unwrap();
        assert!(server.keys().is_empty(), "{fault:?}");
        let (server, bucket) = hurt("POST", fault.clone(), 2).await;
        bucket.delete_many(&["there".to_owned()]).await.unwrap();
        assert!(server.keys().is_empty(), "{fault:?}");
    }
}

#[tokio::test]
async fn what_stays_is_told_apart_and_tells_no_secret() {
    let check = async |fault: Fault, tries: usize, expected: fn(&Error) -> bool| {
        let (server, bucket) = hurt("GET", fault.clone(), 100).await;
        let before = server.state.lock().unwrap().requests;
        let error = bucket.get("there").await.unwrap_err();
        let made = server.state.lock().unwrap().requests - before;
        assert!(expected(&error), "{fault:?}: {error:?}");
        assert_eq!(made, tries, "{fault:?}");
        for text in [error.to_string(), format!("{error:?}"), format!("{bucket:?}")] {
            assert!(!text.contains("canary"), "{text}");
            assert!(!text.contains("X-Amz"), "{text}");
        }
    };
    check(Fault::Status(403, "AccessDenied"), 1, |error| matches!(error, Error::Denied { .. })).await;
    check(Fault::Status(404, "NoSuchBucket"), 1, |error| matches!(error, Error::NoStore { .. })).await;
    check(Fault::Status(404, "NoSuchKey"), 1, |error| matches!(error, Error::NotFound { .. })).await;
    check(Fault::Status(503, "SlowDown"), 3, |error| matches!(error, Error::Slow { .. })).await;
    check(Fault::Status(500, "InternalError"), 3, |error| matches!(error, Error::Unreachable { .. })).await;
    check(Fault::Status(301, "PermanentRedirect"), 1, |error| matches!(error, Error::Invalid(_))).await;
    check(Fault::Status(507, ""), 1, |error| matches!(error, Error::Full { .. })).await;
    check(Fault::Cut, 3, |error| matches!(error, Error::Unreachable { .. })).await;
    check(Fault::Silence, 3, |error| matches!(error, Error::Slow { .. })).await;
}

#[tokio::test]
async fn credentials_and_buckets_that_are_wrong_are_refused_by_the_real_check() {
    let server = Server::start().await;
    let open = |store: S3Store| Bucket::open(&store, hasty()).unwrap();
    let wrong = S3Store { secret_key: Secret::new("other-canary"), ..store(&server, "") };
    let error = open(wrong).get("x").await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("canary"));
    let unknown = S3Store { access_key: Secret::new("other-canary"), ..store(&server, "") };
    assert!(matches!(open(unknown).list("").await.unwrap_err(), Error::Denied { .. }));
    let elsewhere = S3Store { bucket: "other".into(), ..store(&server, "") };
    assert!(matches!(open(elsewhere).list("").await.unwrap_err(), Error::NoStore { .. }));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    // A port that was free a moment ago.
    let server = Server::start().await;
    let gone = store(&server, "");
    drop(server);
    let error = Bucket::open(&gone, hasty()).unwrap().get("x").await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn descriptions_that_make_no_sense_are_refused_at_once() {
    let server = Server::start().await;
    let good = store(&server, "");
    let check = |bad: S3Store| {
        let error = Bucket::open(&bad, hasty()).unwrap_err();
        assert!(matches!(&error, Error::Invalid(text) if !text.contains("canary")), "{error:?}");
    };
    check(S3Store { endpoint: "no address".into(), ..good.clone() });
    check(S3Store { endpoint: "ftp://host".into(), ..good.clone() });
    check(S3Store { bucket: String::new(), ..good.clone() });
    check(S3Store { secret_key: Secret::default(), ..good.clone() });
    check(S3Store { prefix: "a/../b".into(), ..good.clone() });
    check(S3Store { ca_bundle: Some("no certificate".into()), ..good });
}

#[tokio::test]
async fn a_bound_on_bytes_a_second_holds_for_both_ways() {
    let server = Server::start().await;
    let bucket = Bucket::open(&store(&server, ""), Patience::default()).unwrap();
    let content = Bytes::from(vec![7; 300_000]);
    let slow = bucket.limited(Throttle::new(500_000).map(std::sync::Arc::new));
    let start = Instant::now();
    slow.put("x", std::slice::from_ref(&content)).await.unwrap();
    assert_eq!(slow.get("x").await.unwrap(), content);
    // 600,000 bytes at 500,000 a second, less the burst at the start.
    assert!(start.elapsed() > Duration::from_millis(1000), "{:?}", start.elapsed());
}
