//! The agent on real LVM2, in a machine of its own: backed up while the origin is mounted and written, restored, and mounted again.

use super::ground::{Ground, create, delete, gone, in_phase, made, released_by_node, snapshot, stand_in};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotPhase};
use lifeboat_lvm::mount::mount_points;
use lifeboat_lvm::{Config as Classes, Lvm, Program, Storage};
use lifeboat_mover::Rustic;
use lifeboat_node::LocalFilesystems;
use lifeboat_node::volume::{Config, Parts, agent};
use lifeboat_testbed::{Cluster, Task};
use lifeboat_vm::in_machine;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const CLASSES: &str = r#"
lvm-command-prefix: [lvm]
lvm-config: activation/udev_sync=0 activation/udev_rules=0
device-classes:
  - {name: thick, volume-group: g, spare-gb: 1, default: true}
  - {name: thin, volume-group: g, type: thin, thin-pool: {name: pool, overprovision-ratio: 4}}
"#;

const MOUNTS: &str = "/run/lifeboat-mounts";

#[expect(clippy::disallowed_methods, reason = "a test is the outside: it starts processes")]
pub fn run(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{argv:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

struct Node {
    cluster: Cluster,
    ground: Ground,
    storage: Arc<Storage>,
    _agent: Task,
}

impl Node {
    async fn start() -> Self {
        run(&["vgcreate", "g", "/dev/vda", "/dev/vdb"]);
        run(&["lvcreate", "-y", "-T", "-L", "2g", "--poolmetadatasize", "8m", "g/pool"]);
        let cluster = Cluster::embedded();
        let ground = Ground::on(&cluster).await;
        ground.offer_store(&cluster).await;
        let storage =
            Arc::new(Storage::open(Classes::read(CLASSES).unwrap(), Arc::new(Program::direct())).unwrap());
        let parts = Parts {
            lvm: storage.clone(),
            mover: Arc::new(Rustic::new()),
            filesystems: Arc::new(LocalFilesystems::new()),
        };
        let config = Config {
            node: ground.name("n1"),
            process: "n1/1".into(),
            namespace: ground.mark.clone(),
            jobs_at_once: 2,
            mounts: MOUNTS.into(),
        };
        let (client, clock) = (cluster.client(), cluster.clock());
        let work = async move {
            agent(client, clock, Default::default(), parts, config).run(std::future::pending()).await;
        };
        Self { cluster, ground, storage, _agent: Task::spawn(work) }
    }

    fn volume(&self, name: &str, class: &str, filesystem: &str) -> LogicalVolume {
        let mut volume = self.ground.plain(name, "n1");
        volume.spec.device_class = Some(class.to_owned());
        volume.spec.size = Quantity("320Mi".into());
        let notes = volume.metadata.annotations.get_or_insert_default();
        notes.insert(parameters::FS_TYPE.into(), filesystem.into());
        if filesystem.is_empty() {
            notes.insert(annotations::VOLUME_MODE.into(), "Block".into());
        }
        volume
    }

    async fn device(&self, class: &str, volume: &LogicalVolume) -> PathBuf {
        let uid = volume.metadata.uid.clone().unwrap();
        let found =
            self.storage.volumes(class).await.unwrap().into_iter().find(|found| found.name == uid).unwrap();
        let lifeboat_lvm::Access::Device(path) = found.access else { panic!("no device") };
        path
    }

    async fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for class in ["thick", "thin"] {
            names.extend(self.storage.volumes(class).await.unwrap().into_iter().map(|volume| volume.name));
        }
        names
    }

    /// Backs a volume up under another's eyes and restores it into a new one; gives the device of that.
    async fn there_and_back(
        &self,
        class: &str,
        filesystem: &str,
        origin: &LogicalVolume,
    ) -> (LogicalVolume, PathBuf) {
        let (cluster, ground) = (&self.cluster, &self.ground);
        let tag = format!("{class}{filesystem}");
        let name = format!("snapshot-{tag}");
        let mut wanted = ground.online_snapshot(&name, origin);
        wanted.spec.device_class.clone_from(&origin.spec.device_class);
        wanted.spec.size.clone_from(&origin.spec.size);
        if filesystem.is_empty() {
            wanted
                .metadata
                .annotations
                .get_or_insert_default()
                .insert(annotations::VOLUME_MODE.into(), "Block".into());
        }
        let taken = create(cluster, &wanted).await;
        let told = snapshot(&in_phase(cluster, &ground.name(&name), SnapshotPhase::Succeeded).await);
        assert_eq!(told.consistency.as_deref(), Some("Crash"), "LVM shows one moment");
        released_by_node(cluster, &ground.name(&name)).await;
        assert!(
            !self.names().await.contains(&taken.metadata.uid.clone().unwrap()),
            "the local snapshot went"
        );

        let target = format!("restored-{tag}");
        stand_in(cluster, &ground.name(&target)).await;
        let mut wanted = self.volume(&target, class, filesystem);
        wanted.spec.size.clone_from(&origin.spec.size);
        let handle = ground.handle(taken.metadata.uid.as_deref().unwrap());
        wanted
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(annotations::SNAPSHOT_RESTORE_REQUIRED.into(), handle);
        create(cluster, &wanted).await;
        let back = made(cluster, &ground.name(&target)).await;
        let ours =
            mount_points().unwrap().into_iter().filter(|point| point.target.starts_with(MOUNTS)).count();
        assert_eq!(ours, 0, "every mount is released");
        let device = self.device(class, &back).await;
        (back, device)
    }
}

fn mount(device: &Path, at: &Path, options: &str) {
    fs::create_dir_all(at).unwrap();
    run(&["mount", "-o", options, device.to_str().unwrap(), at.to_str().unwrap()]);
}

#[tokio::test]
async fn files_come_back_on_every_filesystem_thick_and_thin() {
    in_machine!();
    let node = Node::start().await;
    for (class, filesystem) in [
        ("thick", "ext4"),
        ("thin", "ext4"),
        ("thick", "xfs"),
        ("thin", "xfs"),
        ("thick", "btrfs"),
        ("thin", "btrfs"),
    ] {
        let name = format!("pvc-{class}{filesystem}");
        create(&node.cluster, &node.volume(&name, class, filesystem)).await;
        let origin = made(&node.cluster, &node.ground.name(&name)).await;
        let device = node.device(class, &origin).await;
        run(&[&format!("mkfs.{filesystem}"), "-q", device.to_str().unwrap()]);
        let at = PathBuf::from(format!("/mnt/{class}-{filesystem}"));
        mount(&device, &at, "rw");
        let mut ledger = fs::File::create(at.join("ledger")).unwrap();
        std::io::Write::write_all(&mut ledger, b"ten").unwrap();
        // As a database does it: on disk, in the filesystem's log.
        ledger.sync_all().unwrap();
        drop(ledger);
        let (restored, copy) = node.there_and_back(class, filesystem, &origin).await;
        fs::write(at.join("ledger"), "eleven").unwrap();
        let seen = at.with_extension("restored");
        mount(&copy, &seen, if filesystem == "xfs" { "ro,nouuid" } else { "ro" });
        assert_eq!(fs::read_to_string(seen.join("ledger")).unwrap(), "ten", "{class} {filesystem}");
        for place in [&seen, &at] {
            run(&["umount", place.to_str().unwrap()]);
        }
        for volume in [restored, origin] {
            let name = volume.metadata.name.unwrap();
            delete(&node.cluster, &name).await;
            gone(&node.cluster, &name).await;
        }
    }
    assert_eq!(node.names().await, Vec::<String>::new(), "nothing leaks");
}

#[tokio::test]
async fn raw_blocks_come_back_without_any_mount() {
    in_machine!();
    let node = Node::start().await;
    let mut volume = node.volume("pvc-raw", "thin", "");
    volume.spec.size = Quantity("16Mi".into());
    create(&node.cluster, &volume).await;
    let origin = made(&node.cluster, &node.ground.name("pvc-raw")).await;
    let device = node.device("thin", &origin).await;
    let bytes: Vec<u8> = (0..3 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::OpenOptions::new()
        .write(true)
        .open(&device)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &bytes))
        .unwrap();
    run(&["sync"]);
    let (_, copy) = node.there_and_back("thin", "", &origin).await;
    let back = fs::read(&copy).unwrap();
    assert!(back[..bytes.len()] == bytes[..] && back[bytes.len()..16 << 20].iter().all(|byte| *byte == 0));
}

#[tokio::test]
async fn a_volume_in_use_is_not_removed_and_says_so() {
    in_machine!();
    let node = Node::start().await;
    create(&node.cluster, &node.volume("pvc-1", "thin", "ext4")).await;
    let name = node.ground.name("pvc-1");
    let origin = made(&node.cluster, &name).await;
    let device = node.device("thin", &origin).await;
    run(&["mkfs.ext4", "-q", device.to_str().unwrap()]);
    mount(&device, Path::new("/mnt/used"), "rw");
    delete(&node.cluster, &name).await;
    let told = |volume: Option<&LogicalVolume>| {
        let message = volume.and_then(|volume| volume.status.as_ref()?.message.clone());
        message.is_some_and(|message| message.contains("in use"))
    };
    node.cluster.until(&super::ground::volumes(&node.cluster), &name, told).await;
    run(&["umount", "/mnt/used"]);
    gone(&node.cluster, &name).await;
    assert_eq!(node.names().await, Vec::<String>::new());
}
