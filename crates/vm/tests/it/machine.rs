//! What a test does with a machine from the outside: programs, files, deadlines, power.

use std::path::Path;
use std::time::{Duration, Instant};

use lifeboat_vm::{Error, Machine, Status, step, test_name};

/// Far more than anything here takes.
const ENOUGH: Duration = Duration::from_secs(120);

#[test]
fn programs_run_and_are_told_apart_from_the_kernel() {
    let Some(machine) = Machine::builder().boot_or_skip(test_name!()) else { return };
    let check = |argv: &[&str], status: Status, stdout: &str, stderr: &str| {
        let output = machine.run(argv, ENOUGH).unwrap();
        let found = (output.status, output.stdout.as_str(), output.stderr.as_str());
        assert_eq!(found, (status, stdout, stderr), "{argv:?}");
    };
    check(&["echo", "a", "b c"], Status::Code(0), "a b c\n", "");
    check(&["sh", "-c", "echo out; echo err >&2; exit 3"], Status::Code(3), "out\n", "err\n");
    check(&["sh", "-c", "kill -9 $$"], Status::Signal(9), "", "");
    // A flood of kernel messages at the same time does not get into the program's output.
    let noise = "for i in $(seq 50); do echo \"<0>noise $i\" > /dev/kmsg; echo $i; done | tail -n 1";
    check(&["sh", "-c", noise], Status::Code(0), "50\n", "");
    assert!(machine.kernel_log().contains("noise 50"), "{}", machine.kernel_log());
    // More than any pipe or queue holds.
    let output = machine.run(&["sh", "-c", "seq 200000"], ENOUGH).unwrap();
    assert_eq!(output.stdout.lines().count(), 200_000);

    let output = machine.run_with(&["sh", "-c", "cat; echo $WORD"], &[("WORD", "set")], b"given ", ENOUGH);
    assert_eq!(output.unwrap().stdout, "given set\n");

    let error = machine.run(&["no-such-program"], ENOUGH).unwrap_err();
    assert!(matches!(&error, Error::Refused { why } if why.contains("no-such-program")), "{error}");
    let error = machine.run(&["false"], ENOUGH).unwrap().ok().unwrap_err();
    assert!(error.to_string().contains("exit code 1"), "{error}");

    machine.write("/tmp/deep/down", b"\0\xff text").unwrap();
    assert_eq!(machine.read("/tmp/deep/down").unwrap(), b"\0\xff text");
    let error = machine.read("/tmp/nothing").unwrap_err();
    assert!(error.to_string().contains("/tmp/nothing"), "{error}");
}

#[test]
fn a_program_in_the_background_is_watched_and_killed() {
    let Some(machine) = Machine::builder().boot_or_skip(test_name!()) else { return };
    let script = "echo one; echo two >&2; echo ready; sleep 1000 & wait";
    let mut running = machine.spawn(&["sh", "-c", script]).unwrap();
    assert_eq!(running.line_with("ready", ENOUGH).unwrap(), "ready");
    assert_eq!(running.line_with("tw", ENOUGH).unwrap(), "two");
    // Meanwhile the machine does other things.
    assert_eq!(machine.run(&["echo", "still here"], ENOUGH).unwrap().stdout, "still here\n");
    let sleeps = || machine.run(&["pidof", "sleep"], ENOUGH).unwrap().success();

    running.kill().unwrap();
    assert_eq!(running.wait_for_end(ENOUGH).unwrap(), Status::Signal(9));
    assert!(sleeps(), "what a killed program started lives on");
    let error = running.line_with("never written", Duration::from_millis(300)).unwrap_err();
    assert!(error.to_string().contains("never written"), "{error}");

    let mut group = machine.spawn(&["sh", "-c", "sleep 2000 & echo ready; wait"]).unwrap();
    group.line_with("ready", ENOUGH).unwrap();
    group.kill_group().unwrap();
    assert_eq!(group.wait(ENOUGH).unwrap().status, Status::Signal(9));
    let left = machine.run(&["sh", "-c", "pgrep -f 'sleep [2]000'"], ENOUGH).unwrap();
    assert_eq!(left.stdout, "", "nothing of the group is left");

    let mut short = machine.spawn(&["echo", "bye"]).unwrap();
    let error = short.line_with("hello", ENOUGH).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
}

