//! Gets the parts of the machine from Debian's archive: downloaded and unpacked, not installed, so it needs no rights.
//!
//! Everything goes into a folder beside the wanted one, which takes its name at the end: a killed download leaves nothing
//! half-made. Old package versions vanish from the archive, so none is pinned; what was fetched once stays as it is.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::Kit;
use crate::{Error, modules};

/// Packages whose programs go into the machine or run it. What they depend on comes along where the host lacks it.
const PACKAGES: [&str; 9] = [
    "qemu-system-x86",
    "busybox-static",
    "lvm2",
    "dmsetup",
    "thin-provisioning-tools",
    "e2fsprogs",
    "xfsprogs",
    "btrfs-progs",
    "util-linux",
];
/// Names the current kernel for virtual machines by depending on it.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Fetches the parts into the cache; does nothing when they are there.
///
/// # Errors
/// When this is no Debian on x86-64, or the archive cannot be reached; what apt wrote is in the error.
pub fn fetch() -> Result<(), Error> {
    if Kit::in_cache().is_ok() {
        return Ok(());
    }
    let wanted = Kit::folder();
    let cache = wanted.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(cache).map_err(Error::file("making", cache))?;
    let half_made = tempfile::Builder::new()
        .prefix(".vm-")
        .tempdir_in(cache)
        .map_err(Error::file("making a folder in", cache))?;
    let packages = half_made.path().join("packages");
    let root = half_made.path().join("root");
    for folder in [&packages, &root] {
        fs::create_dir(folder).map_err(Error::file("making", folder))?;
    }
    let names = names()?;
    apt(
        "apt-get",
        "downloading packages",
        Some(&packages),
        ["download", "-q"].iter().chain(&as_refs(&names)),
    )?;
    for entry in fs::read_dir(&packages).map_err(Error::file("reading", &packages))?.flatten() {
        let args = [OsStr::new("-x"), entry.path().as_os_str(), root.as_os_str()].map(OsStr::to_owned);
        apt("dpkg-deb", "unpacking", None, args)?;
    }
    modules::check(&Kit::at(&root))?;
    match fs::rename(&root, &wanted) {
        // Someone else was quicker.
        Err(_) if wanted.is_dir() => Ok(()),
        other => other.map_err(Error::file("putting in place", &wanted)),
    }
}

/// All packages to download: the wanted ones and what they need, as far as they are not installed; and the kernel.
fn names() -> Result<Vec<String>, Error> {
    let simulate = ["install", "--simulate", "--no-install-recommends", "-q"];
    let plan = apt("apt-get", "asking for packages", None, simulate.iter().chain(&PACKAGES))?;
    let kernel = apt("apt-cache", "asking for the kernel", None, ["depends", KERNEL])?;
    let mut names: Vec<String> = to_install(&plan).map(str::to_owned).collect();
    names.push(depended_on(&kernel).unwrap_or(KERNEL).to_owned());
    Ok(names)
}

fn as_refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Names in the lines `Inst NAME (...)` of a simulated installation.
fn to_install(plan: &str) -> impl Iterator<Item = &str> {
    plan.lines().filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next())
}

/// The first package that a package depends on.
fn depended_on(depends: &str) -> Option<&str> {
    depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "))
}

fn apt(
    program: &str,
    doing: &'static str,
    folder: Option<&Path>,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<String, Error> {
    let mut command = Command::new(program);
    command.args(args).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    let output = command.output().map_err(|source| Error::Start { program: program.to_owned(), source })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Tool { program: program.to_owned(), doing, output });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_names_what_is_not_installed() {
        let plan = "Reading package lists...\nInst libaio1 (0.3 Debian:12 [amd64])\nInst lvm2 (2 Debian:12 [amd64]) []\n\
                    Conf libaio1 (0.3 Debian:12 [amd64])\n";
        assert_eq!(to_install(plan).collect::<Vec<_>>(), ["libaio1", "lvm2"]);
        assert_eq!(to_install("").count(), 0);
    }

    #[test]
    fn the_kernel_is_what_its_package_depends_on() {
        let check = |text, expected| assert_eq!(depended_on(text), expected, "{text}");
        check(
            "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-9-cloud-amd64\n",
            Some("linux-image-6.1.0-9-cloud-amd64"),
        );
        check("linux-image-cloud-amd64\n", None);
    }
}
