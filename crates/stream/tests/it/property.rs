//! Whatever happens to a tree or a device between two syncs, both sides are the same after the second.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use lifeboat_stream::{Place, Source};
use proptest::prelude::*;
use tempfile::tempdir;

use super::pair::{Peer, job, sync, tree};
use super::trees::{noise, same};

#[derive(Clone, Debug)]
enum Edit {
    Write { name: u8, at: u32, length: u16 },
    Zero { name: u8, at: u32, length: u16 },
    Cut { name: u8, to: u32 },
    Replace { name: u8, length: u32 },
    Rename { name: u8, to: u8 },
    Link { name: u8, to: u8 },
    Point { name: u8 },
    Folder { name: u8 },
    Remove { name: u8 },
    Mode { name: u8, mode: u16 },
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let name = || 0..12_u8;
    let at = || 0..60_000_u32;
    let edit = prop_oneof![
        4 => (name(), at(), 1..9000_u16).prop_map(|(name, at, length)| Edit::Write { name, at, length }),
        1 => (name(), at(), 1..20_000_u16).prop_map(|(name, at, length)| Edit::Zero { name, at, length }),
        1 => (name(), at()).prop_map(|(name, to)| Edit::Cut { name, to }),
        2 => (name(), at()).prop_map(|(name, length)| Edit::Replace { name, length }),
        3 => (name(), name()).prop_map(|(name, to)| Edit::Rename { name, to }),
        2 => (name(), name()).prop_map(|(name, to)| Edit::Link { name, to }),
        1 => name().prop_map(|name| Edit::Point { name }),
        2 => name().prop_map(|name| Edit::Folder { name }),
        2 => name().prop_map(|name| Edit::Remove { name }),
        1 => (name(), 0..0o1000_u16).prop_map(|(name, mode)| Edit::Mode { name, mode }),
    ];
    prop::collection::vec(edit, 1..25)
}

/// Names in a few directories, some of which are names of directories too.
fn name(root: &Path, number: u8) -> std::path::PathBuf {
    let names = ["a", "b", "c", "d", "a/x", "a/y", "b/x", "b/x/y", "c!", "d/x", "d/y/z", "d/y"];
    root.join(names[usize::from(number)])
}

/// Tries an edit; one that makes no sense here is none.
fn edit(root: &Path, edit: &Edit, seed: u64) {
    let open =
        |number: u8| fs::OpenOptions::new().write(true).create(true).truncate(false).open(name(root, number));
    let _ = match edit {
        Edit::Write { name, at, length } => {
            open(*name).and_then(|file| file.write_all_at(&noise(seed, usize::from(*length)), u64::from(*at)))
        }
        Edit::Zero { name, at, length } => {
            open(*name).and_then(|file| file.write_all_at(&vec![0; usize::from(*length)], u64::from(*at)))
        }
        Edit::Cut { name, to } => open(*name).and_then(|file| file.set_len(u64::from(*to))),
        Edit::Replace { name: number, length } => {
            let next = root.join("replacement");
            fs::write(&next, noise(seed, *length as usize))
                .and_then(|()| fs::rename(&next, name(root, *number)))
        }
        Edit::Rename { name: from, to } => fs::rename(name(root, *from), name(root, *to)),
        Edit::Link { name: from, to } => fs::hard_link(name(root, *from), name(root, *to)),
        Edit::Point { name: number } => symlink(format!("target-{seed}"), name(root, *number)),
        Edit::Folder { name: number } => fs::create_dir_all(name(root, *number)),
        Edit::Remove { name: number } => {
            fs::remove_file(name(root, *number)).or_else(|_| fs::remove_dir_all(name(root, *number)))
        }
        Edit::Mode { name: number, mode } => {
            let mode = fs::Permissions::from_mode(u32::from(*mode) | 0o700);
            match fs::symlink_metadata(name(root, *number)) {
                Ok(meta) if !meta.is_symlink() => fs::set_permissions(name(root, *number), mode),
                _ => Ok(()),
            }
        }
    };
    let _ = fs::remove_file(root.join("replacement"));
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_edits_both_trees_are_the_same(rounds in prop::collection::vec(edits(), 2..4)) {
        run(async {
            let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
            let source = east.path().join("source");
            fs::create_dir(&source).unwrap();
            let mut peer = Peer::new(west.path()).await;
            for (round, edits) in rounds.iter().enumerate() {
                edits.iter().enumerate().for_each(|(at, one)| edit(&source, one, (round * 100 + at) as u64));
                let generation = format!("g{round}");
                let mut job = job(east.path(), &generation);
                job.may_be_empty = true;
                sync(tree(&source), peer.address, job).await.unwrap();
                peer.completed().await;
                same(&source, &peer.staging());
                peer.publish(&generation);
            }
        });
    }

    #[test]
    fn after_any_writes_both_devices_are_the_same(
        writes in prop::collection::vec((0..1_000_000_u32, 1..40_000_u16, any::<bool>()), 1..20),
        split in 0..20_usize,
    ) {
        run(async {
            let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
            let (source, target) = (east.path().join("device"), west.path().join("device"));
            let file = fs::File::create(&source).unwrap();
            file.set_len(1_050_000).unwrap();
            fs::write(&target, noise(5, 1000)).unwrap();
            let mut peer = Peer::without_destination(west.path()).await;
            let (first, second) = writes.split_at(split.min(writes.len()));
            for (round, writes) in [first, second].into_iter().enumerate() {
                for (seed, (at, length, zero)) in writes.iter().enumerate() {
                    let length = usize::from(*length);
                    let bytes = if *zero { vec![0; length] } else { noise((round * 100 + seed) as u64, length) };
                    file.write_all_at(&bytes, u64::from(*at)).unwrap();
                }
                let base = (round > 0).then_some("g0");
                peer.expect(base, |destination| {
                    destination.place = Place::Device(target.clone());
                    destination.incarnation = format!("copy-{round}");
                });
                let device = Source::Device { path: source.clone(), changed: None };
                sync(device, peer.address, job(east.path(), &format!("g{round}"))).await.unwrap();
                peer.completed().await;
                assert!(fs::read(&source).unwrap() == fs::read(&target).unwrap());
            }
        });
    }
}
