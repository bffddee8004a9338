//! Snapshots that share blocks, on XFS and btrfs.

use crate::{suite, trees};
use lifeboat_lvm::{Access, AccessMode, Directories, DirectoryClass, Lvm};
use std::path::Path;
use std::process::Command;

fn run(program: &str, arguments: &[&Path]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)))
}

async fn story(at: &Path) {
    let lvm = Directories::new(vec![DirectoryClass::new("c", at.join("volumes"))]).unwrap();
    let made = lvm.create(suite::volume("c", "a", suite::SMALL)).await.unwrap();
    let Access::Directory(source) = made.access else { panic!("no directory") };
    trees::plant(&source);
    std::fs::write(source.join("large"), vec![1; 100 << 20]).unwrap();
    rustix::fs::syncfs(std::fs::File::open(&source).unwrap()).unwrap();
    let available = || rustix::fs::statvfs(at).map(|stat| stat.f_bavail * stat.f_frsize).unwrap();
    let before = available();
    let taken = lvm.snapshot(suite::copy("c", "s", "a", AccessMode::ReadOnly)).await.unwrap();
    let Access::Directory(copy) = taken.volume.access else { panic!("no directory") };
    let spent = before.saturating_sub(available());
    assert!(spent < 20 << 20, "a copy of 100 MiB took {spent} bytes: blocks are not shared");
    assert_eq!(trees::describe(&copy), trees::describe(&source));
    std::fs::write(source.join("large"), "short").unwrap();
    assert_eq!(std::fs::metadata(copy.join("large")).unwrap().len(), 100 << 20);
}

async fn in_the_machine(make: &str) {
    run(make, &["-q".as_ref(), "-f".as_ref(), "/dev/vda".as_ref()]).unwrap();
    std::fs::create_dir_all("/tmp/reflink").unwrap();
    run("mount", &["/dev/vda".as_ref(), "/tmp/reflink".as_ref()]).unwrap();
    let at = Path::new("/tmp/reflink");
    story(at).await;
    let lvm = Directories::new(vec![DirectoryClass::new("d", at.join("more"))]).unwrap();
    let made = lvm.create(suite::volume("d", "a", suite::SMALL)).await.unwrap();
    let Access::Directory(folder) = made.access else { panic!("no directory") };
    std::fs::create_dir_all("/tmp/bound").unwrap();
    run("mount", &["--bind".as_ref(), folder.as_ref(), "/tmp/bound".as_ref()]).unwrap();
    let busy = lvm.remove("d", "a").await;
    assert!(matches!(busy, Err(lifeboat_lvm::Error::Busy { .. })), "{busy:?}");
    run("umount", &["/tmp/bound".as_ref()]).unwrap();
    lvm.remove("d", "a").await.unwrap();
}

#[tokio::test]
async fn snapshots_share_blocks_on_xfs_of_a_real_disk() {
    lifeboat_vm::in_machine!();
    in_the_machine("mkfs.xfs").await;
}

#[tokio::test]
async fn snapshots_share_blocks_on_btrfs_of_a_real_disk() {
    lifeboat_vm::in_machine!();
    in_the_machine("mkfs.btrfs").await;
}
