//! lvmd over its socket: our client, TopoLVM's messages and codes, watching, health.

use crate::fake::{EXTENT, FakeLvm, Fault};
use crate::suite::{self, SMALL, volume};
use hyper_util::rt::TokioIo;
use lifeboat_lvm::wire::topolvm as pb;
use lifeboat_lvm::wire::topolvm::lv_service_client::LvServiceClient;
use lifeboat_lvm::wire::topolvm::vg_service_client::VgServiceClient;
use lifeboat_lvm::{ClassKind, Config, Error, Listening, Lvm, Remote, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// lvmd over an LVM in memory and a folder.
struct Served {
    folder: tempfile::TempDir,
    fake: FakeLvm,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Served {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fake = FakeLvm::new(200 * EXTENT, Some(50 * EXTENT));
        let mut served = Self { folder, fake, stop: None, task: None };
        served.up().await;
        served
    }

    async fn up(&mut self) {
        let text = format!(
            r#"
socket-name: {socket}
device-classes:
  - {{name: thick, volume-group: g, spare-gb: 0, default: true}}
  - {{name: thin, volume-group: g, type: thin, thin-pool: {{name: pool, overprovision-ratio: 2}}}}
  - {{name: gone, volume-group: missing}}
  - {{name: plain, type: dir, path: {plain}, limit-gb: 1}}
"#,
            socket = self.socket().display(),
            plain = self.folder.path().join("plain").display(),
        );
        let config = Config::read(&text).unwrap();
        let listening = Listening::on(&config.socket).await.unwrap();
        let storage = Arc::new(Storage::open(config, Arc::new(self.fake.clone())).unwrap());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        self.stop = Some(stop);
        self.task = Some(tokio::spawn(async move {
            listening.serve(storage, async { drop(stopped.await) }).await.unwrap();
        }));
    }

    async fn down(&mut self) {
        drop(self.stop.take());
        self.task.take().unwrap().await.unwrap();
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("run/lvmd.sock")
    }

    fn channel(&self) -> Channel {
        let socket = self.socket();
        Endpoint::from_static("http://x").connect_with_connector_lazy(tower::service_fn(
            move |_: tonic::transport::Uri| {
                let socket = socket.clone();
                async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
            },
        ))
    }

    fn remote(&self) -> Remote {
        Remote::new(&self.socket())
    }
}

#[tokio::test]
async fn a_remote_lvmd_keeps_the_promises_of_every_back_end() {
    let served = Served::start().await;
    let remote = served.remote();
    for class in ["thick", "thin", "plain"] {
        suite::life_of_a_volume(&remote, class).await;
        suite::bad_requests(&remote, class).await;
        suite::exchanges(&remote, class).await;
    }
    suite::snapshots(&remote, "thin").await;
    suite::snapshots(&remote, "plain").await;
    let classes = remote.classes().await.unwrap();
    let kinds: Vec<_> =
        classes.iter().map(|class| (class.name.as_str(), class.default, class.kind)).collect();
    let expected = [
        ("gone", false, ClassKind::Thick),
        ("plain", false, ClassKind::Directory),
        ("thick", true, ClassKind::Thick),
        ("thin", false, ClassKind::Thin),
    ];
    assert_eq!(kinds, expected);
    let plain = served.folder.path().join("plain").display().to_string();
    let storage: Vec<_> = classes.iter().map(|class| class.storage.as_str()).collect();
    assert_eq!(storage, ["missing", plain.as_str(), "g", "g/pool"]);
    remote.create(volume("", "a", SMALL)).await.unwrap();
    assert_eq!(remote.volumes("thick").await.unwrap().len(), 1, "the default class");
    let short = lifeboat_lvm::Snapshot {
        short_lived: Some(EXTENT),
        ..suite::copy("thick", "s", "a", lifeboat_lvm::AccessMode::ReadOnly)
    };
    assert_eq!(remote.snapshot(short).await.unwrap().consistency, lifeboat_lvm::Consistency::Crash);
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let mut served = Served::start().await;
    let remote = served.remote();
    remote.create(volume("thick", "a", SMALL)).await.unwrap();
    served.down().await;
    assert!(!served.socket().exists());
    assert!(matches!(remote.volumes("thick").await, Err(Error::Transient(_))));
    assert_eq!(remote.health().await.len(), 1);
    // What a killed process leaves behind.
    drop(std::os::unix::net::UnixListener::bind(served.socket()).unwrap());
    served.up().await;
    assert_eq!(remote.volumes("thick").await.unwrap().len(), 1);
    assert!(Listening::on(&served.socket()).await.is_err(), "a living one is not pushed aside");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(served.socket()).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn topolvms_requests_get_topolvms_codes() {
    let served = Served::start().await;
    let mut lv = LvServiceClient::new(served.channel());
    let mut vg = VgServiceClient::new(served.channel());
    let create = |class: &str, name: &str, size: i64| pb::CreateLvRequest {
        name: name.to_owned(),
        device_class: class.to_owned(),
        size_bytes: size,
        tags: vec!["testtag1".to_owned(), "testtag2".to_owned()],
        ..pb::CreateLvRequest::default()
    };
    let small = i64::try_from(SMALL).unwrap();
    let made = lv.create_lv(create("", "a", small)).await.unwrap().into_inner().volume.unwrap();
    assert_eq!((made.name.as_str(), made.size_bytes, made.dev_major), ("a", small, 253));
    assert_eq!(made.tags, ["testtag1", "testtag2"]);
    lv.create_lv(create("thin", "t", small)).await.unwrap();
    let code = |status: tonic::Status| status.code();
    assert_eq!(lv.create_lv(create("nowhere", "b", small)).await.map_err(code).unwrap_err(), Code::NotFound);
    assert_eq!(
        lv.create_lv(create("", "b", i64::MAX)).await.map_err(code).unwrap_err(),
        Code::ResourceExhausted
    );
    assert_eq!(lv.create_lv(create("", "b", -1)).await.map_err(code).unwrap_err(), Code::InvalidArgument);
    assert_eq!(lv.create_lv(create("", "a", small)).await.map_err(code).unwrap_err(), Code::AlreadyExists);

    let resize = |class: &str, name: &str, size: i64| pb::ResizeLvRequest {
        name: name.to_owned(),
        device_class: class.to_owned(),
        size_bytes: size,
    };
    assert_eq!(lv.resize_lv(resize("", "a", small / 2)).await.unwrap().into_inner().size_bytes, small);
    assert_eq!(lv.resize_lv(resize("", "a", 2 * small)).await.unwrap().into_inner().size_bytes, 2 * small);
    assert_eq!(lv.resize_lv(resize("", "no", small)).await.map_err(code).unwrap_err(), Code::NotFound);
    assert_eq!(
        lv.resize_lv(resize("", "a", i64::MAX)).await.map_err(code).unwrap_err(),
        Code::ResourceExhausted
    );

    let snapshot = |class: &str, source: &str, access: &str, size: i64| pb::CreateLvSnapshotRequest {
        name: "s".to_owned(),
        device_class: class.to_owned(),
        source_volume: source.to_owned(),
        access_type: access.to_owned(),
        size_bytes: size,
        ..pb::CreateLvSnapshotRequest::default()
    };
    let check = async |request, expected: Code| {
        let refused = LvServiceClient::new(served.channel()).create_lv_snapshot(request).await;
        assert_eq!(refused.map_err(code).unwrap_err(), expected);
    };
    check(snapshot("thick", "a", "ro", 2 * small), Code::Unimplemented).await;
    check(snapshot("thin", "no", "ro", small), Code::NotFound).await;
    check(snapshot("thin", "t", "ro", small / 2), Code::OutOfRange).await;
    check(snapshot("thin", "t", "maybe", small), Code::InvalidArgument).await;
    check(snapshot("thin", "t", "ro", i64::MAX / 2), Code::ResourceExhausted).await;
    let taken = lv.create_lv_snapshot(snapshot("thin", "t", "rw", 2 * small)).await.unwrap().into_inner();
    assert_eq!(taken.snapshot.unwrap().size_bytes, 2 * small);

    let list = pb::GetLvListRequest { device_class: "thin".to_owned() };
    let names: Vec<_> =
        vg.get_lv_list(list).await.unwrap().into_inner().volumes.into_iter().map(|lv| lv.name).collect();
    assert_eq!(names, ["s", "t"]);
    let free = vg.get_free_bytes(pb::GetFreeBytesRequest::default()).await.unwrap().into_inner().free_bytes;
    assert_eq!(free, 150 * EXTENT - 2 * SMALL);

    let remove = |class: &str, name: &str| pb::RemoveLvRequest {
        name: name.to_owned(),
        device_class: class.to_owned(),
    };
    lv.remove_lv(remove("", "a")).await.unwrap();
    assert_eq!(lv.remove_lv(remove("", "a")).await.map_err(code).unwrap_err(), Code::NotFound);
    // NotFound would make TopoLVM's controller forget a volume that is still there.
    assert_eq!(
        lv.remove_lv(remove("nowhere", "a")).await.map_err(code).unwrap_err(),
        Code::FailedPrecondition
    );
    assert_eq!(lv.remove_lv(remove("gone", "a")).await.map_err(code).unwrap_err(), Code::Internal);
}

#[tokio::test]
async fn watchers_are_told_at_first_and_at_every_change() {
    let served = Served::start().await;
    let mut vg = VgServiceClient::new(served.channel());
    let mut stream = vg.watch(pb::Empty {}).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap();
    let classes: Vec<_> = first.items.iter().map(|item| item.device_class.as_str()).collect();
    assert_eq!(classes, ["plain", "thick", "thin"], "a class that is gone does not hide the others");
    assert_eq!(first.free_bytes, 150 * EXTENT);
    assert_eq!(first.items[2].thin_pool.unwrap().size_bytes, 50 * EXTENT);
    let remote = served.remote();
    for (class, name) in [("thick", "a"), ("plain", "b")] {
        remote.create(volume(class, name, SMALL)).await.unwrap();
        let now = loop {
            let told = stream.message().await.unwrap().unwrap();
            let item = told.items.into_iter().find(|item| item.device_class == class).unwrap();
            if item.free_bytes
                < first.items.iter().find(|item| item.device_class == class).unwrap().free_bytes
            {
                break item;
            }
        };
        assert_eq!(now.device_class, class);
    }
}

async fn healthy(served: &Served, service: &str) -> Result<ServingStatus, Code> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let answer = HealthClient::new(served.channel()).check(request).await.map_err(|status| status.code())?;
    Ok(answer.into_inner().status())
}

#[tokio::test]
async fn health_is_looked_at_and_told_for_each_class() {
    let served = Served::start().await;
    assert_eq!(healthy(&served, "").await, Ok(ServingStatus::NotServing), "one group is missing");
    assert_eq!(healthy(&served, "process").await, Ok(ServingStatus::Serving));
    assert_eq!(healthy(&served, "class/gone").await, Ok(ServingStatus::NotServing));
    for class in ["class/thick", "class/thin", "class/plain"] {
        assert_eq!(healthy(&served, class).await, Ok(ServingStatus::Serving), "{class}");
    }
    assert_eq!(healthy(&served, "class/nowhere").await, Err(Code::NotFound));
    assert_eq!(healthy(&served, "nonsense").await, Err(Code::NotFound));
    served.fake.state.lock().pool = None;
    served.remote().create(volume("thick", "a", SMALL)).await.unwrap();
    assert_eq!(healthy(&served, "class/thin").await, Ok(ServingStatus::NotServing));
    assert_eq!(healthy(&served, "class/thick").await, Ok(ServingStatus::Serving));
    let told = served.remote().health().await;
    assert!(
        told.iter().any(|trouble| trouble.class == "thin" && trouble.message.contains("no thin pool")),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_change_goes_on_when_the_connection_breaks() {
    let served = Served::start().await;
    served.fake.fault("lvcreate", Fault::Waits);
    let began = served.remote();
    let request = began.create(volume("thick", "a", SMALL));
    tokio::select! {
        _ = request => panic!("it waits"),
        () = async { while served.fake.count("lvcreate") == 0 { tokio::task::yield_now().await } } => {}
    }
    drop(began);
    served.fake.go();
    let remote = served.remote();
    let again = remote.create(volume("thick", "a", SMALL)).await;
    assert_eq!(again, Err(Error::Exists { class: "thick".to_owned(), name: "a".to_owned() }));
}

#[test]
fn a_socket_that_cannot_be_made_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(Listening::on(Path::new("/proc/no/lvmd.sock"))).err().unwrap();
    assert!(error.to_string().contains("/proc/no/lvmd.sock"), "{error}");
}
