//! This machine: starts, ends, signals, leftovers, and snapshots that are one moment.

use lifeboat_engine::{Clock, ObjectKey};
use lifeboat_lvm::{Access, AccessMode, Consistency, Create, Directories, DirectoryClass, Lvm, Snapshot};
use lifeboat_runner::{
    LocalMachine, LocalSetup, Machine, MachineError, Mounted, Process, ProcessId, Run, Signal, State,
};
use std::path::{Path, PathBuf};

pub fn setup(home: &Path) -> LocalSetup {
    let program = |name: &str| (name.to_owned(), PathBuf::from(format!("/bin/{name}")));
    LocalSetup {
        folder: home.join("pods"),
        logs: home.join("logs"),
        programs: [program("sh"), program("sleep")].into(),
    }
}

fn machine(home: &Path) -> LocalMachine {
    LocalMachine::open(setup(home), Clock::system()).unwrap()
}

fn key() -> ObjectKey {
    ObjectKey::new("default", "p")
}

fn id() -> ProcessId {
    ProcessId { pod: "uid".to_owned(), container: "main".to_owned() }
}

fn run(argv: &[&str]) -> Run {
    Run {
        id: id(),
        key: key(),
        restarts: 0,
        in_a_row: 0,
        argv: argv.iter().map(ToString::to_string).collect(),
        env: vec![],
        mounts: vec![],
    }
}

fn now(machine: &LocalMachine) -> Process {
    machine.of(&key()).into_iter().next().unwrap()
}

