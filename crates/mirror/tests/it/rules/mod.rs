//! Every rule of the mirror, a row each.

mod halts;
mod offers;
mod replicas;
mod roles;

use jiff::{SignedDuration, Timestamp};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::{annotations, finalizers};
use lifeboat_lvm::{Access, AccessMode, Volume};
use lifeboat_mirror::copies::{Copies, Filling, Image, Kind, last_tag};
use lifeboat_mirror::desk::{Expected, Memory, Standing};
use lifeboat_mirror::talk::Shared;
use lifeboat_stream::Completed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const UID: &str = "u1";

pub fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

pub fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

pub fn image(epoch: u64, seconds_ago: i64) -> Image {
    Image { generation: format!("g{seconds_ago}"), cut: ago(seconds_ago), epoch, fuzzy: false }
}

fn volume(kind: Kind, tags: BTreeSet<String>) -> Volume {
    Volume {
        name: kind.name(UID),
        size: 64 << 20,
        tags,
        access: Access::Directory("/v".into()),
        origin: None,
        mode: AccessMode::ReadWrite,
        attr: "-wi-a-----".into(),
        device: (0, 0),
    }
}

/// Copies by what they are, read from names and tags as they are on disk.
#[derive(Clone, Default)]
pub struct Disk(BTreeMap<String, Volume>);

impl Disk {
    fn with(mut self, kind: Kind, tags: BTreeSet<String>) -> Self {
        self.0.insert(kind.name(UID), volume(kind, tags));
        self
    }

    /// The live volume, written at an epoch.
    pub fn live(self, epoch: u64) -> Self {
        self.with(Kind::Live, [format!("lifeboat.epoch={epoch}")].into())
    }

    pub fn image(self, kind: Kind, image: &Image) -> Self {
        self.with(kind, image.tags())
    }

    pub fn last_cut(self, image: &Image) -> Self {
        let mut tags = image.tags();
        tags.insert(last_tag());
        self.with(Kind::Cut, tags)
    }

    pub fn filling(self, incarnation: &str) -> Self {
        self.with(Kind::Filling, Filling::tags(Some("g9"), incarnation))
    }

    pub fn copies(self) -> Copies {
        Copies::of(UID, self.0)
    }
}

/// A secondary of 64 MiB that is mirrored with `u9`.
pub fn secondary() -> LogicalVolume {
    let mut volume = primary();
    note(&mut volume, annotations::MIRROR_ROLE, annotations::MIRROR_SECONDARY);
    volume
}

/// A primary of 64 MiB that is mirrored with `u9`.
pub fn primary() -> LogicalVolume {
    let mut volume = LogicalVolume::default();
    volume.metadata.name = Some("pvc-1".into());
    volume.metadata.uid = Some(UID.into());
    volume.metadata.finalizers = Some(vec![finalizers::MIRROR.into()]);
    volume.spec.name = "pvc-1".into();
    volume.spec.node_name = "n1".into();
    volume.spec.size = lifeboat_node::provision::words::quantity(64 << 20);
    note(&mut volume, annotations::MIRROR_PEER, "u9");
    volume
}

pub fn note(volume: &mut LogicalVolume, key: &str, value: &str) {
    volume.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
}

pub fn offer(epoch: u64) -> Option<Standing> {
    Some(Standing {
        epoch,
        key: Shared::parse("k:00112233445566778899aabbccddeeff").unwrap(),
        from: "10.0.0.1:1".parse().unwrap(),
        came_from: "10.0.0.1".parse().unwrap(),
        identities: ["pair-1".to_owned()].into(),
        size: 64 << 20,
    })
}

pub fn expected(incarnation: &str, epoch: u64) -> Option<Expected> {
    Some(Expected { incarnation: incarnation.into(), epoch })
}

pub fn completed(incarnation: &str, image: &Image) -> Option<Completed> {
    Some(Completed {
        destination: UID.into(),
        incarnation: incarnation.into(),
        generation: image.generation.clone(),
        base: None,
        epoch: image.epoch,
        cut: image.cut,
        token: None,
        bytes: 1,
        entries: 1,
        skipped: 0,
        verified: false,
        lineage: None,
        fuzzy: None,
    })
}

/// A memory in which the copy `i` is known not to be whole.
pub fn probed() -> Memory {
    Memory { probed: Some("i".into()), ..Memory::default() }
}

pub fn shared(volume: LogicalVolume) -> Arc<LogicalVolume> {
    Arc::new(volume)
}
