//! The power fails between any two commands of LVM: nothing that was confirmed is lost, and nothing is left over.
//!
//! A few places by default, chosen by `LIFEBOAT_POWER_SEED`; all of them with `LIFEBOAT_POWER_ALL=1`.

use crate::real::{make_group, run};
use crate::suite::{SMALL, copy, tags, volume};
use async_trait::async_trait;
use lifeboat_lvm::{
    Access, AccessMode, Config, Error, Lvm, Output, Patience, Program, Run, Snapshot, Storage, Wipe,
};
use lifeboat_vm::{Machine, step, test_name};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Changing commands and wipes in the whole story; a wrong number fails the test.
const COMMANDS: usize = 17;

const ENOUGH: Duration = Duration::from_secs(180);

const PATTERN: &[u8] = b"what was written and synced";

/// Ends this process in place of the command of that number, as a power cut would.
struct Cut {
    program: Program,
    at: usize,
    count: AtomicUsize,
}

impl Cut {
    fn next(&self) {
        if self.count.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            std::process::exit(70);
        }
    }
}

#[async_trait]
impl Run for Cut {
    async fn lvm(&self, arguments: &[String], patience: Patience) -> std::io::Result<Output> {
        if patience == Patience::Endless {
            self.next();
        }
        self.program.lvm(arguments, patience).await
    }

    async fn wipe(&self, device: &Path, how: Wipe) -> std::io::Result<()> {
        self.next();
        self.program.wipe(device, how).await
    }
}

fn open(at: usize) -> (Storage, Arc<Cut>) {
    let config = r#"
lvm-command-prefix: [lvm]
device-classes:
  - {name: thick, volume-group: g, spare-gb: 0}
  - {name: thin, volume-group: g, type: thin, thin-pool: {name: pool, overprovision-ratio: 4}}
"#;
    let cut = Arc::new(Cut { program: Program::direct(), at, count: AtomicUsize::new(0) });
    (Storage::open(Config::read(config).unwrap(), cut.clone()).unwrap(), cut)
}

/// What survives a power cut about the story itself: a number in its own place on the third disk.
fn note(place: u64, number: u64) {
    let mut disk = std::fs::OpenOptions::new().write(true).open("/dev/vdc").unwrap();
    disk.seek(SeekFrom::Start(place * 4096)).unwrap();
    disk.write_all(&number.to_le_bytes()).unwrap();
    disk.sync_all().unwrap();
}

fn noted(place: u64) -> u64 {
    let mut disk = std::fs::File::open("/dev/vdc").unwrap();
    disk.seek(SeekFrom::Start(place * 4096)).unwrap();
    let mut number = [0; 8];
    disk.read_exact(&mut number).unwrap();
    u64::from_le_bytes(number)
}

fn free() -> u64 {
    run(&["vgs", "--noheadings", "--nosuffix", "--units", "b", "-o", "vg_free", "g"]).trim().parse().unwrap()
}

fn imprint(volume: &lifeboat_lvm::Volume) {
    let Access::Device(path) = &volume.access else { panic!("no device") };
    let mut disk = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    disk.write_all(PATTERN).unwrap();
    disk.sync_all().unwrap();
}

/// The story, one confirmed step at a time. Done again after a cut, a step finds its work done or does it.
async fn perform(storage: &Storage, number: usize) -> Option<Result<(), Error>> {
    let done = |result: Result<(), Error>| match result {
        Err(Error::Exists { .. } | Error::NoVolume { .. }) => Ok(()),
        other => other,
    };
    let none = tags(&[]);
    let cow = || Snapshot { short_lived: Some(SMALL), ..copy("thick", "cow", "a", AccessMode::ReadOnly) };
    let clone = || Snapshot { size: 2 * SMALL, ..copy("thin", "c", "s", AccessMode::ReadWrite) };
    Some(match number {
        0 | 1 => {
            let (class, name) = [("thick", "a"), ("thin", "t")][number];
            let made = done(storage.create(volume(class, name, SMALL)).await.map(drop));
            let found = crate::suite::find(storage, class, name).await;
            made.map(|()| imprint(&found.unwrap()))
        }
        2 => done(storage.snapshot(copy("thin", "s", "t", AccessMode::ReadOnly)).await.map(drop)),
        3 => done(storage.snapshot(clone()).await.map(drop)),
        4 => storage.resize("thick", "a", 2 * SMALL).await.map(drop),
        5 => done(storage.create(volume("thick", "staging", SMALL)).await.map(drop)),
        6 => done(storage.rename("thick", "staging", "x").await),
        7 => storage.retag("thick", "x", &tags(&["published"]), &none).await,
        8 => done(storage.snapshot(cow()).await.map(drop)),
        9 => done(storage.remove("thick", "cow").await),
        10 => done(storage.remove("thick", "x").await),
        11 => done(storage.remove("thin", "s").await),
        12 => done(storage.remove("thin", "t").await),
        _ => return None,
    })
}

