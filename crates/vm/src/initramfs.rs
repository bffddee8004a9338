//! Puts the first filesystem of the machine together: tools, libraries, modules, configuration and the agent.
//!
//! Everything lies in `/bin` and `/lib`; the other usual places are links to them. Programs of the caller are not here
//! but on a disk (see `cargo`), because a test binary may be hundreds of megabytes; only links to them are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::cpio::Archive;
use crate::kit::Kit;
use crate::{libraries, modules};

const AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));
const INIT: &str = include_str!("init.sh");
const CLEAN: &str = include_str!("clean.sh");
const LVM_CONF: &str = include_str!("lvm.conf");

/// Programs that tests of storage need; busybox has the rest.
const PROGRAMS: [&str; 31] = [
    "dash",
    "bash",
    "fsadm",
    "lvm",
    "dmsetup",
    "pdata_tools",
    "mke2fs",
    "e2fsck",
    "resize2fs",
    "tune2fs",
    "dumpe2fs",
    "debugfs",
    "mkfs.xfs",
    "xfs_repair",
    "xfs_growfs",
    "xfs_io",
    "xfs_db",
    "xfs_admin",
    "mkfs.btrfs",
    "btrfs",
    "btrfstune",
    "blkid",
    "mount",
    "umount",
    "findmnt",
    "lsblk",
    "losetup",
    "fsfreeze",
    "wipefs",
    "blkdiscard",
    "fstrim",
];
/// One program under many names.
const LVM_COMMANDS: [&str; 30] = [
    "lvchange",
    "lvconvert",
    "lvcreate",
    "lvdisplay",
    "lvextend",
    "lvmconfig",
    "lvreduce",
    "lvremove",
    "lvrename",
    "lvresize",
    "lvs",
    "lvscan",
    "pvchange",
    "pvck",
    "pvcreate",
    "pvdisplay",
    "pvremove",
    "pvresize",
    "pvs",
    "pvscan",
    "vgcfgbackup",
    "vgcfgrestore",
    "vgchange",
    "vgck",
    "vgcreate",
    "vgextend",
    "vgreduce",
    "vgremove",
    "vgrename",
    "vgs",
];
const THIN_TOOLS: [&str; 10] = [
    "thin_check",
    "thin_delta",
    "thin_dump",
    "thin_ls",
    "thin_metadata_size",
    "thin_repair",
    "thin_restore",
    "thin_rmap",
    "thin_trim",
    "cache_check",
];
const OTHER_NAMES: [(&str, &str); 5] = [
    // The shell of busybox prefers its own commands, such as a mount that knows no filesystem by itself.
    ("sh", "dash"),
    ("mkfs.ext4", "mke2fs"),
    ("mkfs.ext3", "mke2fs"),
    ("fsck.ext4", "e2fsck"),
    ("fsck.xfs", "true"),
];
/// Programs that are scripts, and so cannot be asked for libraries.
const SCRIPTS: [&str; 2] = ["fsadm", "xfs_admin"];

/// Asked for by name while programs run (threads that end, panics), so the loader does not list it.
const QUIETLY_NEEDED: [&str; 1] = ["libgcc_s.so.1"];

/// What goes into the machine besides its own tools.
#[derive(Debug, Default)]
pub(crate) struct Extras<'a> {
    /// Links to programs on the cargo disk: where the guest finds them, and the file's name on the disk.
    pub(crate) links: BTreeMap<String, String>,
    /// Programs of the host whose libraries are needed.
    pub(crate) programs: Vec<&'a Path>,
    /// The device of the cargo disk, where there is one.
    pub(crate) cargo: Option<String>,
}

