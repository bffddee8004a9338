//! A process's own folder: where it starts, with a link for each volume at the place where it would be mounted.

use crate::machine::{Mounted, Run};
use crate::pods::launch::{expand, variable_of};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The folders of all pods.
pub(super) struct Farm {
    folder: PathBuf,
}

/// What a process is started with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Laid {
    /// Where it starts.
    pub root: PathBuf,
    /// Its arguments, without the program.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
}

impl Farm {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Lays out the folder of a container.
    pub(super) fn lay(&self, run: &Run) -> io::Result<Laid> {
        let pod = self.folder.join(plain(&run.id.pod)?);
        let root = pod.join("containers").join(plain(&run.id.container)?);
        std::fs::create_dir_all(&root)?;
        let mut env = BTreeMap::new();
        for mount in &run.mounts {
            let target = match &mount.folder {
                Some(folder) => folder.clone(),
                None => pod.join("volumes").join(plain(&mount.volume)?),
            };
            let target = match &mount.below {
                Some(below) => target.join(inside(below)?),
                None => target,
            };
            if mount.folder.is_none() || mount.below.is_some() {
                std::fs::create_dir_all(&target)?;
            }
            link(&root, mount, &target)?;
            env.insert(variable_of(&mount.volume), target.display().to_string());
        }
        for (name, value) in &run.env {
            let value = expand(value, &env);
            env.insert(name.clone(), value);
        }
        env.insert("LIFEBOAT_POD".to_owned(), run.key.to_string());
        let args = run.argv.iter().skip(1).map(|argument| expand(argument, &env)).collect();
        Ok(Laid { root, args, env })
    }

    /// Removes what a life of a pod had for itself. Links go, what they lead to stays.
    pub(super) fn clear(&self, pod: &str) -> io::Result<()> {
        match std::fs::remove_dir_all(self.folder.join(plain(pod)?)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn link(root: &Path, mount: &Mounted, target: &Path) -> io::Result<()> {
    let at = root.join(inside(&mount.path)?);
    if let Some(parent) = at.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::read_link(&at) {
        Ok(there) if there == target => return Ok(()),
        Ok(_) => std::fs::remove_file(&at)?,
        Err(_) => {}
    }
    std::os::unix::fs::symlink(target, &at)
}

/// A path below a folder, whatever it begins with; one that would lead out is refused.
fn inside(path: &str) -> io::Result<PathBuf> {
    let below: PathBuf = Path::new(path)
        .components()
        .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
        .collect();
    let leads_out = below.components().any(|part| !matches!(part, Component::Normal(_)));
    if leads_out || below.as_os_str().is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{path:?} is no path below a folder"),
        ));
    }
    Ok(below)
}

/// A name that is one part of a path.
fn plain(name: &str) -> io::Result<PathBuf> {
    let path = inside(name)?;
    match path.components().count() {
        1 => Ok(path),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no plain name"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::ProcessId;
    use lifeboat_engine::ObjectKey;

    #[test]
    fn paths_stay_inside() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(inside(path).ok(), expected.map(PathBuf::from), "{path}");
        };
        check("/data", Some("data"));
        check("data/./x", Some("data/x"));
        check("/", None);
        check("", None);
        check("/a/../../b", None);
        check("..", None);
    }

    #[test]
    fn a_volume_is_found_by_link_and_by_variable() {
        let home = tempfile::tempdir().unwrap();
        let volume = home.path().join("volume");
        std::fs::create_dir(&volume).unwrap();
        let farm = Farm::in_folder(home.path().join("pods"));
        let mounted = |name: &str, folder: Option<PathBuf>| Mounted {
            volume: name.to_owned(),
            path: format!("/mnt/{name}"),
            below: None,
            folder,
            handle: None,
        };
        let run = Run {
            id: ProcessId { pod: "uid".to_owned(), container: "main".to_owned() },
            key: ObjectKey::new("apps", "writer"),
            restarts: 0,
            in_a_row: 0,
            argv: vec!["lifeboat".to_owned(), "--folder=$(LIFEBOAT_VOLUME_DATA)".to_owned()],
            env: vec![("WHERE".to_owned(), "$(LIFEBOAT_VOLUME_DATA)/x".to_owned())],
            mounts: vec![mounted("data", Some(volume.clone())), mounted("tmp", None)],
        };
        // Twice: a container that is started again finds its folder there.
        for _ in 0..2 {
            let laid = farm.lay(&run).unwrap();
            assert_eq!(laid.args, [format!("--folder={}", volume.display())]);
            assert_eq!(laid.env["WHERE"], format!("{}/x", volume.display()));
            std::fs::write(laid.root.join("mnt/data/file"), "kept").unwrap();
            std::fs::write(laid.root.join("mnt/tmp/file"), "lost").unwrap();
        }
        farm.clear("uid").unwrap();
        assert_eq!(std::fs::read(volume.join("file")).unwrap(), b"kept");
        assert!(!home.path().join("pods/uid").exists());
        farm.clear("uid").unwrap();
    }
}