async fn go_on(storage: &Storage) {
    while let Some(result) = perform(storage, usize::try_from(noted(0)).unwrap()).await {
        result.unwrap();
        note(0, noted(0) + 1);
    }
}

/// The volumes after so many steps.
fn expected(steps: usize) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, from, to) in [
        ("a", 1, 99),
        ("c", 4, 99),
        ("cow", 9, 10),
        ("s", 3, 12),
        ("staging", 6, 7),
        ("t", 2, 13),
        ("x", 7, 11),
    ] {
        if (from..to).contains(&steps) {
            names.push(name);
        }
    }
    names
}

async fn work(at: usize) {
    make_group();
    note(0, 0);
    note(1, free());
    let (storage, cut) = open(at);
    go_on(&storage).await;
    assert_eq!(cut.count.load(Ordering::SeqCst), COMMANDS, "the story has another number of commands");
}

async fn check() {
    // Nothing in the machine activates volumes by itself; ours are our own business.
    run(&["lvchange", "-a", "y", "g/pool"]);
    let (storage, _) = open(usize::MAX);
    storage.recover().await;
    let mut names: Vec<String> = run(&["lvs", "--noheadings", "-o", "lv_name", "g"])
        .split_whitespace()
        .map(str::to_owned)
        .filter(|name| name != "pool")
        .collect();
    names.sort();
    let steps = usize::try_from(noted(0)).unwrap();
    assert!(names == expected(steps) || names == expected(steps + 1), "{steps} steps, then {names:?}");
    for class in ["thick", "thin"] {
        for found in storage.volumes(class).await.unwrap() {
            assert_eq!(found.attr.as_bytes()[4], b'a', "{found:?} is active");
        }
    }
    go_on(&storage).await;
    for (class, name) in [("thick", "a"), ("thin", "c")] {
        let found = storage.volumes(class).await.unwrap();
        let [only] = &found[..] else { panic!("{found:?}") };
        assert_eq!((only.name.as_str(), only.size), (name, 2 * SMALL));
        let Access::Device(path) = &only.access else { panic!("no device") };
        let mut begin = vec![0; PATTERN.len()];
        std::fs::File::open(path).unwrap().read_exact(&mut begin).unwrap();
        assert_eq!(begin, PATTERN, "{name}");
    }
    assert_eq!(noted(1) - free(), 2 * SMALL, "all room but that of volume a is back");
}

#[tokio::test]
async fn a_power_cut_between_commands_loses_and_leaks_nothing() {
    match step().as_deref().map(|step| step.split_once(' ').unwrap_or((step, ""))) {
        Some(("work", at)) => return work(at.parse().unwrap()).await,
        Some(("check", _)) => return check().await,
        _ => {}
    }
    for at in places() {
        let builder = Machine::builder().disk(1 << 30).disk(1 << 30).disk(1 << 20).this_test_binary();
        let Some(mut machine) = builder.boot_or_skip(test_name!()) else { return };
        let worked = machine.run_this_test(test_name!(), &format!("work {at}"), ENOUGH);
        assert_eq!(worked.is_ok(), at > COMMANDS, "before command {at}: {worked:?}");
        machine.power_cut();
        machine.power_on().unwrap();
        let checked = machine.run_this_test(test_name!(), "check", ENOUGH);
        assert!(checked.is_ok(), "cut before command {at}: {}", checked.err().unwrap());
    }
}

fn places() -> Vec<usize> {
    if std::env::var("LIFEBOAT_POWER_ALL").is_ok() {
        return (1..=COMMANDS + 1).collect();
    }
    let seed =
        std::env::var("LIFEBOAT_POWER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_usize);
    // The commands of the larger clone and of the wiped removal, and two by the seed.
    let mut places = vec![5, 14, 1 + seed * 7 % COMMANDS, COMMANDS + 1];
    places.sort_unstable();
    places.dedup();
    places
}
