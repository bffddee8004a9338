//! Copies between volumes of real LVM2, in a machine of its own: two sites with a volume group each, thin and thick, with filesystems and
//! without. What an application would do to its volume (make a filesystem, mount it, write) the test does by hand.

use crate::site::*;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::DeleteParams;
use lifeboat_api::annotations::{ROLL_BACK_TO, ROLLED_BACK_TO};
use lifeboat_api::multicluster::ServiceExport;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_lvm::{Access, Config as Classes, Program, Storage};
use lifeboat_node::LocalFilesystems;
use lifeboat_replicate::Clusters;
use lifeboat_testbed::Cluster;
use lifeboat_vm::in_machine;
use lifeboat_vm::inside::{Mounted, run, scribble, volume_group};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A volume group with a thin pool on a disk, and the classes on it.
fn disks(group: &str, disk: &str) -> Disks {
    let classes = volume_group(group, disk, "2g");
    let storage = Storage::open(Classes::read(&classes).unwrap(), Arc::new(Program::direct())).unwrap();
    let of = |device: &str, filesystem: &str| json!({"topolvm.io/device-class": device, "csi.storage.k8s.io/fstype": filesystem});
    let classes = vec![
        ("thin-ext4", of("thin", "ext4")),
        ("thin-xfs", of("thin", "xfs")),
        ("thick-ext4", of("thick", "ext4")),
    ];
    Disks { lvm: Arc::new(storage), filesystems: Arc::new(LocalFilesystems::new()), classes }
}

async fn both() -> (Site, Site) {
    let mut sites = Vec::new();
    for (group, disk) in [("east", "/dev/vda"), ("west", "/dev/vdb")] {
        let cluster = Cluster::embedded();
        cluster.install(&definitions()).await;
        sites.push(Site::with(cluster, Arc::new(TempDir::new().unwrap()), disks(group, disk)).await);
    }
    let (mut west, mut east) = (sites.pop().unwrap(), sites.pop().unwrap());
    let clients = vec![east.cluster.client(), west.cluster.client()];
    let clusters = Arc::new(Clusters { clients, home: None });
    east.start(clusters.clone()).await;
    west.start(clusters).await;
    (east, west)
}

fn of_class(mut object: Value, at: &str, class: &str) -> Value {
    object["spec"].pointer_mut(at).unwrap()["storageClassName"] = json!(class);
    object
}

/// A claim of a class, with the words that a size takes.
async fn claimed(site: &Site, name: &str, class: &str, mode: &str, size: &str) -> PathBuf {
    let mut claim = of_class(claim_json(name), "", class);
    claim["spec"]["volumeMode"] = json!(mode);
    claim["spec"]["resources"]["requests"]["storage"] = json!(size);
    create::<PersistentVolumeClaim>(site.claims.clone(), claim).await;
    device(site, name).await
}

/// The device of a claim.
async fn device(site: &Site, name: &str) -> PathBuf {
    let uid = site.volume(name).await;
    for class in ["thin", "thick"] {
        let found = site.lvm.volumes(class).await.unwrap().into_iter().find(|volume| volume.name == uid);
        if let Some(Access::Device(path)) = found.map(|volume| volume.access) {
            return path;
        }
    }
    panic!("{name} has no device");
}

async fn receives(site: &Site, name: &str, class: &str, change: impl FnOnce(&mut Value)) {
    let mut receiver = of_class(receiver_json(name), "/rsyncTLS", class);
    change(&mut receiver["spec"]["rsyncTLS"]);
    create::<ReplicationDestination>(site.destinations.clone(), receiver).await;
    let exports: Api<ServiceExport> = Api::namespaced(site.cluster.client(), SPACE);
    create(exports, export_json(name)).await;
    site.listens(name).await;
}

async fn sends(site: &Site, name: &str, word: &str) -> ReplicationSource {
    create::<ReplicationSource>(site.sources.clone(), sender_json(name, name, json!({"manual": word}))).await;
    site.served(name, word).await
}

fn wire(source: &ReplicationSource) -> u64 {
    external(source, "bytesOnWire").parse().unwrap()
}

/// Waits until no volume is called so any more: that a copy is complete is told first.
async fn cleared(site: &Site, class: &str, prefix: &str) {
    let look = || async {
        let found = site.lvm.volumes(class).await.unwrap();
        let left: Vec<_> = found.into_iter().filter(|one| one.name.starts_with(prefix)).collect();
        if left.is_empty() { Ok(()) } else { Err(lifeboat_testbed::NotYet(format!("{left:?}"))) }
    };
    site.cluster.eventually("nothing is left", look).await;
}

