//! Filesystems on real volumes: a snapshot is read while its origin is mounted and written to.

use crate::real::{make_group, open, run};
use crate::suite::{copy, volume};
use lifeboat_lvm::mount::{
    Filesystem, MountError, Mounts, Purpose, ReadOnly, Tools, is_mounted_or_open, mount_points,
};
use lifeboat_lvm::{Access, AccessMode, Lvm, Snapshot, Volume};
use lifeboat_vm::in_machine;
use std::fs;
use std::path::{Path, PathBuf};

/// mkfs.xfs makes nothing smaller than 300 MiB.
const LARGE: u64 = 320 << 20;

fn device(volume: &Volume) -> PathBuf {
    let Access::Device(path) = &volume.access else { panic!("no device") };
    path.clone()
}

async fn snapshot_beside_its_origin(filesystem: Filesystem) {
    make_group();
    run(&["lvextend", "-L", "1g", "g/pool"]);
    let storage = open();
    let mounts = Mounts::new(Tools::default());
    let (origin_at, copy_at) = (Path::new("/tmp/lb/origin"), Path::new("/tmp/lb/with space"));
    for (class, short_lived) in [("thin", None), ("thick", Some(64 << 20))] {
        let origin = storage.create(volume(class, "a", LARGE)).await.unwrap();
        assert_eq!(mounts.probe(&device(&origin)).await.unwrap(), None);
        mounts.make(filesystem, &device(&origin), &[]).await.unwrap();
        assert_eq!(mounts.probe(&device(&origin)).await.unwrap().as_deref(), Some(filesystem.name()));
        assert!(!is_mounted_or_open(&device(&origin)).unwrap());
        mounts
            .mount(&device(&origin), origin_at, filesystem, Purpose::Use, &["noatime".to_owned()])
            .await
            .unwrap();
        assert!(is_mounted_or_open(&device(&origin)).unwrap());
        fs::write(origin_at.join("file"), "before").unwrap();
        let wanted = Snapshot { short_lived, ..copy(class, "s", "a", AccessMode::ReadOnly) };
        let taken = if filesystem.needs_help_for_snapshots() {
            fs::File::open(origin_at.join("file")).unwrap().sync_all().unwrap();
            mounts.freeze(origin_at).await.unwrap();
            let taken = storage.snapshot(Snapshot { mode: AccessMode::ReadWrite, ..wanted }).await;
            mounts.thaw(origin_at).await.unwrap();
            mounts.thaw(origin_at).await.unwrap();
            taken.unwrap().volume
        } else {
            // Nothing is synced: LVM freezes the filesystem for the moment of the snapshot.
            storage.snapshot(wanted).await.unwrap().volume
        };
        fs::write(origin_at.join("file"), "after").unwrap();
        mounts.mount_snapshot(&device(&taken), copy_at, filesystem).await.unwrap();
        assert_eq!(fs::read_to_string(copy_at.join("file")).unwrap(), "before", "{class}");
        assert_eq!(fs::read_to_string(origin_at.join("file")).unwrap(), "after", "{class}");
        assert!(fs::write(copy_at.join("file"), "no").is_err(), "a snapshot is only read");
        assert!(mount_points().unwrap().iter().any(|point| point.target == copy_at && point.read_only));

        let held = fs::File::open(copy_at.join("file")).unwrap();
        assert_eq!(mounts.unmount(copy_at).await, Err(MountError::Busy { path: copy_at.to_owned() }));
        drop(held);
        mounts.unmount(copy_at).await.unwrap();
        mounts.unmount(copy_at).await.unwrap();
        storage.remove(class, "s").await.unwrap();

        storage.resize(class, "a", 2 * LARGE).await.unwrap();
        mounts.grow(filesystem, &device(&origin), origin_at).await.unwrap();
        let size = rustix::fs::statvfs(origin_at).map(|stat| stat.f_blocks * stat.f_frsize).unwrap();
        assert!(size > LARGE * 3 / 2, "{size}");

        mounts.bind(origin_at, &copy_at.join("bound"), ReadOnly::Yes).await.unwrap();
        assert!(fs::write(copy_at.join("bound/file"), "no").is_err());
        let released = mounts.release_under(Path::new("/tmp/lb")).await.unwrap();
        assert_eq!(released, [copy_at.join("bound"), origin_at.to_owned()]);
        assert!(!is_mounted_or_open(&device(&origin)).unwrap());
        storage.remove(class, "a").await.unwrap();
    }
}

#[tokio::test]
async fn an_ext4_snapshot_is_read_beside_its_origin() {
    in_machine!();
    snapshot_beside_its_origin(Filesystem::Ext4).await;
}

#[tokio::test]
async fn an_xfs_snapshot_is_read_beside_its_origin() {
    in_machine!();
    snapshot_beside_its_origin(Filesystem::Xfs).await;
}

#[tokio::test]
async fn a_btrfs_snapshot_is_read_beside_its_origin() {
    in_machine!();
    snapshot_beside_its_origin(Filesystem::Btrfs).await;
}
