//! Files as crashes, older versions and broken disks leave them.

use super::*;

fn write(opened: &mut Opened, revision: u64, name: &str, json: Option<&[u8]>) {
    let mut bytes = Vec::new();
    format::push(&mut bytes, revision, ["things", "", name], json);
    append(opened, &mut bytes, revision).expect("appended");
}

fn compact(opened: &mut Opened) {
    write_snapshot(&mut opened.media).expect("written");
    begin_log(&mut opened.media).expect("begun");
    opened.log_bytes = BATCHES.len() as u64;
}

fn contents(folder: &Path) -> (u64, Vec<(u64, String)>) {
    let mut found = std::collections::BTreeMap::new();
    let opened = open(folder, |record| {
        match record.json {
            Some(_) => found.insert(record.name, record.revision),
            None => found.remove(&record.name),
        };
        Ok(())
    });
    let revision = opened.expect("opens").revision;
    (revision, found.into_iter().map(|(name, revision)| (revision, name)).collect())
}

#[test]
fn a_rewritten_log_holds_the_same_even_if_the_rewrite_dies_half_way() {
    let folder = tempfile::tempdir().expect("folder");
    let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
    write(&mut opened, 2, "a", Some(b"{}"));
    write(&mut opened, 3, "b", Some(b"{}"));
    write(&mut opened, 4, "b", None);
    let before = std::fs::read(folder.path().join(LOG)).expect("log");
    compact(&mut opened);
    drop(opened);
    let wanted = (4, vec![(2, "a".to_owned())]);
    assert_eq!(contents(folder.path()), wanted);
    // Died after the snapshot and before the log was emptied.
    std::fs::write(folder.path().join(LOG), before).expect("log");
    assert_eq!(contents(folder.path()), wanted);
    let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
    write(&mut opened, 5, "c", Some(b"{}"));
    compact(&mut opened);
    write(&mut opened, 6, "d", Some(b"{}"));
    drop(opened);
    assert_eq!(contents(folder.path()), (6, vec![(2, "a".into()), (5, "c".into()), (6, "d".into())]));
}

#[test]
fn damage_before_the_last_batch_is_refused_with_its_place_and_cuts_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
    let mut places = Vec::new();
    for revision in 2..6 {
        places.push(opened.log_bytes);
        write(&mut opened, revision, &format!("m{revision}"), Some(b"{}"));
    }
    drop(opened);
    let log = folder.path().join(LOG);
    let whole = std::fs::read(&log).expect("log");
    let last = *places.last().expect("batches");
    for at in BATCHES.len()..usize::try_from(last).expect("small") {
        for flip in [0x01, 0x10, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            std::fs::write(&log, &bytes).expect("written");
            let error = open(folder.path(), |_| Ok(())).err().expect("refused");
            let place = places.iter().rfind(|place| **place <= at as u64).expect("a batch");
            assert!(error.to_string().contains(&format!("damaged at byte {place}:")), "byte {at}: {error}");
            assert_eq!(std::fs::read(&log).expect("log"), bytes, "nothing was changed");
        }
    }
}

#[test]
fn zeros_behind_the_last_batch_were_never_acknowledged() {
    for first_version in [false, true] {
        for zeros in [1, 7, 8, 19, 20, 64, 4096, 10_000] {
            let folder = tempfile::tempdir().expect("folder");
            let log = folder.path().join(LOG);
            if first_version {
                std::fs::write(&log, old_log(2..4)).expect("written");
            } else {
                let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
                write(&mut opened, 2, "m2", Some(b"{}"));
                write(&mut opened, 3, "m3", Some(b"{}"));
            }
            let mut bytes = std::fs::read(&log).expect("log");
            bytes.resize(bytes.len() + zeros, 0);
            std::fs::write(&log, bytes).expect("written");
            let wanted = (3, vec![(2, "m2".into()), (3, "m3".into())]);
            assert_eq!(contents(folder.path()), wanted, "{zeros} zeros, first version: {first_version}");
        }
    }
}

fn old_log(revisions: std::ops::Range<u64>) -> Vec<u8> {
    let mut bytes = RECORDS.to_vec();
    for revision in revisions {
        format::alone(&mut bytes, revision, ["things", "", &format!("m{revision}")], Some(b"{}"));
    }
    bytes
}

#[test]
fn a_log_of_the_first_version_is_read_and_becomes_one_of_batches() {
    let folder = tempfile::tempdir().expect("folder");
    let log = folder.path().join(LOG);
    std::fs::write(&log, old_log(2..5)).expect("written");
    let wanted = |newest: u64| (newest, (2..=newest).map(|n| (n, format!("m{n}"))).collect::<Vec<_>>());
    assert_eq!(contents(folder.path()), wanted(4));
    assert!(std::fs::read(&log).expect("log").starts_with(BATCHES));
    let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
    write(&mut opened, 5, "m5", Some(b"{}"));
    drop(opened);
    assert_eq!(contents(folder.path()), wanted(5));
    // Died after the new snapshot and before the new log.
    std::fs::remove_file(folder.path().join(SNAPSHOT)).expect("there");
    std::fs::write(&log, old_log(2..5)).expect("written");
    let mut media = Folder::new(folder.path());
    write_snapshot(&mut media).expect("written");
    assert_eq!(contents(folder.path()), wanted(4));
}

#[test]
fn damage_in_a_log_of_the_first_version_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let log = folder.path().join(LOG);
    let mut bytes = old_log(2..6);
    bytes[RECORDS.len() + 2] ^= 0x10;
    std::fs::write(&log, &bytes).expect("written");
    let error = open(folder.path(), |_| Ok(())).err().expect("refused");
    assert!(error.to_string().contains("damaged at byte 8"), "{error}");
    assert_eq!(std::fs::read(&log).expect("log"), bytes, "nothing was changed");
}

#[test]
fn a_log_whose_beginning_never_reached_the_disk_is_empty() {
    for bytes in [&b""[..], b"LBST", &[0; 5], &[0; 8]] {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join(LOG), bytes).expect("written");
        assert_eq!(contents(folder.path()), (0, vec![]), "{bytes:?}");
    }
}