fn fill(folder: &Path, files: u64, each: usize) {
    fs::create_dir_all(folder.join("d")).unwrap();
    for number in 0..files {
        fs::write(folder.join(format!("d/f{number}")), noise(number + 1, each)).unwrap();
    }
}

#[test]
fn thin_filesystems_are_copied_changed_and_restored_while_they_are_mounted() {
    in_machine!();
    crate::tell(false, async {
        let (east, west) = both().await;
        for (filesystem, size) in [("ext4", "64Mi"), ("xfs", "320Mi")] {
            let (name, class) = (format!("data-{filesystem}"), format!("thin-{filesystem}"));
            let origin = claimed(&east, &name, &class, "Filesystem", size).await;
            let files = Mounted::fresh(&origin, filesystem, &format!("/mnt/east-{filesystem}"));
            fill(&files, 20, 400_000);
            receives(&west, &name, &class, |tls| tls["capacity"] = json!(size)).await;
            let source = sends(&east, &name, "first").await;
            west.has(&name, external(&source, "generation")).await;
            // One hundredth of eight million bytes.
            scribble(&files.join("d/f7"), 100_000, &noise(99, 80_000));
            let source = east.copy(&name, "second").await;
            assert!(wire(&source) <= 160_000, "{filesystem}: {} bytes on the wire", wire(&source));
            west.has(&name, external(&source, "generation")).await;
            // The application is stopped and its claim deleted, held by a finalizer: the last copy has its last word.
            let held = json!({"metadata": {"finalizers": ["ramendr.openshift.io/pvc-volsync-protection"]}});
            east.merge(&east.claims, &name, held).await;
            east.claims.delete(&name, &DeleteParams::default()).await.unwrap();
            fs::write(files.join("last"), "the last word").unwrap();
            let whole = tree(&files);
            drop(files);
            let source = east.copy(&name, "vrg-final-sync").await;
            assert_eq!(external(&source, "echo"), "vrg-final-sync");
            let receiver = west.has(&name, external(&source, "generation")).await;
            let image = receiver.status.unwrap().latest_image.unwrap().name;
            let mut restored = of_class(claim_json(&name), "", &class);
            restored["spec"]["resources"]["requests"]["storage"] = json!(size);
            restored["spec"]["dataSource"] =
                json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": image});
            create::<PersistentVolumeClaim>(west.claims.clone(), restored).await;
            let landed = Mounted::at(&device(&west, &name).await, &format!("/mnt/west-{filesystem}"));
            assert!(tree(&landed) == whole, "{filesystem}: another tree");
        }
        cleared(&east, "thin", "send-").await;
    });
}

async fn paused(site: &Site, name: &str) {
    site.merge(&site.destinations, name, json!({"spec": {"paused": true}})).await;
    let hushed = |receiver: Option<&ReplicationDestination>| {
        let tls = receiver.and_then(|receiver| receiver.status.as_ref()?.rsync_tls.clone());
        tls.is_some_and(|tls| tls.address.is_none())
    };
    site.cluster.until(&site.destinations, name, hushed).await;
}

async fn brought_back(site: &Site, name: &str, image: &str) {
    let note = json!({"metadata": {"annotations": {ROLL_BACK_TO: image}}});
    site.merge(&site.destinations, name, note).await;
    let answered = |receiver: Option<&ReplicationDestination>| {
        let notes = receiver.and_then(|receiver| receiver.metadata.annotations.as_ref());
        notes.and_then(|notes| notes.get(ROLLED_BACK_TO)).map(String::as_str) == Some(image)
    };
    site.cluster.until(&site.destinations, name, answered).await;
}

