//! Snapshots that share blocks, on filesystems in a file: XFS and btrfs where the machine has loop devices and the tools.

use crate::{suite, trees};
use lifeboat_lvm::{Access, AccessMode, Directories, DirectoryClass, Lvm};
use lifeboat_reference::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A filesystem in a file, unmounted when dropped.
struct Mounted {
    folder: tempfile::TempDir,
}

impl Mounted {
    fn new(make: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(512 << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir(folder.path().join("at")).map_err(|error| error.to_string())?;
        run(make, &["-q".as_ref(), image.as_ref()])?;
        let mounted = Self { folder };
        run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), mounted.at().as_ref()])?;
        Ok(mounted)
    }

    fn at(&self) -> PathBuf {
        self.folder.path().join("at")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[self.at().as_ref()]);
    }
}

fn run(program: &str, arguments: &[&Path]) -> Result<(), String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)))
}

async fn shares_blocks(test: &str, make: &str) {
    let mounted = match Mounted::new(make) {
        Ok(mounted) => mounted,
        Err(reason) => return skip(test, reason),
    };
    story(&mounted.at()).await;
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

#[tokio::test]
async fn snapshots_share_blocks_on_xfs() {
    shares_blocks("snapshots_share_blocks_on_xfs", "mkfs.xfs").await;
}

#[tokio::test]
async fn snapshots_share_blocks_on_btrfs() {
    shares_blocks("snapshots_share_blocks_on_btrfs", "mkfs.btrfs").await;
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
