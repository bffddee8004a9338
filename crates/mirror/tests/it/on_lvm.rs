//! Volumes of real LVM2 are mirrored, in a machine of its own: two sides with a volume group each, and on both a thin volume with a filesystem
//! and a thick one with nothing but bytes. What an application would do to them (make a filesystem, mount it, write) the test does by hand; the
//! mirror mounts nothing.

use crate::side::Side;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use lifeboat_api::annotations;
use lifeboat_api::replication::VolumeReplication;
use lifeboat_lvm::{Config, Program, Storage};
use lifeboat_testbed::fixtures::noise;
use lifeboat_testbed::{Cluster, NotYet};
use lifeboat_vm::in_machine;
use lifeboat_vm::inside::{Mounted, scribble, volume_group};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Claims, each named by the device class of its volume.
const CLAIMS: [&str; 2] = ["thin", "thick"];
const SIZE: &str = "16Mi";

/// A side with a volume group of its own.
async fn side(group: &str, disk: &str) -> Side {
    let classes = volume_group(group, disk, "1g");
    let storage = Storage::open(Config::read(&classes).unwrap(), Arc::new(Program::direct())).unwrap();
    Side::on(Cluster::embedded()).await.with_lvm(Arc::new(storage))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let mut file = fs::File::create(folder.join(name)).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
}

fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.file_name().unwrap().into(), fs::read(&path).unwrap())).collect()
}

/// A site and the volumes of its claims.
struct Site {
    group: &'static str,
    side: Side,
    ids: BTreeMap<&'static str, String>,
}

impl Site {
    fn device(&self, kind: &str, claim: &str) -> PathBuf {
        Path::new("/dev").join(self.group).join(format!("{kind}{}", self.ids[claim]))
    }

    fn live(&self, claim: &str) -> PathBuf {
        self.device("", claim)
    }

    /// All bytes of a kind of copy of both claims.
    fn bytes(&self, kind: &str) -> [Vec<u8>; 2] {
        CLAIMS.map(|claim| fs::read(self.device(kind, claim)).unwrap())
    }

    async fn wish(&self, role: &str, auto_resync: bool) {
        for claim in CLAIMS {
            self.side.wish(claim, role, auto_resync).await;
        }
    }

    async fn primary(&self) {
        for claim in CLAIMS {
            self.side.primary(claim).await;
        }
    }

    async fn secondary(&self) {
        for claim in CLAIMS {
            self.side.secondary(claim).await;
        }
    }

    async fn delete(&self) {
        for claim in CLAIMS {
            self.side.delete(claim).await;
        }
    }

    /// Waits for the first copies that VolumeReplications tell of; gives the time of the cut and the bytes that had changed.
    async fn synced(&self) -> [(Timestamp, i64); 2] {
        let mut told = Vec::new();
        for claim in CLAIMS {
            let status = self.side.synced(claim, Timestamp::UNIX_EPOCH).await.status.unwrap();
            told.push((status.last_sync_time.unwrap().0, status.last_sync_bytes.unwrap()));
        }
        told.try_into().unwrap()
    }

    /// Sends what was written until now: a new VolumeReplication does not wait for the interval.
    async fn sent_anew(&self) -> [(Timestamp, i64); 2] {
        self.delete().await;
        self.wish("primary", false).await;
        self.synced().await
    }
}

#[tokio::test]
async fn thin_and_thick_volumes_are_moved_failed_over_and_resynced() {
    in_machine!();
    let mut east = Site { group: "east", side: side("east", "/dev/vda").await, ids: BTreeMap::new() };
    let mut west = Site { group: "west", side: side("west", "/dev/vdb").await, ids: BTreeMap::new() };
    east.side.start().await;
    west.side.start().await;
    east.side.know(&west.side, "1h").await;
    west.side.know(&east.side, "1h").await;
    for claim in CLAIMS {
        let id = east.side.make_of(&format!("pvc-{claim}"), Some(claim), SIZE).await;
        east.side.bind(claim, &id).await;
        east.ids.insert(claim, id);
    }
    let files = Mounted::fresh(&east.live("thin"), "ext4", "/mnt/east");
    for number in 0..8 {
        write(&files, &format!("f{number}"), &noise(number + 1, 200_000));
    }
    scribble(&east.live("thick"), 1 << 20, &noise(20, 2_000_000));
    east.wish("primary", false).await;
    east.synced().await;
    for claim in CLAIMS {
        let told = east.side.primary(claim).await;
        west.ids.insert(claim, told.status.unwrap().destination_volume_id.unwrap());
    }

    // A planned move: everything that was ever written is there, byte by byte.
    write(&files, "f3", b"the last word of east");
    scribble(&east.live("thick"), 2 << 20, b"the last word of east");
    let before = tree(&files);
    drop(files);
    let whole = east.bytes("");
    east.wish("secondary", false).await;
    east.secondary().await;
    for claim in CLAIMS {
        west.side.bind(claim, &west.ids[claim]).await;
    }
    west.wish("primary", false).await;
    west.primary().await;
    assert!(west.bytes("") == whole, "other bytes after the move");
    let files = Mounted::at(&west.live("thin"), "/mnt/west");
    assert!(tree(&files) == before, "another tree after the move");

    // What west writes is at east with the next copy, and not much more crosses the wire.
    west.synced().await;
    write(&files, "f4", &noise(50, 80_000));
    scribble(&west.live("thick"), 3 << 20, &noise(51, 80_000));
    let kept = (tree(&files), fs::read(west.live("thick")).unwrap());
    let told = west.sent_anew().await;
    for (claim, (cut, bytes)) in CLAIMS.iter().zip(told) {
        assert!((80_000..1_000_000).contains(&bytes), "{claim}: {bytes} bytes");
        // Whoever decides about a failover reads here from when its data would be.
        let stated = |one: &VolumeReplication, _: &dyn Fn(&str) -> String| {
            let time = one.status.as_ref().and_then(|status| status.last_sync_time.as_ref());
            time.is_some_and(|time| time.0 == cut)
        };
        east.side.says(claim, stated).await;
    }

    // West is lost, with what it wrote after that time and nothing else.
    write(&files, "lost", b"never sent");
    drop(files);
    scribble(&west.live("thick"), 4 << 20, b"never sent");
    west.side.kill().await;
    let insist = json!({ "metadata": { "annotations": { annotations::FORCE_PROMOTE: "true" } } });
    for claim in CLAIMS {
        let insist = Patch::Merge(&insist);
        east.side.replications().patch(claim, &PatchParams::default(), &insist).await.unwrap();
    }
    east.wish("primary", false).await;
    east.primary().await;
    let files = Mounted::at(&east.live("thin"), "/mnt/east");
    assert!((tree(&files), fs::read(east.live("thick")).unwrap()) == kept, "not what west had sent last");
    write(&files, "after", b"written by east");
    drop(files);
    scribble(&east.live("thick"), 5 << 20, b"written by east");

    // It returns and takes what east has, in place of what only it had.
    east.delete().await;
    west.side.start().await;
    west.wish("secondary", true).await;
    east.wish("primary", false).await;
    west.secondary().await;
    assert!(west.bytes("replica-") == east.bytes(""), "other bytes after the resync");
    for class in CLAIMS {
        let cleared = || async {
            let found = west.side.storage().volumes(class).await.unwrap();
            match found.iter().any(|volume| volume.name.starts_with("diverged-")) {
                true => Err(NotYet(format!("{found:?}"))),
                false => Ok(()),
            }
        };
        west.side.cluster.eventually("what only west had goes", cleared).await;
    }
}
