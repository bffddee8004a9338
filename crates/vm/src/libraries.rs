//! Which shared libraries a program needs, and where they are: the loader itself is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Error;
use crate::kit::Kit;

/// The loader of x86-64, which every dynamic program names by this path.
pub(crate) const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// Libraries by the name under which a program asks for them; none for a static program.
pub(crate) fn of(kit: &Kit, program: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    // Asked for the libraries of a static program, the loader crashes; this is how ldd finds out before.
    if !loader(kit, "--verify", program)?.status.success() {
        return Ok(BTreeMap::new());
    }
    let output = loader(kit, "--list", program)?;
    if !output.status.success() && output.stdout.is_empty() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Tool { program: LOADER.to_owned(), doing: "listing libraries", output });
    }
    listed(&String::from_utf8_lossy(&output.stdout))
        .map_err(|library| Error::Library { program: program.to_owned(), library })
}

fn loader(kit: &Kit, option: &str, program: &Path) -> Result<Output, Error> {
    Command::new(LOADER)
        .arg(option)
        .arg(program)
        .env("LD_LIBRARY_PATH", kit.library_path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Start { program: LOADER.to_owned(), source })
}

/// Reads lines such as `libc.so.6 => /lib/libc.so.6 (0x7f)`; an error names a library that was not found.
fn listed(text: &str) -> Result<BTreeMap<String, PathBuf>, String> {
    let mut libraries = BTreeMap::new();
    for line in text.lines() {
        let Some((name, place)) = line.trim().split_once(" => ") else { continue };
        let path = place.split(" (").next().unwrap_or_default().trim();
        if path == "not found" {
            return Err(name.to_owned());
        }
        // The loader lists itself by its whole path; it is put into the machine in any case.
        if !name.starts_with('/') && path.starts_with('/') {
            libraries.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let text = "\tlinux-vdso.so.1 (0x7ffc)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x7f0)\n\
                    \t/lib64/ld-linux-x86-64.so.2 => /lib/x/ld.so (0x7f1)\n";
        assert_eq!(listed(text), Ok([("libc.so.6".to_owned(), "/lib/x/libc.so.6".into())].into()));
        assert_eq!(listed("\tliba.so => not found\n"), Err("liba.so".to_owned()));
        assert_eq!(listed("\tstatically linked\n"), Ok(BTreeMap::new()));
    }
}
