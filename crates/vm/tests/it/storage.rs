//! LVM2 and filesystems in the machine are real: each test runs there.

use std::fs;
use std::path::Path;
use std::process::Command;

use lifeboat_vm::in_machine;

/// Runs a program that has to succeed; gives its standard output.
pub(crate) fn run(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{argv:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn field(name: &str, volume: &str) -> String {
    run(&["lvs", "--noheadings", "--nosuffix", "--units", "b", "-o", name, volume]).trim().to_owned()
}

fn fill(path: &str, byte: u8) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    std::io::Write::write_all(&mut &file, &vec![byte; 1 << 20]).unwrap();
    file.sync_all().unwrap();
}

fn first_byte(path: &str) -> u8 {
    let mut byte = [0];
    std::io::Read::read_exact(&mut fs::File::open(path).unwrap(), &mut byte).unwrap();
    byte[0]
}

#[test]
fn a_thick_volume_and_its_snapshot() {
    in_machine!();
    run(&["vgcreate", "vg", "/dev/vda", "/dev/vdb"]);
    run(&["lvcreate", "-y", "-L", "64m", "-n", "volume", "--addtag", "mine", "vg"]);
    assert_eq!(field("lv_size,lv_tags", "vg/volume"), format!("{} mine", 64 << 20));
    fill("/dev/vg/volume", 1);
    run(&["lvcreate", "-y", "-s", "-L", "16m", "-n", "past", "vg/volume"]);
    fill("/dev/vg/volume", 2);
    assert_eq!((first_byte("/dev/vg/volume"), first_byte("/dev/vg/past")), (2, 1));
    assert_eq!(field("origin", "vg/past"), "volume");
    run(&["lvremove", "-y", "vg/past"]);
    run(&["lvextend", "-L", "128m", "vg/volume"]);
    assert_eq!(field("lv_size", "vg/volume"), (128 << 20).to_string());
}

#[test]
fn a_thin_pool_its_snapshots_and_what_changed_between_them() {
    in_machine!();
    run(&["vgcreate", "vg", "/dev/vda"]);
    run(&["lvcreate", "-y", "-T", "-L", "256m", "--chunksize", "64k", "vg/pool"]);
    run(&["lvcreate", "-y", "-T", "-V", "1g", "-n", "volume", "vg/pool"]);
    fill("/dev/vg/volume", 1);
    run(&["lvcreate", "-y", "-s", "-kn", "-n", "before", "vg/volume"]);
    fill("/dev/vg/volume", 2);
    run(&["lvcreate", "-y", "-s", "-kn", "-n", "after", "vg/volume"]);
    run(&["lvchange", "-ay", "-K", "vg/before"]);
    assert_eq!((first_byte("/dev/vg/volume"), first_byte("/dev/vg/before")), (2, 1));

    // A reserved metadata snapshot lets thin_delta read while the pool goes on.
    run(&["dmsetup", "message", "vg-pool-tpool", "0", "reserve_metadata_snap"]);
    let ids = [field("thin_id", "vg/before"), field("thin_id", "vg/after")];
    let delta =
        run(&["thin_delta", "-m", "--snap1", &ids[0], "--snap2", &ids[1], "/dev/mapper/vg-pool_tmeta"]);
    run(&["dmsetup", "message", "vg-pool-tpool", "0", "release_metadata_snap"]);
    // One MiB in chunks of 64 KiB.
    assert!(delta.contains("<different begin=\"0\" length=\"16\"/>"), "{delta}");
}

#[test]
fn filesystems_on_volumes_and_on_their_snapshots_at_the_same_time() {
    in_machine!();
    run(&["vgcreate", "vg", "/dev/vda"]);
    // With the same filesystem mounted twice, xfs wants nouuid; btrfs cannot have two at all.
    let check = |kind: &str, quiet: &[&str], options: &str| {
        let (volume, past_volume) = (format!("/dev/vg/{kind}"), format!("/dev/vg/{kind}-past"));
        run(&["lvcreate", "-y", "-L", "400m", "-n", kind, "vg"]);
        run(&[&[format!("mkfs.{kind}").as_str()], quiet, &[&volume]].concat());
        let (place, past) = (format!("/mnt/{kind}"), format!("/mnt/{kind}-past"));
        fs::create_dir_all(&place).unwrap();
        fs::create_dir_all(&past).unwrap();
        run(&["mount", &volume, &place]);
        assert_eq!(run(&["findmnt", "-no", "FSTYPE", &place]).trim(), kind);
        assert_eq!(run(&["blkid", "-o", "value", "-s", "TYPE", &volume]).trim(), kind);
        let file = Path::new(&place).join("file");
        fs::write(&file, "before").unwrap();
        // LVM holds ext4 and xfs by itself while it takes the snapshot, and held twice the kernel refuses; btrfs it
        // cannot hold, so there it takes someone else.
        let freeze = |option: &str| drop((kind == "btrfs").then(|| run(&["fsfreeze", option, &place])));
        freeze("-f");
        run(&["lvcreate", "-y", "-s", "-L", "64m", "-n", &format!("{kind}-past"), &format!("vg/{kind}")]);
        freeze("-u");
        fs::write(&file, "after").unwrap();
        run(&["fsfreeze", "-f", &place]);
        run(&["fsfreeze", "-u", &place]);
        if kind == "btrfs" {
            run(&["umount", &place]);
        }
        run(&["mount", "-o", options, &past_volume, &past]);
        let content = fs::read_to_string(Path::new(&past).join("file"));
        assert_eq!(
            content.as_deref().ok(),
            Some("before"),
            "{kind}: {content:?} {}",
            run(&["ls", "-la", &past])
        );
    };
    check("ext4", &["-q"], "ro,noload");
    check("xfs", &["-q"], "ro,nouuid,norecovery");
    check("btrfs", &["-q"], "ro");
}

#[test]
fn reflinks_on_filesystems_in_files() {
    in_machine!();
    run(&["mkfs.ext4", "-q", "/dev/vda"]);
    run(&["mount", "/dev/vda", "/mnt"]);
    for (kind, quiet) in [("xfs", "-q"), ("btrfs", "-q")] {
        let (image, place) = (format!("/mnt/{kind}.img"), format!("/mnt/{kind}"));
        fs::File::create(&image).unwrap().set_len(400 << 20).unwrap();
        fs::create_dir(&place).unwrap();
        run(&[&format!("mkfs.{kind}"), quiet, &image]);
        run(&["mount", "-o", "loop", &image, &place]);
        fs::write(format!("{place}/a"), vec![1; 1 << 20]).unwrap();
        let clone = format!("reflink {place}/a");
        run(&["xfs_io", "-f", "-c", &clone, &format!("{place}/b")]);
        assert_eq!(fs::read(format!("{place}/b")).unwrap(), vec![1; 1 << 20], "{kind}");
    }
}
