//! The power fails under load: whatever was synced is in the snapshot that a copy or a backup reads, although nobody has mounted the volume since.

use lifeboat_lvm::mount::{Filesystem, Mounts as Tool, Purpose as Use, Tools};
use lifeboat_lvm::{Access, AccessMode, Config as Classes, Create, Lvm, Program, Snapshot, Storage, Volume};
use lifeboat_node::{CopyCare, Filesystems, LocalFilesystems, Mounts, Purpose};
use lifeboat_vm::{Machine, step, test_name};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const CLASSES: &str = r#"
lvm-command-prefix: [lvm]
lvm-config: activation/udev_sync=0 activation/udev_rules=0
device-classes:
  - {name: thick, volume-group: g, spare-gb: 0, default: true}
  - {name: thin, volume-group: g, type: thin, thin-pool: {name: pool, overprovision-ratio: 4}}
"#;

const FILES: usize = 40;
const SIZE: u64 = 320 << 20;
const ENOUGH: Duration = Duration::from_secs(240);

fn storage() -> Storage {
    Storage::open(Classes::read(CLASSES).unwrap(), Arc::new(Program::direct())).unwrap()
}

fn device(volume: &Volume) -> PathBuf {
    let Access::Device(path) = &volume.access else { panic!("no device") };
    path.clone()
}

/// Writes files and syncs each, then begins more that nobody syncs.
async fn work(filesystem: Filesystem) {
    super::on_lvm::run(&["vgcreate", "g", "/dev/vda", "/dev/vdb"]);
    super::on_lvm::run(&["lvcreate", "-y", "-T", "-L", "2g", "--poolmetadatasize", "8m", "g/pool"]);
    let (storage, tool) = (storage(), Tool::new(Tools::default()));
    for class in ["thin", "thick"] {
        let wanted = Create {
            name: "a".into(),
            class: class.into(),
            size: SIZE,
            tags: BTreeSet::new(),
            options: String::new(),
        };
        let wanted = Create { name: format!("a{class}"), ..wanted };
        let made = storage.create(wanted).await.unwrap();
        tool.make(filesystem, &device(&made), &[]).await.unwrap();
        let at = PathBuf::from(format!("/tmp/{class}"));
        tool.mount(&device(&made), &at, filesystem, Use::Use, &[]).await.unwrap();
        fs::File::open(&at).unwrap().sync_all().unwrap();
        for number in 0..FILES {
            let path = at.join(format!("synced-{number}"));
            fs::write(&path, number.to_string()).unwrap();
            fs::File::open(&path).unwrap().sync_all().unwrap();
            fs::write(at.join(format!("loose-{number}")), "nobody waits for this").unwrap();
        }
    }
}

async fn check(filesystem: Filesystem) {
    super::on_lvm::run(&["vgchange", "-a", "y", "g"]);
    let (storage, tool) = (storage(), Tool::new(Tools::default()));
    let local = Arc::new(LocalFilesystems::new());
    let mounts = Mounts::new(local.clone(), "/run/lifeboat-mounts".into());
    for class in ["thin", "thick"] {
        let name = format!("a{class}");
        let found = storage.volumes(class).await.unwrap();
        let origin = found.into_iter().find(|volume| volume.name == name).unwrap();
        let care = local.care(&device(&origin)).await.unwrap();
        assert_eq!(care, CopyCare::Still { mounted: None }, "{class}: the copy must be writable");
        let snapshot = |name: &str, mode| Snapshot {
            name: name.into(),
            class: class.into(),
            source: origin.name.clone(),
            mode,
            size: origin.size,
            tags: BTreeSet::new(),
            short_lived: (class == "thick").then_some(64 << 20),
        };
        if filesystem == Filesystem::Ext4 {
            // One that cannot be put in order is refused, and never read as if it were whole.
            let taken = storage.snapshot(snapshot("ro", AccessMode::ReadOnly)).await.unwrap().volume;
            let refused = mounts.mount("ro", &device(&taken), Purpose::Backup).await.unwrap_err();
            assert!(
                !refused.is_transient() && refused.to_string().contains("was not unmounted"),
                "{refused}"
            );
            storage.remove(class, "ro").await.unwrap();
        }
        let taken = storage.snapshot(snapshot("s", AccessMode::ReadWrite)).await.unwrap().volume;
        let beside = Path::new("/tmp/beside");
        if filesystem != Filesystem::Btrfs {
            // A pod is quicker than the copy.
            tool.mount(&device(&origin), beside, filesystem, Use::Use, &[]).await.unwrap();
            fs::write(beside.join("synced-0"), "changed later").unwrap();
        }
        mounts.mount("s", &device(&taken), Purpose::Backup).await.unwrap();
        let at = mounts.of("s").unwrap();
        for number in 0..FILES {
            let found = fs::read_to_string(at.join(format!("synced-{number}")));
            assert_eq!(found.ok().as_deref(), Some(number.to_string().as_str()), "{class}: file {number}");
        }
        assert!(fs::write(at.join("synced-1"), "no").is_err(), "it is only read");
        mounts.unmount("s").await.unwrap();
        if filesystem == Filesystem::Btrfs {
            // Once it is in order it is read beside its mounted origin too.
            tool.mount(&device(&origin), beside, filesystem, Use::Use, &[]).await.unwrap();
            mounts.mount("s", &device(&taken), Purpose::Backup).await.unwrap();
            assert_eq!(fs::read_to_string(mounts.of("s").unwrap().join("synced-1")).unwrap(), "1");
            mounts.unmount("s").await.unwrap();
        }
        tool.unmount(beside).await.unwrap();
        storage.remove(class, "s").await.unwrap();
    }
}

async fn story(test: &str, filesystem: Filesystem) {
    match step().as_deref() {
        Some("work") => return work(filesystem).await,
        Some("check") => return check(filesystem).await,
        _ => {}
    }
    let builder = Machine::builder().disk(2 << 30).disk(2 << 30).this_test_binary();
    let Some(mut machine) = builder.boot_or_skip(test) else { return };
    machine.run_this_test(test, "work", ENOUGH).unwrap();
    machine.power_cut();
    machine.power_on().unwrap();
    machine.run_this_test(test, "check", ENOUGH).unwrap();
}

#[tokio::test]
async fn what_was_synced_on_ext4_is_in_the_copy_after_a_power_cut() {
    story(test_name!(), Filesystem::Ext4).await;
}

#[tokio::test]
async fn what_was_synced_on_xfs_is_in_the_copy_after_a_power_cut() {
    story(test_name!(), Filesystem::Xfs).await;
}

#[tokio::test]
async fn what_was_synced_on_btrfs_is_in_the_copy_after_a_power_cut() {
    story(test_name!(), Filesystem::Btrfs).await;
}
