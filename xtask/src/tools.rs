//! Builds the pinned Go programs into the cache, and puts the parts of the test machine there.
//!
//! A program is built under a temporary name and then renamed, so that a killed build leaves nothing half-made; one that
//! is there already is not built again. The folders carry the version in their name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use lifeboat_reference::{Binaries, Pins};

use crate::{packages, shell};

/// The oldest Go that builds the pinned Kubernetes.
const GO: (u32, u32) = (1, 26);

/// One program to build.
struct Program {
    name: &'static str,
    /// Folder of the Go module that pins it.
    module: &'static str,
    what: What,
    folder: PathBuf,
    linker: String,
}

enum What {
    Command(&'static str),
    Tests(&'static str),
}

/// `cargo xtask tools`.
pub(crate) fn run() -> Result<()> {
    // Neither needs the other: what can be had is had before anything is complained about.
    let machine = fetch_machine().context("fetching the parts of the test machine");
    ready_go().and_then(|()| build_all())?;
    machine
}

/// Fetches the Debian packages that the machine with real LVM2 is made of; none is installed.
pub(crate) fn fetch_machine() -> Result<()> {
    if lifeboat_vm::Kit::in_cache().is_ok() {
        return Ok(());
    }
    // Package lists may be missing or older than the archive, and only root can renew them; so that comes second.
    lifeboat_vm::fetch().or_else(|reason| {
        packages::renew().with_context(|| format!("{:#}", anyhow::Error::from(reason)))?;
        lifeboat_vm::fetch().map_err(Into::into)
    })
}

/// Makes sure that a Go which builds the programs is there, or says why it cannot be had.
pub(crate) fn ready_go() -> Result<()> {
    let Err(reason) = check_go() else { return Ok(()) };
    // Where Debian has a Go that can fetch the toolchain that a module asks for, that is enough.
    packages::install("golang-go", |version| (1, 21) <= version).with_context(|| reason.to_string())?;
    check_go()
}

/// Builds what is not in the cache yet.
pub(crate) fn build_all() -> Result<()> {
    programs().iter().try_for_each(build)
}

/// Whether Go is there and new enough.
pub(crate) fn check_go() -> Result<()> {
    // Asked inside the module, so that Go may switch to the toolchain that the module names.
    let asked = Command::new("go").arg("version").current_dir(module_folder("kubernetes")).output();
    let output = asked.context("Go 1.26 or later is not installed")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match go_version(&text) {
        Some(version) if version >= GO => Ok(()),
        Some((major, minor)) => bail!("Go {major}.{minor} is too old: 1.26 or later is needed"),
        None => bail!("go version failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

fn go_version(text: &str) -> Option<(u32, u32)> {
    let version = text.split_whitespace().nth(2)?.strip_prefix("go")?;
    // A release candidate is called 1.27rc1.
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn programs() -> Vec<Program> {
    let binaries = Binaries::in_cache();
    let pins = Pins::read();
    let version = pins.kubernetes;
    let (major, minor) = version
        .split_once('.')
        .and_then(|(major, rest)| Some((major, rest.split('.').next()?)))
        .expect("invariant: a Kubernetes release has three parts");
    // Without these the server reports v0.0.0 and clients misbehave.
    let stamp = "k8s.io/component-base/version";
    let stamped = format!(
        "-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor} \
         -X {stamp}.gitTreeState=clean"
    );
    let kubernetes = |name, what| Program {
        name,
        module: "kubernetes",
        what,
        folder: binaries.kubernetes_dir().to_owned(),
        linker: stamped.clone(),
    };
    let etcd = Program {
        name: "etcd",
        module: "etcd",
        what: What::Command("."),
        folder: binaries.etcd_dir().to_owned(),
        linker: "-s -w".to_owned(),
    };
    let restic = Program {
        name: "restic",
        module: "restic",
        what: What::Command("github.com/restic/restic/cmd/restic"),
        folder: lifeboat_reference::cache_root().join(format!("restic-{}", restic_release())),
        linker: "-s -w".to_owned(),
    };
    vec![
        etcd,
        restic,
        kubernetes("kube-apiserver", What::Command("k8s.io/kubernetes/cmd/kube-apiserver")),
        kubernetes("kubectl", What::Command("k8s.io/kubernetes/cmd/kubectl")),
        kubernetes("kube-controller-manager", What::Command("k8s.io/kubernetes/cmd/kube-controller-manager")),
        kubernetes("e2e.test", What::Tests("k8s.io/kubernetes/test/e2e")),
    ]
}

/// The release of restic that its module names.
fn restic_release() -> &'static str {
    include_str!("../../tools/restic/go.mod")
        .lines()
        .find_map(|line| {
            line.trim().trim_start_matches("require ").strip_prefix("github.com/restic/restic v")
        })
        .expect("invariant: tools/restic/go.mod requires restic")
}

fn build(program: &Program) -> Result<()> {
    let wanted = program.folder.join(program.name);
    if wanted.is_file() {
        return Ok(());
    }
    fs::create_dir_all(&program.folder).with_context(|| format!("making {}", program.folder.display()))?;
    let half_made = tempfile::Builder::new()
        .prefix(&format!(".{}-", program.name))
        .tempdir_in(&program.folder)
        .with_context(|| format!("making a folder in {}", program.folder.display()))?;
    let output = half_made.path().join(program.name);
    let mut command = go(&module_folder(program.module));
    let (verb, package): (&[&str], _) = match program.what {
        What::Command(package) => (&["build"], package),
        What::Tests(package) => (&["test", "-c"], package),
    };
    command.args(verb).args(["-trimpath", "-ldflags", &program.linker]).arg("-o").arg(&output).arg(package);
    shell::run(&mut command).with_context(|| format!("building {}", program.name))?;
    fs::rename(&output, &wanted).with_context(|| format!("putting {} in place", wanted.display()))
}

/// A Go command in a module, with everything that would change its outcome set.
pub(crate) fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module).env("CGO_ENABLED", "0").env("GOFLAGS", "-buildvcs=false -mod=readonly");
    command
}

/// Folder of one of the Go modules under `tools/`.
pub(crate) fn module_folder(name: &str) -> PathBuf {
    shell::root().join("tools").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_read() {
        let check = |text, expected| assert_eq!(go_version(text), expected, "{text}");
        check("go version go1.26.8 linux/amd64", Some((1, 26)));
        check("go version go1.27rc1 linux/amd64", Some((1, 27)));
        check("go version go1.19 linux/amd64", Some((1, 19)));
        check("", None);
        check("gccgo (Debian 12.2.0)", None);
    }

    #[test]
    fn the_client_is_of_the_same_release_as_the_server() {
        let staging = Pins::read().kubernetes.replacen('1', "v0", 1);
        let text = fs::read_to_string(module_folder("clientgo").join("go.mod")).unwrap();
        for module in ["api", "apimachinery", "client-go"] {
            assert!(text.contains(&format!("k8s.io/{module} {staging}\n")), "{module} is not {staging}");
        }
    }

    #[test]
    fn a_program_in_the_cache_is_not_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program {
            name: "present",
            module: "no-such-module",
            what: What::Command("."),
            folder: folder.path().to_owned(),
            linker: String::new(),
        };
        fs::write(folder.path().join("present"), "").unwrap();
        build(&program).unwrap();
    }
}
