//! Tests that run themselves in the machine, one after the other in the same one.

use std::path::Path;
use std::time::Duration;

use lifeboat_vm::{Kit, Machine, Shared, disk, in_machine, step, test_name};

use crate::storage::run;

/// A machine with a program that Debian's parts do not have.
static WITH_PROGRAM: Shared = Shared::new(|| Machine::builder().program("/usr/bin/env", "/opt/tools/env"));
static OWN: Shared = Shared::new(|| Machine::builder().disk(1 << 30).disk(1 << 30).disk(1 << 30));
static HASTY: Shared = Shared::new(Machine::builder).deadline(Duration::from_secs(15));

/// What a test left running holds its outputs, a mount and a volume, and is gone all the same when the next one comes.
#[expect(clippy::zombie_processes, reason = "that nobody waits for them is the point")]
fn leaves_programs_running() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "cd '/mnt/with space' && exec sleep 3000"]).spawn().unwrap();
    let mut command = std::process::Command::new("setsid");
    command.args(["sh", "-c", "cd '/mnt/with space' && exec sleep 3000 >/dev/null 2>&1"]).spawn().unwrap();
}

/// Whoever comes second finds nothing of the same names.
fn makes_the_only_volume_group() {
    assert_eq!(run(&["vgs", "--noheadings"]), "");
    assert!(!Path::new("/dev/mine").exists());
    assert!(!Path::new("/tmp/left").exists());
    assert!(!run(&["ps", "-o", "args"]).contains("sleep 3000"));
    run(&["vgcreate", "mine", &disk(0), &disk(2)]);
    run(&["lvcreate", "-y", "-L", "64m", "-n", "volume", "mine"]);
    run(&["lvcreate", "-y", "-T", "-L", "64m", "-V", "64m", "-n", "thin", "mine/pool"]);
    run(&["mkfs.ext4", "-q", "/dev/mine/volume"]);
    std::fs::create_dir_all("/mnt/with space").unwrap();
    run(&["mount", "/dev/mine/volume", "/mnt/with space"]);
    std::fs::write("/tmp/left", "over").unwrap();
    leaves_programs_running();
}

#[test]
fn tests_share_one_machine_and_each_finds_it_like_new() {
    if step().is_some() {
        return makes_the_only_volume_group();
    }
    let name = test_name!();
    OWN.runs_elsewhere(name);
    let first = OWN.emulator();
    OWN.runs_elsewhere(name);
    assert_eq!(OWN.emulator(), first, "it could not be made like new, and another one was booted");
}

#[test]
fn programs_of_the_host_come_along() {
    in_machine!(WITH_PROGRAM);
    let text = run(&["/opt/tools/env", "A=b", "sh", "-c", "echo $A"]);
    assert_eq!(text, "b\n");
}

#[test]
#[expect(clippy::print_stdout, reason = "what a test writes before it hangs has to come out")]
fn a_test_that_hangs_in_the_machine_fails_on_the_host() {
    if step().is_some() {
        println!("about to hang");
        std::thread::sleep(Duration::from_secs(1000));
    }
    let name = test_name!();
    let outcome = std::panic::catch_unwind(|| HASTY.runs_elsewhere(name));
    if let Err(missing) = Kit::in_cache() {
        return assert!(!missing.path.exists(), "it was skipped, and has said so");
    }
    let panic = outcome.unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    for part in [name, "not done after 15s", "about to hang", "last words of the kernel"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}
