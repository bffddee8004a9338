//! A process that can die at every change of its disks, and somebody who looks at them after each.

use crate::site::{Tree, glimpse, tree};
use jiff::Timestamp;
use lifeboat_mortal::Fate;
use lifeboat_testbed::{CrashPoints, Kind};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Looks at the folders of a class of directory volumes.
#[derive(Default)]
pub struct Watch {
    volumes: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Highest epoch and largest size by name.
    marks: BTreeMap<String, (u64, u64)>,
    /// What senders have cut, by generation.
    cuts: BTreeMap<String, Tree>,
    times: BTreeMap<&'static str, Timestamp>,
    /// A volume that may be one of these and nothing else.
    only: Option<(PathBuf, Vec<Tree>)>,
    broken: Option<String>,
}

impl Watch {
    pub fn over(volumes: PathBuf) -> Self {
        Self { volumes, seen: Mutex::default() }
    }

    pub fn only(&self, folder: &Path, allowed: impl Into<Vec<Tree>>) {
        self.seen.lock().only = Some((folder.to_owned(), allowed.into()));
    }

    pub fn anything(&self) {
        self.seen.lock().only = None;
    }

    pub fn verdict(&self) -> Result<(), String> {
        self.seen.lock().broken.clone().map_or(Ok(()), Err)
    }

    /// Looks at everything, and remembers the first thing that is not as it must be.
    pub fn look(&self) {
        let mut seen = self.seen.lock();
        if let Err(why) = seen.look(&self.volumes) {
            seen.broken.get_or_insert(why);
        }
    }

    /// Whether a volume holds exactly what some sender has cut.
    pub fn is_a_cut(&self, name: &str) -> Result<(), String> {
        let folder = self.volumes.join(name).join("data");
        // Images are deleted object first: the volume may be gone by now.
        let Some(now) = glimpse(&folder) else { return Ok(()) };
        if self.seen.lock().cuts.values().any(|cut| *cut == now) {
            return Ok(());
        }
        Err(format!("{name} is an image of nothing that was cut"))
    }

    /// Whether a time is not before the last one of its kind.
    pub fn not_before(&self, kind: &'static str, time: Timestamp) -> Result<(), String> {
        match self.seen.lock().times.insert(kind, time).filter(|last| *last > time) {
            Some(last) => Err(format!("{kind} went back from {last} to {time}")),
            None => Ok(()),
        }
    }
}

