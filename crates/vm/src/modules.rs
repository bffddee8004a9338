//! Which kernel modules the machine needs, with everything that they need themselves.
//!
//! A package that is unpacked and not installed has no `modules.dep`; depmod would write it. The same facts stand in
//! every module (`depends=`, `softdep=`, `alias=`), and are read from there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::kit::Kit;

/// Loaded at boot: the disks, the port to the host and the device mapper.
pub(crate) const AT_BOOT: [&str; 5] = ["virtio_pci", "virtio_blk", "virtio_console", "dm_mod", "loop"];
/// Loaded by the kernel or by lvm when they are needed: loading btrfs alone takes as long as half the boot.
const ON_DEMAND: [&str; 5] = ["dm_snapshot", "dm_thin_pool", "ext4", "xfs", "btrfs"];

/// One module that goes into the machine.
#[derive(Debug)]
pub(crate) struct Module {
    /// Path below the folder of modules.
    pub(crate) path: PathBuf,
    /// Its content.
    pub(crate) content: Vec<u8>,
    facts: Facts,
}

/// What a module says about itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    needs: BTreeSet<String>,
    /// Wanted before it, by name or by alias; not all of them exist.
    wants: BTreeSet<String>,
    aliases: BTreeSet<String>,
}

/// All modules for the machine, by name.
pub(crate) fn closure(kit: &Kit, kernel: &str) -> Result<BTreeMap<String, Module>, Error> {
    let folder = kit.modules(kernel);
    let built_in = folder.join("modules.builtin");
    let built_in = fs::read_to_string(&built_in).map_err(Error::file("reading", built_in))?;
    let built_in: BTreeSet<String> = built_in.lines().map(|line| name(Path::new(line))).collect();
    let mut files = BTreeMap::new();
    find(&folder, &mut files)?;
    let mut aliased: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Wishes name what the crypto modules offer (`crc32c`), so those are asked for their other names.
    for (name, path) in
        files.iter().filter(|(_, path)| path.components().any(|part| part.as_os_str() == "crypto"))
    {
        for alias in facts(&read(path)?).aliases {
            aliased.entry(alias).or_default().push(name.clone());
        }
    }
    let mut modules = BTreeMap::new();
    let mut open: Vec<(String, bool)> =
        AT_BOOT.iter().chain(&ON_DEMAND).map(|name| ((*name).to_owned(), true)).collect();
    while let Some((name, needed)) = open.pop() {
        if modules.contains_key(&name) || built_in.contains(&name) {
            continue;
        }
        let Some(path) = files.get(&name) else {
            if needed {
                return Err(kit.lacks(&format!("module {name}")));
            }
            continue;
        };
        let content = read(path)?;
        let facts = facts(&content);
        open.extend(facts.needs.iter().map(|name| (name.clone(), true)));
        for wish in &facts.wants {
            open.push((wish.clone(), false));
            open.extend(aliased.get(wish).into_iter().flatten().map(|name| (name.clone(), false)));
        }
        let path = path.strip_prefix(&folder).unwrap_or(path).to_owned();
        modules.insert(name, Module { path, content, facts });
    }
    Ok(modules)
}

/// Whether everything is there, right after it was fetched.
pub(crate) fn check(kit: &Kit) -> Result<(), Error> {
    closure(kit, &kit.kernel()?.0).map(drop)
}

/// `modules.dep` for these modules: each with all that it needs, nearest first.
pub(crate) fn dependencies(modules: &BTreeMap<String, Module>) -> String {
    let mut text = String::new();
    for module in modules.values() {
        let mut all: Vec<&str> = Vec::new();
        let mut open: Vec<&str> = module.facts.needs.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            // Seen again further down, it has to be loaded still earlier.
            all.retain(|seen| *seen != name);
            all.push(name);
            open.extend(
                modules
                    .get(name)
                    .into_iter()
                    .flat_map(|needed| needed.facts.needs.iter().map(String::as_str)),
            );
        }
        let paths =
            all.iter().filter_map(|name| modules.get(*name)).map(|needed| needed.path.display().to_string());
        text += &format!("{}: {}\n", module.path.display(), paths.collect::<Vec<_>>().join(" "));
    }
    text
}

/// `modules.alias` for these modules: how the kernel asks for them.
pub(crate) fn aliases(modules: &BTreeMap<String, Module>) -> String {
    modules
        .iter()
        .flat_map(|(name, module)| {
            module.facts.aliases.iter().map(move |alias| format!("alias {alias} {name}\n"))
        })
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::file("reading", path))
}

fn find(folder: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::file("reading", folder))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "ko") {
            found.insert(name(&path), path);
        }
    }
    Ok(())
}

/// A module's name from its file: dashes and underscores mean the same.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}

/// Reads the entries `key=value`, each ended by a zero, wherever the file has them.
fn facts(module: &[u8]) -> Facts {
    let mut facts = Facts::default();
    for entry in module.split(|byte| *byte == 0) {
        let Some((key, value)) = std::str::from_utf8(entry).ok().and_then(|entry| entry.split_once('='))
        else {
            continue;
        };
        let listed = |separators: &[char]| {
            value
                .split(separators.to_vec().as_slice())
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        match key {
            "depends" => facts.needs.extend(listed(&[',']).iter().map(|name| name.replace('-', "_"))),
            "softdep" => {
                facts.wants.extend(listed(&[' ']).into_iter().filter(|word| !word.ends_with(':')));
            }
            "alias" => facts.aliases.extend([value.to_owned()]),
            _ => {}
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_a_module() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let module = b"\x7fELF\0\xff\xfe=x\0depends=raid6_pq,lib-crc\0softdep=pre: crc32c sha256\0alias=fs-btrfs\0license=GPL\0";
        let expected = Facts {
            needs: set(&["raid6_pq", "lib_crc"]),
            wants: set(&["crc32c", "sha256"]),
            aliases: set(&["fs-btrfs"]),
        };
        assert_eq!(facts(module), expected);
        assert_eq!(facts(b"depends=\0"), Facts::default());
    }

    #[test]
    fn what_is_needed_deepest_comes_last() {
        let module = |path: &str, needs: &[&str]| Module {
            path: path.into(),
            content: Vec::new(),
            facts: Facts {
                needs: needs.iter().map(|name| (*name).to_owned()).collect(),
                aliases: [format!("alias-of-{path}")].into(),
                ..Facts::default()
            },
        };
        let modules =
            [("a", module("a.ko", &["b", "c"])), ("b", module("b.ko", &["c"])), ("c", module("c.ko", &[]))];
        let modules = modules.into_iter().map(|(name, module)| (name.to_owned(), module)).collect();
        assert_eq!(dependencies(&modules), "a.ko: b.ko c.ko\nb.ko: c.ko\nc.ko: \n");
        assert!(aliases(&modules).starts_with("alias alias-of-a.ko a\n"));
    }
}
