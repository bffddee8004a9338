//! The kernel's table of mounts.

use super::MountError;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint {
    /// Where it is.
    pub target: PathBuf,
    /// What is mounted: a device, or a name that the filesystem chose.
    pub source: PathBuf,
    /// The folder of the filesystem that is shown: `/`, or another one in a bind mount.
    pub root: PathBuf,
    /// Type of the filesystem.
    pub filesystem: String,
    /// Number of the device; for btrfs one that no device has.
    pub device: (u32, u32),
    /// Whether it was mounted read-only.
    pub read_only: bool,
}

/// All mounts that this process sees, in the order in which they were made.
pub fn mount_points() -> Result<Vec<MountPoint>, MountError> {
    let text = std::fs::read("/proc/self/mountinfo").map_err(|error| MountError::Table(error.to_string()))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Mounts of the host that this process does not see itself, by a path that it can use: the agent's container has a table of its own, and
/// with the host's process IDs it can look into the first process's. None where it cannot.
pub fn mount_points_of_host() -> Result<Vec<MountPoint>, MountError> {
    let Ok(text) = std::fs::read("/proc/1/mountinfo") else { return Ok(Vec::new()) };
    Ok(of_host(&text))
}

fn of_host(table: &[u8]) -> Vec<MountPoint> {
    let reach = |point: MountPoint| {
        let below = point.target.strip_prefix("/").map(Path::to_owned).unwrap_or_default();
        MountPoint { target: Path::new("/proc/1/root").join(below), ..point }
    };
    table.split(|byte| *byte == b'\n').filter_map(parse).map(reach).collect()
}

/// Whether a folder, or something in it, is shown at another place by a bind mount, or has something mounted on it.
pub fn is_shown_elsewhere(folder: &Path) -> Result<bool, MountError> {
    let folder = folder.canonicalize().map_err(|error| MountError::Table(error.to_string()))?;
    Ok(shown_elsewhere(&mount_points()?, &folder))
}

fn shown_elsewhere(points: &[MountPoint], folder: &Path) -> bool {
    if points.iter().any(|point| point.target.starts_with(folder)) {
        return true;
    }
    // The mount that the folder is on: of the deepest ones the last, which lies on top.
    let above = points.iter().filter(|point| folder.starts_with(&point.target));
    let Some(home) = above.max_by_key(|point| point.target.components().count()) else { return false };
    let Ok(below) = folder.strip_prefix(&home.target) else { return false };
    let inside = home.root.join(below);
    points.iter().any(|point| point.device == home.device && point.root.starts_with(&inside))
}

/// Lines look like `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse(line: &[u8]) -> Option<MountPoint> {
    let mut words = line.split(|byte| *byte == b' ');
    let numbers = words.by_ref().nth(2)?;
    let root = unescape(words.next()?);
    let target = unescape(words.next()?);
    let options = words.next()?;
    let mut rest = words.skip_while(|word| *word != b"-").skip(1);
    let filesystem = String::from_utf8_lossy(rest.next()?).into_owned();
    let source = unescape(rest.next()?);
    let (major, minor) = std::str::from_utf8(numbers).ok()?.split_once(':')?;
    Some(MountPoint {
        target,
        source,
        root,
        filesystem,
        device: (major.parse().ok()?, minor.parse().ok()?),
        read_only: options.split(|byte| *byte == b',').any(|option| option == b"ro"),
    })
}

