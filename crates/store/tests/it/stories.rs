//! What every store has to do, tried on each.

use bytes::Bytes;
use lifeboat_store::{Entry, Error, Objects, Store};

use crate::bucket::store;
use crate::server::Server;

async fn tell(objects: Objects) {
    let content = Bytes::from_static(b"content");
    assert_eq!(objects.list("").await.unwrap(), []);
    assert!(matches!(objects.get("a/b").await.unwrap_err(), Error::NotFound { .. }));
    assert_eq!(objects.size("a/b").await.unwrap(), None);
    objects.delete("a/b").await.unwrap();

    objects.put("a/b", content.clone()).await.unwrap();
    assert_eq!(objects.get("a/b").await.unwrap(), content);
    assert_eq!(objects.size("a/b").await.unwrap(), Some(7));
    assert_eq!(objects.get_within("a/b", 7).await.unwrap(), content);
    assert!(matches!(objects.get_within("a/b", 6).await.unwrap_err(), Error::TooLong { .. }));
    assert!(matches!(objects.get_within("a/c", 6).await.unwrap_err(), Error::NotFound { .. }));
    assert_eq!(objects.get_range("a/b", 3, 4).await.unwrap(), "tent");
    assert_eq!(objects.get_range("a/b", 0, 0).await.unwrap(), "");
    assert!(matches!(objects.get_range("a/b", 3, 5).await.unwrap_err(), Error::TooShort { .. }));
    assert!(matches!(objects.get_range("a/b", 9, 1).await.unwrap_err(), Error::TooShort { .. }));
    objects.put("a/b", Bytes::from_static(b"over")).await.unwrap();
    assert_eq!(objects.get("a/b").await.unwrap(), "over");

    assert!(matches!(objects.put_if_absent("a/b", content.clone()).await.unwrap_err(), Error::Exists { .. }));
    assert_eq!(objects.get("a/b").await.unwrap(), "over");
    objects.put_if_absent("a/c d", content.clone()).await.unwrap();
    objects.put("ab", Bytes::new()).await.unwrap();
    objects.put("b/deep/er", content.clone()).await.unwrap();
    assert_eq!(objects.get("ab").await.unwrap(), "");

    let entry = |key: &str, size| Entry { key: key.to_owned(), size };
    let all = [entry("a/b", 4), entry("a/c d", 7), entry("ab", 0), entry("b/deep/er", 7)];
    assert_eq!(objects.list("").await.unwrap(), all);
    assert_eq!(objects.list("a/").await.unwrap(), all[..2]);
    assert_eq!(objects.list("a").await.unwrap(), all[..3]);
    assert_eq!(objects.list("b/de").await.unwrap(), all[3..]);
    assert_eq!(objects.list("c/").await.unwrap(), []);

    for key in ["", "/a", "a/../b", "a//b", "..", "a/"] {
        assert!(matches!(objects.put(key, content.clone()).await.unwrap_err(), Error::Invalid(_)), "{key:?}");
        assert!(matches!(objects.get(key).await.unwrap_err(), Error::Invalid(_)), "{key:?}");
    }
    objects.delete_many(&["a/b".to_owned(), "a/c d".to_owned(), "gone".to_owned()]).await.unwrap();
    assert_eq!(objects.list("").await.unwrap(), all[2..]);
    objects.delete_many(&[]).await.unwrap();
}

#[tokio::test]
async fn a_directory_keeps_objects() {
    let folder = tempfile::tempdir().unwrap();
    tell(Objects::open(&Store::Local(folder.path().join("not/yet"))).unwrap()).await;
}

#[tokio::test]
async fn a_bucket_keeps_objects() {
    let server = Server::start().await;
    tell(Objects::open(&Store::S3(store(&server, ""))).unwrap()).await;
}

#[tokio::test]
async fn a_bucket_with_a_prefix_and_small_pages_keeps_objects() {
    let server = Server::start().await;
    let other = Objects::open(&Store::S3(store(&server, "pre"))).unwrap();
    server.state.lock().unwrap().page = 1;
    tell(Objects::open(&Store::S3(store(&server, "pre/fix"))).unwrap()).await;
    other.put("unrelated", Bytes::new()).await.unwrap();
    assert!(server.keys().iter().all(|key| key.starts_with("pre/")), "{:?}", server.keys());
}

#[tokio::test]
async fn of_many_that_write_a_free_key_at_once_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    for place in [Store::Local(folder.path().to_owned()), Store::S3(store(&server, ""))] {
        let objects = Objects::open(&place).unwrap();
        let mut writers = tokio::task::JoinSet::new();
        for index in 0..20 {
            let objects = objects.clone();
            writers.spawn(async move {
                objects.put_if_absent("one", Bytes::from(format!("{index}"))).await.map(|()| index)
            });
        }
        let outcomes = writers.join_all().await;
        let winners: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        let [winner] = winners[..] else { panic!("{outcomes:?}") };
        assert_eq!(objects.get("one").await.unwrap(), winner.to_string());
        assert!(
            outcomes
                .iter()
                .flat_map(|outcome| outcome.as_ref().err())
                .all(|error| matches!(error, Error::Exists { .. }))
        );
    }
}