async fn ended(machine: &LocalMachine) -> (i32, Option<i32>) {
    let mut changes = machine.changes();
    loop {
        if let State::Ended(end) = now(machine).state {
            return (end.code, end.signal);
        }
        changes.changed().await.unwrap();
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits for something that no event tells of.
#[expect(clippy::disallowed_methods, reason = "other processes are waited for, in real time")]
fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if is() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{what} did not come");
}

#[tokio::test]
async fn a_process_ends_as_it_is_told() {
    let check = async |argv: &[&str], signal: Option<Signal>, expected: (i32, Option<i32>)| {
        let home = tempfile::tempdir().unwrap();
        let machine = machine(home.path());
        machine.start(run(argv)).await.unwrap();
        if let Some(signal) = signal {
            machine.signal(&id(), signal).await.unwrap();
        }
        assert_eq!(ended(&machine).await, expected, "{argv:?}");
        machine.signal(&id(), Signal::Kill).await.unwrap();
        machine.clear("uid").await.unwrap();
        assert!(machine.of(&key()).is_empty());
    };
    check(&["sh", "-c", "exit 3"], None, (3, None)).await;
    check(&["sh", "-c", "true"], None, (0, None)).await;
    check(&["sleep", "600"], Some(Signal::Terminate), (143, Some(15))).await;
    check(&["sleep", "600"], Some(Signal::Kill), (137, Some(9))).await;
}

#[tokio::test]
async fn only_programs_on_the_list_are_run() {
    let home = tempfile::tempdir().unwrap();
    let machine = machine(home.path());
    let refused = machine.start(run(&["/bin/sh"])).await;
    assert_eq!(refused, Err(MachineError::NotAllowed("/bin/sh".to_owned())));
    assert!(machine.of(&key()).is_empty());
}

#[tokio::test]
async fn a_process_gets_only_what_it_is_given() {
    let home = tempfile::tempdir().unwrap();
    let volume = home.path().join("v").join("data");
    std::fs::create_dir_all(&volume).unwrap();
    let machine = machine(home.path());
    let mounts = vec![Mounted {
        volume: "data".to_owned(),
        path: "/srv/data".to_owned(),
        below: None,
        folder: Some(volume.clone()),
        handle: Some("h".to_owned()),
    }];
    let script = "echo told; env > env; mv env srv/data/env; exec sleep 600";
    let env = vec![("NAME".to_owned(), "value".to_owned())];
    machine.start(Run { mounts, env, ..run(&["sh", "-c", script]) }).await.unwrap();
    assert_eq!(machine.users()["h"].len(), 1);
    until("the file", || {
        std::fs::read_to_string(volume.join("env")).is_ok_and(|text| text.contains("NAME=value"))
    });
    let env = std::fs::read_to_string(volume.join("env")).unwrap();
    assert!(env.contains(&format!("LIFEBOAT_VOLUME_DATA={}", volume.display())), "{env}");
    assert!(!env.contains("CARGO"), "nothing of the runner's own environment: {env}");
    machine.signal(&id(), Signal::Terminate).await.unwrap();
    ended(&machine).await;
    assert!(machine.users().is_empty());
    assert_eq!(std::fs::read_to_string(machine.log(&key(), "main")).unwrap(), "told\n");
}

#[tokio::test]
async fn what_an_earlier_runner_left_is_killed_before_anything_starts() {
    let home = tempfile::tempdir().unwrap();
    let first = machine(home.path());
    // Its own child carries the mark as well.
    first.start(run(&["sh", "-c", "sleep 600 & wait"])).await.unwrap();
    let pid = now(&first).pid;
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    until("the child", || !children().is_empty());
    let child: u32 = children().trim().parse().unwrap();
    // As after `kill -9`: nobody cleans up.
    std::mem::forget(first);
    assert!(is_alive(pid) && is_alive(child));
    let other = tempfile::tempdir().unwrap();
    let _elsewhere = machine(other.path());
    assert!(is_alive(pid), "another runner's processes are its own");
    let _second = machine(home.path());
    assert!(!is_alive(child));
    until("the end", || !is_alive(pid));
}

#[tokio::test]
async fn a_dropped_machine_takes_its_processes_along() {
    let home = tempfile::tempdir().unwrap();
    let machine = machine(home.path());
    machine.start(run(&["sleep", "600"])).await.unwrap();
    let pid = now(&machine).pid;
    drop(machine);
    until("the end", || !is_alive(pid));
}

/// A program that knows nothing of gates writes pairs of files; a snapshot never has one without the other for longer than a write takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_running_process_is_one_moment() {
    let home = tempfile::tempdir().unwrap();
    let class = DirectoryClass::new("dir", home.path().join("disks")).default_class();
    let disks = Directories::new(vec![class]).unwrap();
    let create = Create {
        class: String::new(),
        name: "v".to_owned(),
        size: 1 << 20,
        tags: [].into(),
        options: String::new(),
    };
    let Access::Directory(folder) = disks.create(create).await.unwrap().access else { panic!("no folder") };
    let machine = machine(home.path());
    let mounts = vec![Mounted {
        volume: "data".to_owned(),
        path: "/data".to_owned(),
        below: None,
        folder: Some(folder.clone()),
        handle: Some("v".to_owned()),
    }];
    let script = "n=0; while :; do n=$((n+1)); echo $n > data/a; echo $n > data/b; done";
    machine.start(Run { mounts, ..run(&["sh", "-c", script]) }).await.unwrap();
    let number = |folder: &Path, name: &str| -> i64 {
        std::fs::read_to_string(folder.join(name)).unwrap_or_default().trim().parse().unwrap_or(-1)
    };
    until("some writes", || number(&folder, "b") > 10);
    for take in 0..5 {
        let wanted = Snapshot {
            class: String::new(),
            source: "v".to_owned(),
            name: format!("s{take}"),
            size: 0,
            tags: [].into(),
            mode: AccessMode::ReadOnly,
            short_lived: None,
        };
        let snapped = disks.snapshot(wanted).await.unwrap();
        assert_eq!(snapped.consistency, Consistency::Crash);
        let Access::Directory(taken) = snapped.volume.access else { panic!("no folder") };
        let (a, b) = (number(&taken, "a"), number(&taken, "b"));
        // A file that was just cut to nothing before its number came reads as -1: that is what a crash leaves.
        assert!(a == -1 || b == -1 || a == b || a == b + 1, "{a} and {b} were never there together");
        let before = number(&folder, "a").max(number(&folder, "b"));
        until("it goes on", || number(&folder, "b") > before);
    }
}
