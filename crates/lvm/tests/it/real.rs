//! Real LVM2, in a machine of its own: the promises of every back end, over lvmd's socket as over the trait.

use crate::suite::{self, SMALL, copy, find, volume};
use lifeboat_lvm::{
    Access, AccessMode, Config, Consistency, Error, Listening, Lvm, Program, Remote, Snapshot, Storage,
    TroubleKind,
};
use lifeboat_vm::in_machine;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Runs a program that has to succeed.
pub fn run(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{argv:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

const CONFIG: &str = r#"
lvm-command-prefix: [lvm]
lvm-config: activation/udev_sync=0 activation/udev_rules=0
device-classes:
  - {name: thick, volume-group: g, spare-gb: 1, default: true}
  - name: thin
    volume-group: g
    type: thin
    thin-pool: {name: pool, overprovision-ratio: 4, guard: {extend-percent: 50}}
  - {name: gone, volume-group: missing}
lvcreate-option-classes:
  - {name: striped, options: [-i, "2"]}
"#;

/// A group of two disks with a thin pool.
pub fn make_group() {
    run(&["vgcreate", "g", "/dev/vda", "/dev/vdb"]);
    run(&["lvcreate", "-y", "-T", "-L", "256m", "--poolmetadatasize", "4m", "g/pool"]);
}

pub fn open() -> Arc<Storage> {
    Arc::new(Storage::open(Config::read(CONFIG).unwrap(), Arc::new(Program::direct())).unwrap())
}

fn device(volume: &lifeboat_lvm::Volume) -> &Path {
    let Access::Device(path) = &volume.access else { panic!("no device") };
    path
}

fn write(path: &Path, at: u64, text: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(text).unwrap();
    file.sync_all().unwrap();
}

fn read(path: &Path, at: u64, length: usize) -> Vec<u8> {
    let mut file = std::fs::File::open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut text = vec![0; length];
    file.read_exact(&mut text).unwrap();
    text
}

#[tokio::test]
async fn real_lvm_keeps_the_promises_of_every_back_end() {
    in_machine!();
    make_group();
    let storage = open();
    for class in ["thick", "thin"] {
        suite::life_of_a_volume(&*storage, class).await;
        suite::bad_requests(&*storage, class).await;
        suite::exchanges(&*storage, class).await;
    }
    suite::snapshots(&*storage, "thin").await;
}

#[tokio::test]
async fn lvmd_serves_real_lvm() {
    in_machine!();
    make_group();
    let socket = Path::new("/tmp/lvmd/lvmd.sock");
    let listening = Listening::on(socket).await.unwrap();
    tokio::spawn(listening.serve(open(), std::future::pending()));
    let remote = Remote::new(socket);
    for class in ["thick", "thin"] {
        suite::life_of_a_volume(&remote, class).await;
        suite::bad_requests(&remote, class).await;
        suite::exchanges(&remote, class).await;
    }
    suite::snapshots(&remote, "thin").await;
    let refused = remote.volumes("gone").await;
    assert!(matches!(refused, Err(Error::Transient(_))), "{refused:?}");
    let troubles = remote.health().await;
    assert_eq!(
        troubles.iter().map(|trouble| (trouble.class.as_str(), trouble.kind)).collect::<Vec<_>>(),
        [("gone", TroubleKind::Unusable)]
    );
}

#[tokio::test]
async fn snapshots_show_one_moment_thin_and_thick() {
    in_machine!();
    make_group();
    let storage = open();
    for (class, short_lived) in [("thin", None), ("thick", Some(8 << 20))] {
        let source = storage.create(volume(class, "a", SMALL)).await.unwrap();
        write(device(&source), 4096, b"before");
        let wanted = Snapshot { short_lived, ..copy(class, "s", "a", AccessMode::ReadOnly) };
        let taken = storage.snapshot(wanted).await.unwrap();
        assert_eq!(taken.consistency, Consistency::Crash);
        assert_eq!((taken.volume.size, taken.volume.mode), (SMALL, AccessMode::ReadOnly));
        write(device(&source), 4096, b"after!");
        assert_eq!(read(device(&taken.volume), 4096, 6), b"before", "{class}");
        assert_eq!(read(device(&source), 4096, 6), b"after!", "{class}");
        let refused = std::fs::OpenOptions::new().write(true).open(device(&taken.volume));
        assert!(refused.is_err() || refused.unwrap().write_all(&[1; 4096]).is_err(), "{class} is read-only");
        if class == "thick" {
            let busy = storage.remove(class, "a").await;
            assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
        }
        storage.remove(class, "s").await.unwrap();
        storage.remove(class, "a").await.unwrap();
    }
}

#[tokio::test]
async fn a_short_lived_snapshot_that_overflows_is_called_lost() {
    in_machine!();
    make_group();
    let storage = open();
    let source = storage.create(volume("thick", "a", 64 << 20)).await.unwrap();
    let wanted = Snapshot { short_lived: Some(4 << 20), ..copy("thick", "s", "a", AccessMode::ReadOnly) };
    assert!(!storage.snapshot(wanted).await.unwrap().volume.is_invalidated());
    write(device(&source), 0, &vec![7; 32 << 20]);
    storage.tend().await;
    let lost = find(&*storage, "thick", "s").await.unwrap();
    assert!(lost.is_invalidated(), "{lost:?}");
    storage.remove("thick", "s").await.unwrap();
    storage.remove("thick", "a").await.unwrap();
}

#[tokio::test]
async fn the_next_tenant_sees_nothing_of_the_last() {
    in_machine!();
    make_group();
    let storage = open();
    let secret = b"a secret of the last tenant".repeat(1000);
    let first = storage.create(volume("thick", "a", 64 << 20)).await.unwrap();
    write(device(&first), 30 << 20, &secret);
    storage.remove("thick", "a").await.unwrap();
    let second = storage.create(volume("thick", "b", 64 << 20)).await.unwrap();
    assert!(read(device(&second), 0, 64 << 20).iter().all(|byte| *byte == 0));
}

#[tokio::test]
async fn a_volume_in_use_is_busy_and_options_reach_lvm() {
    in_machine!();
    make_group();
    let storage = open();
    let mut wanted = volume("thick", "a", SMALL);
    wanted.options = "striped".to_owned();
    let made = storage.create(wanted).await.unwrap();
    assert_eq!(run(&["lvs", "--noheadings", "-o", "stripes", "g/a"]).trim(), "2");
    let held = std::fs::File::open(device(&made)).unwrap();
    let busy = storage.remove("thick", "a").await;
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    drop(held);
    storage.remove("thick", "a").await.unwrap();
}

#[tokio::test]
async fn a_pool_that_fills_up_stops_new_snapshots_and_grows() {
    in_machine!();
    make_group();
    let storage = open();
    let made = storage.create(volume("thin", "a", 252 << 20)).await.unwrap();
    write(device(&made), 0, &vec![7; 248 << 20]);
    let storage = open();
    let kinds = |troubles: Vec<lifeboat_lvm::Trouble>| {
        troubles
            .into_iter()
            .filter(|trouble| trouble.class == "thin")
            .map(|trouble| trouble.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(storage.health().await), [TroubleKind::PoolFull]);
    let refused = storage.snapshot(copy("thin", "s", "a", AccessMode::ReadOnly)).await;
    assert!(matches!(refused, Err(Error::NoRoom { free: 0, .. })), "{refused:?}");
    storage.tend().await;
    assert_eq!(kinds(storage.health().await), []);
    assert_eq!(storage.capacity("thin").await.unwrap().pool.unwrap().size, 384 << 20);
    storage.snapshot(copy("thin", "s", "a", AccessMode::ReadOnly)).await.unwrap();
}