#[test]
fn a_claim_without_a_filesystem_is_received_into_brought_back_and_sent_home() {
    in_machine!();
    crate::tell(false, async {
        let (east, west) = both().await;
        let origin = claimed(&east, "data", "thin-ext4", "Filesystem", "64Mi").await;
        let files = Mounted::fresh(&origin, "ext4", "/mnt/east");
        fill(&files, 5, 400_000);
        // As a group makes it: bound, and nobody has ever mounted it.
        let blank = claimed(&west, "data", "thin-ext4", "Filesystem", "64Mi").await;
        receives(&west, "data", "thin-ext4", |tls| tls["destinationPVC"] = json!("data")).await;
        let source = sends(&east, "data", "first").await;
        let receiver = west.has("data", external(&source, "generation")).await;
        let image = receiver.status.unwrap().latest_image.unwrap().name;
        let whole = tree(&files);
        // Half a copy came after it; the claim goes back to the image, by another volume in its place.
        paused(&west, "data").await;
        let before = run(&["lvs", "--noheadings", "-o", "lv_uuid", blank.to_str().unwrap()]);
        {
            let landed = Mounted::at(&blank, "/mnt/west");
            assert!(tree(&landed) == whole);
            fs::write(landed.join("d/f1"), "half").unwrap();
            fs::remove_file(landed.join("d/f2")).unwrap();
        }
        brought_back(&west, "data", &image).await;
        let back = device(&west, "data").await;
        assert_ne!(run(&["lvs", "--noheadings", "-o", "lv_uuid", back.to_str().unwrap()]), before);
        {
            let landed = Mounted::at(&back, "/mnt/west");
            assert!(tree(&landed) == whole);
            // West is where the application runs now.
            fs::write(landed.join("from-west"), "written after the failover").unwrap();
        }
        let volume = west.volume("data").await;
        cleared(&west, "thin", "back-").await;
        let found = west.lvm.volumes("thin").await.unwrap();
        assert!(
            found
                .iter()
                .any(|one| one.name == volume && one.tags.contains(&format!("lifeboat.back={image}")))
        );
        // And home: the roles are swapped, and only what differs crosses the wire.
        drop(files);
        east.sources.delete("data", &DeleteParams::default()).await.unwrap();
        west.destinations.delete("data", &DeleteParams::default()).await.unwrap();
        west.cluster.until(&west.destinations, "data", |found| found.is_none()).await;
        receives(&east, "data", "thin-ext4", |tls| tls["destinationPVC"] = json!("data")).await;
        let source = sends(&west, "data", "home").await;
        east.has("data", external(&source, "generation")).await;
        assert!(wire(&source) < 400_000, "{} bytes on the wire", wire(&source));
        paused(&east, "data").await;
        let home = Mounted::at(&origin, "/mnt/east");
        assert_eq!(fs::read_to_string(home.join("from-west")).unwrap(), "written after the failover");
        assert_eq!(tree(&home).len(), whole.len() + 1);
    });
}

#[test]
fn raw_blocks_are_copied_changed_and_brought_back() {
    in_machine!();
    crate::tell(false, async {
        let (east, west) = both().await;
        let origin = claimed(&east, "raw", "thin-ext4", "Block", "64Mi").await;
        let content = noise(7, 8 << 20);
        scribble(&origin, 4 << 20, &content);
        let landed = claimed(&west, "raw", "thin-ext4", "Block", "64Mi").await;
        receives(&west, "raw", "thin-ext4", |tls| {
            tls["destinationPVC"] = json!("raw");
            tls["volumeMode"] = json!("Block");
        })
        .await;
        let source = sends(&east, "raw", "first").await;
        west.has("raw", external(&source, "generation")).await;
        scribble(&origin, 6 << 20, &noise(8, 80 << 10));
        // What is emptied costs nothing, and is empty over there.
        scribble(&origin, 10 << 20, &vec![0; 1 << 20]);
        let source = east.copy("raw", "second").await;
        assert!(wire(&source) <= 160 << 10, "{} bytes on the wire", wire(&source));
        let receiver = west.has("raw", external(&source, "generation")).await;
        let image = receiver.status.unwrap().latest_image.unwrap().name;
        let read = |path: &Path| fs::read(path).unwrap();
        paused(&west, "raw").await;
        assert!(read(&landed) == read(&origin));
        scribble(&landed, 5 << 20, b"half a copy");
        brought_back(&west, "raw", &image).await;
        assert!(read(&device(&west, "raw").await) == read(&origin));
    });
}

#[test]
fn thick_volumes_are_copied_from_a_snapshot_that_lives_as_long_as_the_copy() {
    in_machine!();
    crate::tell(false, async {
        let (east, west) = both().await;
        let origin = claimed(&east, "data", "thick-ext4", "Filesystem", "64Mi").await;
        let files = Mounted::fresh(&origin, "ext4", "/mnt/east");
        fill(&files, 10, 400_000);
        receives(&west, "data", "thick-ext4", |tls| {
            tls["copyMethod"] = json!("Direct");
            tls["capacity"] = json!("64Mi");
        })
        .await;
        let source = sends(&east, "data", "first").await;
        west.has("data", external(&source, "generation")).await;
        scribble(&files.join("d/f3"), 0, &noise(50, 40_000));
        let source = east.copy("data", "second").await;
        assert!(wire(&source) <= 80_000, "{} bytes on the wire", wire(&source));
        west.has("data", external(&source, "generation")).await;
        paused(&west, "data").await;
        let landed = Mounted::at(&device(&west, "volsync-data-dst").await, "/mnt/west");
        assert!(tree(&landed) == tree(&files));
        cleared(&east, "thick", "send-").await;
    });
}