/// The archive for the kernel to unpack.
pub(crate) fn build(kit: &Kit, kernel: &str, extras: &Extras<'_>) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::default();
    layout(&mut archive);
    let mut needed: BTreeMap<String, PathBuf> = BTreeMap::new();
    for name in PROGRAMS {
        let path = kit.program(name)?;
        archive.file(&format!("bin/{name}"), 0o755, &read(&path)?);
        if !SCRIPTS.contains(&name) {
            needed.extend(libraries::of(kit, &path)?);
        }
    }
    for program in &extras.programs {
        needed.extend(libraries::of(kit, program)?);
    }
    // The agent needs what any Rust program needs; this very program is one.
    let this = std::env::current_exe().map_err(Error::file("finding", "this program"))?;
    needed.extend(libraries::of(kit, &this)?);
    for (name, path) in &needed {
        archive.file(&format!("lib/{name}"), 0o755, &read(path)?);
    }
    for name in QUIETLY_NEEDED {
        let path = Path::new("/lib/x86_64-linux-gnu").join(name);
        if path.exists() {
            archive.file(&format!("lib/{name}"), 0o755, &read(&path)?);
        }
    }
    archive.file(
        libraries::LOADER.replace("/lib64/", "lib/").as_str(),
        0o755,
        &read(Path::new(libraries::LOADER))?,
    );
    names(&mut archive, kit)?;
    for (guest, file) in &extras.links {
        archive.link(guest.trim_start_matches('/'), &format!("/cargo/{file}"));
    }
    put_modules(&mut archive, kit, kernel)?;
    configuration(&mut archive, kit)?;
    archive.file("bin/agent", 0o755, AGENT);
    archive.file("bin/clean", 0o755, CLEAN.as_bytes());
    let init = INIT
        .replace("@MODULES@", &modules::AT_BOOT.join(" "))
        .replace("@CARGO@", extras.cargo.as_deref().unwrap_or_default());
    archive.file("init", 0o755, init.as_bytes());
    Ok(archive.finish())
}

fn layout(archive: &mut Archive) {
    for folder in ["bin", "lib", "etc", "dev", "proc", "sys", "run", "tmp", "mnt", "var", "usr", "root"] {
        archive.folder(folder);
    }
    for (link, target) in [
        ("sbin", "bin"),
        ("lib64", "lib"),
        ("usr/bin", "../bin"),
        ("usr/sbin", "../bin"),
        ("usr/lib", "../lib"),
        ("var/run", "../run"),
        ("var/lock", "../run/lock"),
    ] {
        archive.link(link, target);
    }
    // What the first process writes before /dev is mounted has to go somewhere.
    archive.device("dev/console", 5, 1);
}

/// All other names of the programs, and those of busybox where nothing better has the name.
fn names(archive: &mut Archive, kit: &Kit) -> Result<(), Error> {
    let busybox = kit.program("busybox")?;
    archive.file("bin/busybox", 0o755, &read(&busybox)?);
    let lvm = LVM_COMMANDS.iter().map(|name| (*name, "lvm"));
    let thin = THIN_TOOLS.iter().map(|name| (*name, "pdata_tools"));
    for (name, program) in lvm.chain(thin).chain(OTHER_NAMES) {
        archive.link(&format!("bin/{name}"), program);
    }
    let listed = Command::new(&busybox).arg("--list").output();
    let listed = listed.map_err(|source| Error::Start { program: "busybox".to_owned(), source })?;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let path = format!("bin/{name}");
        if !archive.has(&path) {
            archive.link(&path, "busybox");
        }
    }
    Ok(())
}

fn put_modules(archive: &mut Archive, kit: &Kit, kernel: &str) -> Result<(), Error> {
    let found = modules::closure(kit, kernel)?;
    let folder = format!("lib/modules/{kernel}");
    for module in found.values() {
        archive.file(&format!("{folder}/{}", module.path.display()), 0o644, &module.content);
    }
    archive.file(&format!("{folder}/modules.dep"), 0o644, modules::dependencies(&found).as_bytes());
    archive.file(&format!("{folder}/modules.alias"), 0o644, modules::aliases(&found).as_bytes());
    Ok(())
}

fn configuration(archive: &mut Archive, kit: &Kit) -> Result<(), Error> {
    archive.file("etc/lvm/lvm.conf", 0o644, LVM_CONF.as_bytes());
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n");
    archive.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
    archive.file("etc/hosts", 0o644, b"127.0.0.1 localhost\n");
    archive.link("etc/mtab", "/proc/self/mounts");
    // Without it mkfs.ext4 makes a filesystem with the features of twenty years ago.
    if let Some(path) = kit.configuration("mke2fs.conf") {
        archive.file("etc/mke2fs.conf", 0o644, &read(&path)?);
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::file("reading", path))
}
