//! Dies after every record of a sync, goes on from every point that could have been the last safe one, and compares.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::both;
use super::trees::{copy, corpus, noise, same};
use crate::apply::{Applier, Place, Policy};
use crate::index::{Index, Table, Writing};
use crate::send::sink::Sink;
use crate::tree::{Run, Trust, census, walk};
use crate::wire::record::{Kind, Record, decode, encode};

const HASHED_UNDER: [u8; 32] = [7; 32];

/// A record with the data that follows it.
type Step = (Record, Vec<u8>);

/// Every record of a sync from one tree to another.
async fn steps(base: Option<&Index>, source: &Path, folder: &Path) -> Vec<Step> {
    let (near, mut far) = both().await;
    let read = tokio::task::spawn_blocking(move || {
        let (mut steps, mut frame) = (Vec::new(), Vec::new());
        loop {
            far.reader.read(&mut frame).unwrap();
            let mut rest = frame.as_slice();
            while !rest.is_empty() {
                let (record, after) = decode::<Record>(rest).unwrap();
                let length = if let Record::Data { stored, .. } = record { stored as usize } else { 0 };
                let (data, after) = after.split_at(length);
                rest = after;
                if matches!(record, Record::End { .. }) {
                    return steps;
                }
                steps.push((record, data.to_vec()));
            }
        }
    });
    let root = walk::open_root(source).unwrap();
    let run = Run {
        root: root.as_fd(),
        base,
        trust: Trust::Stamps,
        secret: HASHED_UNDER,
        may_be_empty: false,
        now: (i64::MAX, 0),
    };
    let mut sink = Sink::new(near.writer.clone(), true, None, &|| Ok(()), &|_| {}).unwrap();
    let mut writing = Writing::create(&folder.join("next")).unwrap();
    run.tell(&mut sink, &mut writing).unwrap();
    let end = Record::End { digest: [0; 32], entries: 0, content: None };
    near.writer.push(256, |frame| encode(&end, frame)).unwrap();
    near.writer.flush().unwrap();
    read.await.unwrap()
}

fn apply(target: &Path, open: Option<Record>, steps: &[Step]) {
    let place = Place::Tree(target.to_owned());
    let mut applier = Applier::open(&place, Policy::default(), Kind::Tree, HASHED_UNDER).unwrap();
    if let Some(open) = open {
        applier.reopen(open).unwrap();
    }
    for (record, data) in steps {
        match record {
            Record::Data { offset, length, packed, .. } => {
                applier.data(*offset, *length, data, *packed).unwrap();
            }
            Record::Barrier => {}
            record => applier.apply(record.clone()).unwrap(),
        }
    }
}

/// What was open after so many steps, or `None` inside when no checkpoint can be there.
fn open_after(steps: &[Step]) -> Option<Option<Record>> {
    let mut open = None;
    let mut attributes = false;
    for (record, _) in steps {
        match record {
            Record::File { .. } | Record::Folder { .. } | Record::Symlink { .. } | Record::Special { .. } => {
                open = Some(record.clone());
            }
            Record::Attribute { .. } => attributes = true,
            Record::Close { .. } => (open, attributes) = (None, false),
            Record::Link { .. } => open = None,
            _ => {}
        }
    }
    (!attributes).then_some(open)
}

async fn dies_at_every_step(base: Option<(&Path, &Index)>, source: &Path, folder: &Path) {
    let steps = steps(base.map(|(_, index)| index), source, folder).await;
    let target = folder.join("target");
    let barrier = steps.iter().position(|(record, _)| *record == Record::Barrier).map_or(0, |at| at + 1);
    let mut tried = 0;
    for died in 0..=steps.len() {
        // Behind the barrier, the barrier is the earliest point to go on from.
        let earliest = if died >= barrier { barrier } else { 0 };
        for from in [earliest, usize::midpoint(earliest, died), died] {
            let Some(open) = open_after(&steps[..from]) else { continue };
            let _ = fs::remove_dir_all(&target);
            match base {
                Some((tree, _)) => copy(tree, &target),
                None => fs::create_dir(&target).unwrap(),
            }
            apply(&target, None, &steps[..died]);
            apply(&target, open, &steps[from..]);
            same(source, &target);
            tried += 1;
        }
    }
    assert!(tried > steps.len(), "{tried} of {}", steps.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_sync_survives_a_death_at_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    corpus(&source);
    dies_at_every_step(None, &source, folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_of_changes_survives_a_death_at_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let (base, source) = (folder.path().join("base"), folder.path().join("source"));
    fs::create_dir(&source).unwrap();
    for n in 0..6 {
        fs::write(source.join(format!("log.{n}")), noise(n, 20_000)).unwrap();
    }
    fs::create_dir(source.join("old")).unwrap();
    fs::write(source.join("old/file"), noise(10, 9000)).unwrap();
    fs::write(source.join("linked"), noise(11, 9000)).unwrap();
    fs::hard_link(source.join("linked"), source.join("old/linked")).unwrap();
    fs::hard_link(source.join("linked"), source.join("linked-too")).unwrap();
    copy(&source, &base);
    let root = walk::open_root(&source).unwrap();
    let index = census(root.as_fd(), HASHED_UNDER, &folder.path().join("index"), &|| Ok(())).unwrap();

    // Two files change places, logs rotate, a directory moves, a file becomes a directory and the other way round, names part.
    fs::rename(source.join("log.0"), source.join("tmp")).unwrap();
    fs::rename(source.join("log.1"), source.join("log.0")).unwrap();
    fs::rename(source.join("tmp"), source.join("log.1")).unwrap();
    fs::remove_file(source.join("log.5")).unwrap();
    fs::rename(source.join("log.4"), source.join("log.5")).unwrap();
    fs::rename(source.join("log.3"), source.join("log.4")).unwrap();
    fs::write(source.join("log.3"), b"new").unwrap();
    fs::create_dir(source.join("new")).unwrap();
    fs::rename(source.join("old"), source.join("new/old")).unwrap();
    fs::write(source.join("old"), b"was a directory").unwrap();
    fs::remove_file(source.join("linked-too")).unwrap();
    fs::write(source.join("linked-too"), b"a file of its own").unwrap();
    fs::hard_link(source.join("linked-too"), source.join("linked-three")).unwrap();
    let log = fs::OpenOptions::new().write(true).open(source.join("log.2")).unwrap();
    log.write_all_at(&noise(12, 100), 5000).unwrap();
    log.set_len(12_000).unwrap();
    dies_at_every_step(Some((&base, &index)), &source, folder.path()).await;
}

#[test]
fn a_table_keeps_its_words() {
    let table = Table { generation: "g".into(), secret: [0; 32], device: false, entries: Vec::new() };
    let mut bytes = Vec::new();
    encode(&table, &mut bytes).unwrap();
    assert_eq!(decode::<Table>(&bytes).unwrap().0, table);
}
