//! The parts that the machine is made of: where they lie, and how one of them is found.
//!
//! They are Debian packages, unpacked below one folder of the cache and never installed. A program that is not there
//! because the host has its package installed is taken from the host. Getting the parts is left to `fetch`.

use std::fs;
use std::path::{Path, PathBuf};

use lifeboat_reference::cache_root;

use crate::Error;

/// Grows when other packages are needed, so that older caches are not used.
const EDITION: u32 = 1;

/// The parts are not in the cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parts of the test machine are not in the cache (`cargo xtask tools` fetches them; needs Debian on x86-64): {} is missing", path.display())]
pub struct Missing {
    /// Where they were looked for.
    pub path: PathBuf,
}

/// The unpacked parts.
#[derive(Clone, Debug)]
pub struct Kit {
    folder: PathBuf,
}

impl Kit {
    /// The parts in the cache.
    ///
    /// # Errors
    /// [`Missing`] when they have not been fetched.
    pub fn in_cache() -> Result<Self, Missing> {
        let path = Self::folder();
        if path.is_dir() { Ok(Self { folder: path }) } else { Err(Missing { path }) }
    }

    /// Where the parts lie or will lie: the folder is named after the Debian release that they come from, because they
    /// use the host's libraries.
    pub(crate) fn folder() -> PathBuf {
        let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
        cache_root().join(format!("vm-{}-{EDITION}", release(&system)))
    }

    /// Parts that lie somewhere else.
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The emulator.
    pub(crate) fn qemu(&self) -> Result<PathBuf, Error> {
        self.program("qemu-system-x86_64")
    }

    /// Folders with the emulator's firmware.
    pub(crate) fn firmware(&self) -> Vec<PathBuf> {
        self.alternatives(&["usr/share/qemu", "usr/share/seabios"])
    }

    /// Folders with shared libraries, for the loader's search path.
    pub(crate) fn library_path(&self) -> String {
        let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
        folders.map(|folder| self.folder.join(folder).display().to_string()).join(":")
    }

    /// The kernel's name and its image.
    pub(crate) fn kernel(&self) -> Result<(String, PathBuf), Error> {
        let boot = self.folder.join("boot");
        let names = fs::read_dir(&boot).map_err(Error::file("reading", &boot))?.flatten();
        names
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some((name.strip_prefix("vmlinuz-")?.to_owned(), entry.path()))
            })
            .max()
            .ok_or_else(|| self.lacks("a kernel"))
    }

    /// Folder with the modules of a kernel.
    pub(crate) fn modules(&self, kernel: &str) -> PathBuf {
        self.folder.join("lib/modules").join(kernel)
    }

    /// A program, from the kit or from the host.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf, Error> {
        let folders = ["sbin", "bin", "usr/sbin", "usr/bin"];
        let found = self.alternatives(&folders.map(|folder| format!("{folder}/{name}")));
        found.into_iter().next().ok_or_else(|| self.lacks(name))
    }

    /// A file of configuration, from the kit or from the host.
    pub(crate) fn configuration(&self, name: &str) -> Option<PathBuf> {
        self.alternatives(&[format!("etc/{name}")]).into_iter().next()
    }

    fn alternatives(&self, names: &[impl AsRef<str>]) -> Vec<PathBuf> {
        [self.folder.as_path(), Path::new("/")]
            .iter()
            .flat_map(|root| names.iter().map(|name| root.join(name.as_ref())))
            .filter(|path| path.exists())
            .collect()
    }

    pub(crate) fn lacks(&self, part: &str) -> Error {
        Error::Part { part: part.to_owned(), folder: self.folder.clone() }
    }
}

/// The code name of a Debian release.
fn release(os_release: &str) -> &str {
    os_release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map_or("unknown", |name| name.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read() {
        let check = |text, expected| assert_eq!(release(text), expected, "{text}");
        check("NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n", "bookworm");
        check("VERSION_CODENAME=\"trixie\"\n", "trixie");
        check("ID=void\n", "unknown");
    }

    #[test]
    fn missing_parts_say_how_to_get_them() {
        let missing = Missing { path: "/nowhere".into() };
        assert!(missing.to_string().contains("cargo xtask tools"), "{missing}");
    }
}
