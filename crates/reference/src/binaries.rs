//! Which releases are pinned, and where the built programs lie.
//!
//! The Go modules under `tools/` are the only place that names a version; it is read from them at compile time.
//! Building the programs is left to `cargo xtask tools`.

use std::env;
use std::path::{Path, PathBuf};

const KUBERNETES_MODULE: &str = include_str!("../../../tools/kubernetes/go.mod");
const ETCD_MODULE: &str = include_str!("../../../tools/etcd/go.mod");

/// The pinned releases, without the leading `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pins {
    /// Release of kube-apiserver, kube-controller-manager, kubectl and the conformance tests.
    pub kubernetes: &'static str,
    /// Release of etcd.
    pub etcd: &'static str,
}

impl Pins {
    /// The releases that the Go modules name.
    pub fn read() -> Self {
        Self {
            kubernetes: required(KUBERNETES_MODULE, "k8s.io/kubernetes")
                .expect("invariant: tools/kubernetes/go.mod requires k8s.io/kubernetes"),
            etcd: required(ETCD_MODULE, "go.etcd.io/etcd/server/v3")
                .expect("invariant: tools/etcd/go.mod requires the etcd server"),
        }
    }
}

/// A program that is not in the cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program} is not built (`cargo xtask tools` builds it; needs Go 1.26): {} is missing", path.display())]
pub struct Missing {
    /// Name of the program.
    pub program: &'static str,
    /// Where it was looked for.
    pub path: PathBuf,
}

/// The programs of the pinned releases.
#[derive(Clone, Debug)]
pub struct Binaries {
    kubernetes: PathBuf,
    etcd: PathBuf,
}

impl Binaries {
    /// The folders for the pinned releases, whether or not anything is in them yet.
    pub fn in_cache() -> Self {
        Self::under(&cache_root())
    }

    /// The same below another cache root.
    pub fn under(root: &Path) -> Self {
        let pins = Pins::read();
        Self {
            kubernetes: root.join(format!("kubernetes-{}", pins.kubernetes)),
            etcd: root.join(format!("etcd-{}", pins.etcd)),
        }
    }

    /// Folder of the Kubernetes programs.
    pub fn kubernetes_dir(&self) -> &Path {
        &self.kubernetes
    }

    /// Folder of etcd.
    pub fn etcd_dir(&self) -> &Path {
        &self.etcd
    }

    /// The etcd server.
    ///
    /// # Errors
    /// [`Missing`] when it has not been built; so for the others.
    pub fn etcd(&self) -> Result<PathBuf, Missing> {
        existing(&self.etcd, "etcd")
    }

    /// The API server.
    ///
    /// # Errors
    /// [`Missing`] when it has not been built.
    pub fn kube_apiserver(&self) -> Result<PathBuf, Missing> {
        existing(&self.kubernetes, "kube-apiserver")
    }

    /// The controllers.
    ///
    /// # Errors
    /// [`Missing`] when it has not been built.
    pub fn kube_controller_manager(&self) -> Result<PathBuf, Missing> {
        existing(&self.kubernetes, "kube-controller-manager")
    }

    /// The command line client.
    ///
    /// # Errors
    /// [`Missing`] when it has not been built.
    pub fn kubectl(&self) -> Result<PathBuf, Missing> {
        existing(&self.kubernetes, "kubectl")
    }

    /// Kubernetes' own end-to-end and conformance tests.
    ///
    /// # Errors
    /// [`Missing`] when it has not been built.
    pub fn e2e_test(&self) -> Result<PathBuf, Missing> {
        existing(&self.kubernetes, "e2e.test")
    }
}

/// Folder that holds every cached program: `$LIFEBOAT_CACHE/lifeboat`, or the same under the user's cache folder.
pub fn cache_root() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("LIFEBOAT_CACHE")
        .or_else(|| set("XDG_CACHE_HOME"))
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(env::temp_dir)
        .join("lifeboat")
}

fn existing(folder: &Path, program: &'static str) -> Result<PathBuf, Missing> {
    let path = folder.join(program);
    if path.is_file() { Ok(path) } else { Err(Missing { program, path }) }
}

fn required(go_mod: &'static str, module: &str) -> Option<&'static str> {
    go_mod.lines().find_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("require ").unwrap_or(line);
        line.strip_prefix(module)?.trim_start().strip_prefix('v')?.split_whitespace().next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_name_their_versions() {
        let pins = Pins::read();
        assert!(pins.kubernetes.starts_with("1."), "{pins:?}");
        assert!(pins.etcd.starts_with("3."), "{pins:?}");
    }

    #[test]
    fn a_required_version_is_found_in_either_form() {
        let check = |text, expected| assert_eq!(required(text, "a.b/c"), expected, "{text}");
        check("require a.b/c v1.2.3\n", Some("1.2.3"));
        check("require (\n\ta.b/c v1.2.3 // indirect\n)\n", Some("1.2.3"));
        check("require (\n\ta.b/cd v1.2.3\n)\n", None);
        check("replace a.b/c => x v0.1.0\n", None);
    }

    #[test]
    fn a_missing_program_says_how_to_get_it() {
        let empty = tempfile::tempdir().unwrap();
        let missing = Binaries::under(empty.path()).etcd().unwrap_err();
        assert_eq!(missing.program, "etcd");
        assert!(missing.to_string().contains("cargo xtask tools"), "{missing}");
    }
}
