//! The server with our own client: what one writes, the other reads, and the disk decides who was first.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use lifeboat_s3::{Content, Credentials};
use lifeboat_store::{Directory, Error, Objects, S3Store, Secret, Store};
use std::path::Path;
use std::sync::Arc;

/// Runs a server on a folder, with a client whose secret is given.
async fn client(folder: &Path, secret: &str) -> (Objects, impl Drop + use<>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let content: Arc<dyn Content> = Arc::new(Directory::new(folder));
    let credentials = Credentials { access_key: "boat".into(), secret_key: "oars".into() };
    let service = lifeboat_s3::service([("records".to_owned(), content)].into(), &credentials);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(lifeboat_s3::serve(listener, service));
    let store = S3Store {
        endpoint: format!("http://{address}"),
        bucket: "records".into(),
        access_key: Secret::new("boat"),
        secret_key: Secret::new(secret),
        ..S3Store::default()
    };
    (Objects::open(&Store::S3(store)).unwrap(), tasks)
}

#[tokio::test]
async fn what_is_put_is_read_listed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (objects, _server) = client(folder.path(), "oars").await;
    for key in ["app/b", "app/a", "other/c"] {
        objects.put(key, Bytes::from(format!("content of {key}"))).await.unwrap();
    }
    let keys: Vec<String> = objects.list("app/").await.unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, ["app/a", "app/b"]);
    assert_eq!(objects.get("app/a").await.unwrap(), "content of app/a");
    assert_eq!(objects.get_range("app/a", 11, 5).await.unwrap(), "app/a");
    objects.delete_many(&["app/a".into(), "app/b".into()]).await.unwrap();
    assert!(objects.list("app/").await.unwrap().is_empty());
    assert!(matches!(objects.get("app/a").await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_taken_key_is_refused_and_a_second_life_remembers() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (objects, _server) = client(folder.path(), "oars").await;
        objects.put_if_absent("epoch/1", Bytes::from_static(b"east")).await.unwrap();
    }
    let (objects, _server) = client(folder.path(), "oars").await;
    let second = objects.put_if_absent("epoch/1", Bytes::from_static(b"west")).await;
    assert!(matches!(second, Err(Error::Exists { .. })), "{second:?}");
    assert_eq!(objects.get("epoch/1").await.unwrap(), "east");
}

#[tokio::test]
async fn a_list_of_several_pages_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..1001 {
        std::fs::write(folder.path().join(format!("{number:04}")), b"x").unwrap();
    }
    let (objects, _server) = client(folder.path(), "oars").await;
    assert_eq!(objects.list("").await.unwrap().len(), 1001);
}

#[tokio::test]
async fn a_wrong_secret_reads_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), b"x").unwrap();
    let (objects, _server) = client(folder.path(), "guess").await;
    assert!(matches!(objects.get("x").await, Err(Error::Denied { .. })));
    assert!(matches!(objects.put("y", Bytes::new()).await, Err(Error::Denied { .. })));
    assert!(!folder.path().join("y").exists());
}