/// The kernel writes space, tab, newline and backslash as `\` and three octal digits.
fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        let digits = (word[at] == b'\\').then(|| word.get(at + 1..at + 4)).flatten();
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                at += 4;
            }
            None => {
                bytes.push(word[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let check = |line: &str, expected: Option<[&str; 5]>| {
            let read = parse(line.as_bytes()).map(|point| {
                let (major, minor) = point.device;
                let mode = if point.read_only { "ro" } else { "rw" };
                let path = |path: &PathBuf| path.to_str().unwrap().to_owned();
                let device = format!("{} {major}:{minor} {mode}", point.filesystem);
                [path(&point.target), path(&point.source), path(&point.root), device]
            });
            let expected = expected.map(|[target, source, root, filesystem, device]| {
                [target.to_owned(), source.to_owned(), root.to_owned(), format!("{filesystem} {device}")]
            });
            assert_eq!(read, expected, "{line}");
        };
        check(
            "36 35 253:3 / /mnt/data rw,relatime shared:1 - ext4 /dev/mapper/g-a rw",
            Some(["/mnt/data", "/dev/mapper/g-a", "/", "ext4", "253:3 rw"]),
        );
        check(
            r"40 35 0:33 /volumes/a /mnt/with\040space\134 ro,nosuid - xfs /dev/g/a rw,attr2",
            Some([r"/mnt/with space\", "/dev/g/a", "/volumes/a", "xfs", "0:33 ro"]),
        );
        check(
            "41 35 0:34 / /mnt/many ro master:1 shared:7 unbindable - btrfs /dev/g/b rw",
            Some(["/mnt/many", "/dev/g/b", "/", "btrfs", "0:34 ro"]),
        );
        check("", None);
        check("36 35 98:0 / /x rw", None);
        check("36 35 nonsense / /x rw - ext4 /dev/x rw", None);
    }

    #[test]
    fn a_folder_that_is_shown_elsewhere_is_found() {
        let table = [
            "1 0 8:1 / / rw - ext4 /dev/root rw",
            "2 1 253:3 / /data rw - xfs /dev/g/a rw",
            "3 1 253:3 /volumes/bound /mnt/pod rw - xfs /dev/g/a rw",
            "4 1 8:1 /volumes/other /mnt/else rw - ext4 /dev/root rw",
            "5 1 0:9 / /data/volumes/covered/data/in rw - tmpfs tmpfs rw",
        ];
        let points: Vec<MountPoint> = table.iter().filter_map(|line| parse(line.as_bytes())).collect();
        let check = |folder: &str, expected| {
            assert_eq!(shown_elsewhere(&points, Path::new(folder)), expected, "{folder}");
        };
        check("/data/volumes/bound", true);
        check("/data/volumes", true);
        check("/data/volumes/free", false);
        check("/data/volumes/boundary", false);
        check("/data/volumes/covered", true);
        check("/data/volumes/other", false);
        check("/volumes/other", true);
    }

    #[test]
    fn a_mount_of_the_host_is_reached_through_its_first_process() {
        let table = "1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
            90 1 0:44 / /var/lib/kubelet/pods/p/volumes/kubernetes.io~csi/v/mount rw shared:9 - btrfs /dev/mapper/g-u1 rw\n";
        let found = of_host(table.as_bytes());
        let of = |source: &str| {
            found.iter().find(|point| point.source == Path::new(source)).map(|point| point.target.as_path())
        };
        let mount = "/proc/1/root/var/lib/kubelet/pods/p/volumes/kubernetes.io~csi/v/mount";
        assert_eq!(of("/dev/mapper/g-u1"), Some(Path::new(mount)));
        assert_eq!(of("/dev/sda1"), Some(Path::new("/proc/1/root/")));
        assert_eq!(of_host(b""), []);
    }

    /// What the host has mounted is seen, compared and frozen only with these.
    #[test]
    fn the_manifest_of_the_node_lets_it_look_at_the_host() {
        let manifest = include_str!("../../../../deploy/node.yaml");
        let read = |text| serde_saphyr::from_str::<serde_json::Value>(text).unwrap();
        let node = manifest.split("\n---\n").map(read).find(|found| found["kind"] == "DaemonSet").unwrap();
        let pod = &node["spec"]["template"]["spec"];
        assert_eq!(pod["hostPID"], true, "process 1 is the host's, with its table of mounts");
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["privileged"], true, "its root can be entered");
        let named = |list: &serde_json::Value, name: &str| {
            list.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
        };
        assert_eq!(named(&pod["volumes"], "dev")["hostPath"]["path"], "/dev");
        let devices = named(&container["volumeMounts"], "dev");
        assert_eq!(devices["mountPath"], "/dev", "a device has the name that the host's table gives it");
    }

    #[test]
    fn the_table_of_this_system_can_be_read() {
        assert!(mount_points().unwrap().iter().any(|point| point.target.to_str() == Some("/proc")));
    }
}