impl Seen {
    fn look(&mut self, volumes: &Path) -> Result<(), String> {
        // A volume that goes while it is looked at is not there.
        for entry in std::fs::read_dir(volumes).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(meta) = std::fs::read(entry.path().join("meta.json")) else { continue };
            let Ok(meta) = serde_json::from_slice::<Value>(&meta) else { continue };
            let tags: Vec<&str> =
                meta["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let said = |key: &str| tags.iter().find_map(|tag| tag.strip_prefix(key)?.strip_prefix('='));
            self.name_tells_whose_it_is(&name)?;
            if let Some(generation) = said("lifeboat.send") {
                // S17: what is being sent is only read, and stays what it was.
                if meta["mode"] != "ReadOnly" {
                    return Err(format!("{name} is sent and can be written to"));
                }
                let Some(now) = glimpse(&entry.path().join("data")) else { continue };
                if self.cuts.entry(generation.to_owned()).or_insert_with(|| now.clone()) != &now {
                    return Err(format!("{name} has changed while it was sent"));
                }
            } else if !name.contains("back-") {
                // S3, S20: neither epochs nor sizes ever go down.
                let epoch = said("lifeboat.epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
                let mark = (epoch, meta["size"].as_u64().unwrap_or(0));
                let last = self.marks.insert(name.clone(), mark).unwrap_or_default();
                if mark.0 < last.0 || mark.1 < last.1 {
                    return Err(format!("epoch and size of {name} went from {last:?} to {mark:?}"));
                }
            }
        }
        // S5, S9: never a mixture, and never nothing.
        match &self.only {
            Some((folder, _)) if !folder.exists() => Err(format!("{} is not there", folder.display())),
            Some((folder, allowed)) => match glimpse(folder) {
                Some(now) if !allowed.contains(&now) => {
                    Err(format!("{} is neither what it was nor the image", folder.display()))
                }
                // It is becoming the other at this moment.
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// S19: every volume belongs to an object by its name.
    fn name_tells_whose_it_is(&self, name: &str) -> Result<(), String> {
        let uid =
            ["send-", "back-", "staging-"].iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name);
        let is_uid = uid.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        if is_uid { Ok(()) } else { Err(format!("nobody knows whose {name} is")) }
    }
}

/// A process that can die at every change of its disks, and is watched at it.
pub struct Watched {
    pub points: CrashPoints,
    pub watch: Arc<Watch>,
}

impl Fate for Watched {
    async fn change<T: Send>(&self, verb: &str, _name: &str, work: impl Future<Output = T> + Send) -> T {
        let looked = async {
            let done = work.await;
            self.watch.look();
            done
        };
        match self.points.effect(Kind::Lvm, verb, looked).await {
            Ok(done) => done,
            Err(_) => std::future::pending().await,
        }
    }
}

/// A volume as the directory back end keeps it.
fn put(volumes: &Path, name: &str, mode: &str, size: u64, tags: &[&str], text: &str) {
    let folder = volumes.join(name);
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/f"), text).unwrap();
    let meta = serde_json::json!({ "tags": tags, "mode": mode, "size": size });
    std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
}

#[test]
fn every_rule_about_disks_can_be_broken() {
    const UID: &str = "11111111-2222-3333-4444-555555555555";
    let cut = format!("send-{UID}");
    let check = |expected: &str, breach: &dyn Fn(&Path)| {
        let folder = tempfile::TempDir::new().unwrap();
        let (at, volume) = (folder.path(), folder.path().join(UID).join("data"));
        let watch = Watch::over(at.to_owned());
        put(at, UID, "ReadWrite", 8, &["lifeboat.epoch=2"], "one");
        put(at, &cut, "ReadOnly", 8, &["lifeboat.send=g"], "one");
        watch.only(&volume, [tree(&volume)]);
        watch.look();
        watch.is_a_cut(UID).unwrap();
        watch.verdict().unwrap();
        breach(at);
        watch.look();
        let found = watch.verdict().and_then(|()| watch.is_a_cut(UID)).err().unwrap_or_default();
        assert!(found.contains(expected), "{expected:?} was not seen, but {found:?}");
    };
    check("went from (2, 8) to (1, 8)", &|at| put(at, UID, "ReadWrite", 8, &["lifeboat.epoch=1"], "one"));
    check("went from (2, 8) to (2, 4)", &|at| put(at, UID, "ReadWrite", 4, &["lifeboat.epoch=2"], "one"));
    check("neither what it was", &|at| put(at, UID, "ReadWrite", 8, &["lifeboat.epoch=2"], "half"));
    check("is not there", &|at| std::fs::rename(at.join(UID), at.join(format!("back-{UID}"))).unwrap());
    check("nobody knows whose", &|at| put(at, "stray", "ReadWrite", 8, &[], ""));
    check("can be written to", &|at| put(at, &cut, "ReadWrite", 8, &["lifeboat.send=g"], "one"));
    check("changed while it was sent", &|at| put(at, &cut, "ReadOnly", 8, &["lifeboat.send=g"], "two"));
    let watch = Watch::over(PathBuf::new());
    let time = |second| Timestamp::from_second(second).unwrap();
    watch.not_before("cut", time(2)).unwrap();
    assert!(watch.not_before("cut", time(1)).is_err());
    let folder = tempfile::TempDir::new().unwrap();
    put(folder.path(), UID, "ReadOnly", 8, &[], "of nothing");
    assert!(Watch::over(folder.path().to_owned()).is_a_cut(UID).is_err());
}