#[test]
fn what_hangs_hits_its_deadline_and_says_what_it_did() {
    let Some(machine) = Machine::builder().boot_or_skip(test_name!()) else { return };
    machine.run(&["sh", "-c", "echo '<0>the disk is sad' > /dev/kmsg"], ENOUGH).unwrap();
    let deadline = Duration::from_secs(10);
    let begin = Instant::now();
    let error = machine.run(&["sh", "-c", "echo half-way; sleep 1000"], deadline).unwrap_err();
    assert!(begin.elapsed() < ENOUGH, "{:?}", begin.elapsed());
    let text = error.to_string();
    for part in ["sleep 1000", "10s", "half-way", "the disk is sad"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    // It is gone, and the machine goes on.
    let until = Instant::now() + ENOUGH;
    while machine.run(&["pidof", "sleep"], ENOUGH).unwrap().success() {
        assert!(Instant::now() < until, "what hung lives on");
    }
}

#[test]
fn a_machine_that_dies_is_noticed_at_once() {
    let Some(machine) = Machine::builder().boot_or_skip(test_name!()) else { return };
    let begin = Instant::now();
    let error = machine.run(&["sh", "-c", "echo c > /proc/sysrq-trigger"], ENOUGH).unwrap_err();
    assert!(matches!(&error, Error::Ended { log, .. } if log.contains("Kernel panic")), "{error}");
    assert!(begin.elapsed() < ENOUGH);
    let error = machine.run(&["true"], ENOUGH).unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
}

#[test]
fn a_power_cut_takes_what_was_not_synced_and_leaves_what_was() {
    let builder = Machine::builder().disk(256 << 20).disk(256 << 20);
    let Some(mut machine) = builder.boot_or_skip(test_name!()) else { return };
    let run = |machine: &Machine, argv: &[&str]| machine.run(argv, ENOUGH).unwrap().ok().unwrap();
    run(&machine, &["vgcreate", "vg", "/dev/vda", "/dev/vdb"]);
    run(&machine, &["lvcreate", "-y", "-L", "300m", "-n", "volume", "vg"]);
    run(&machine, &["mkfs.ext4", "-q", "/dev/vg/volume"]);
    run(&machine, &["mount", "/dev/vg/volume", "/mnt"]);
    run(&machine, &["sh", "-c", "echo kept > /mnt/synced && sync && echo lost > /mnt/not-synced"]);
    machine.power_cut();
    let error = machine.run(&["true"], ENOUGH).unwrap_err();
    assert!(matches!(error, Error::Off { .. }), "{error}");

    machine.power_on().unwrap();
    assert!(!machine.run(&["test", "-e", "/dev/vg/volume"], ENOUGH).unwrap().success(), "nothing is mapped");
    run(&machine, &["vgchange", "-ay", "vg"]);
    run(&machine, &["mount", "/dev/vg/volume", "/mnt"]);
    assert_eq!(machine.read("/mnt/synced").unwrap(), b"kept\n");
    let lost = machine.read("/mnt/not-synced");
    assert!(!matches!(&lost, Ok(content) if content == b"lost\n"), "memory outlived the power: {lost:?}");
}

#[test]
fn a_forgetful_disk_loses_only_what_was_not_flushed() {
    let builder = Machine::builder().disk(64 << 20).forgetful_disks();
    let Some(mut machine) = builder.boot_or_skip(test_name!()) else { return };
    let write = |machine: &Machine, letter: &str, options: &str| {
        let script = format!(
            "yes {letter} | tr -d '\\n' | dd of=/dev/vda bs=4096 count=64 iflag=fullblock oflag=direct {options}"
        );
        machine.run(&["sh", "-c", &script], ENOUGH).unwrap().ok().unwrap();
    };
    let blocks = |machine: &Machine, letter: &str| {
        let script =
            format!("dd if=/dev/vda bs=4096 count=64 iflag=direct | fold -w 4096 | grep -c ^{letter}");
        let output = machine.run(&["sh", "-c", &script], ENOUGH).unwrap();
        output.stdout.trim().parse::<usize>().unwrap()
    };
    write(&machine, "a", "conv=fsync");
    // Confirmed by the disk, and not flushed.
    write(&machine, "b", "");
    assert_eq!((blocks(&machine, "a"), blocks(&machine, "b")), (0, 64));
    let forgotten = machine.power_cut_forgetting(1).unwrap();
    machine.power_on().unwrap();
    assert_eq!((blocks(&machine, "a"), blocks(&machine, "b")), (forgotten, 64 - forgotten));
    assert!((1..64).contains(&forgotten), "{forgotten}");

    // The record begins anew with each boot.
    write(&machine, "c", "conv=fsync");
    assert_eq!(machine.power_cut_forgetting(1).unwrap(), 0);
    machine.power_on().unwrap();
    assert_eq!(blocks(&machine, "c"), 64);
}

#[test]
fn a_story_goes_on_in_the_machine_over_a_power_cut() {
    match step().as_deref() {
        Some("write") => {
            let mut disk = std::fs::OpenOptions::new().write(true).open("/dev/vda").unwrap();
            std::io::Write::write_all(&mut disk, &[7; 4096]).unwrap();
            return disk.sync_all().unwrap();
        }
        Some("check") => {
            let mut start = [0; 4096];
            let mut disk = std::fs::File::open("/dev/vda").unwrap();
            std::io::Read::read_exact(&mut disk, &mut start).unwrap();
            return assert_eq!(start, [7; 4096]);
        }
        Some("fail") => panic!("as it should"),
        other => assert_eq!(other, None),
    }
    let builder = Machine::builder().disk(16 << 20).this_test_binary();
    let Some(mut machine) = builder.boot_or_skip(test_name!()) else { return };
    assert!(machine.run_this_test(test_name!(), "check", ENOUGH).is_err(), "the disk is empty at first");
    assert_eq!(machine.run_this_test(test_name!(), "write", ENOUGH).unwrap().passed, 1);
    machine.power_cut();
    machine.power_on().unwrap();
    machine.run_this_test(test_name!(), "check", ENOUGH).unwrap();

    let error = machine.run_this_test(test_name!(), "fail", ENOUGH).unwrap_err();
    assert!(error.to_string().contains("as it should"), "{error}");
    let error = machine.run_this_test("no::such::test", "check", ENOUGH).unwrap_err();
    assert!(error.to_string().contains("no test ran"), "{error}");
}

#[test]
fn nothing_outlives_a_machine() {
    let Some(machine) = Machine::builder().disk(1 << 20).boot_or_skip(test_name!()) else { return };
    let (pid, folder) = (machine.emulator().unwrap(), machine.folder().to_owned());
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    assert!(folder.join("disk0").exists());
    drop(machine);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!folder.exists());
}
