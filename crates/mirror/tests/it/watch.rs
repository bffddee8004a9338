//! Looks at the disks of two sides after every change, for what must hold all the time.

use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Tree = BTreeMap<String, Vec<u8>>;

/// Names of copies, by how they begin.
const KINDS: [&str; 6] = ["cut-", "replica-", "filling-", "spare-", "diverged-", "staging-"];

/// Looks at the folders of directory volumes, one for each side.
#[derive(Default)]
pub struct Watch {
    sides: Mutex<Vec<PathBuf>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Highest epoch of any copy, by side and volume: two clusters may give out the same UID.
    epochs: BTreeMap<(PathBuf, String), u64>,
    /// Volumes of which a whole copy was seen.
    whole: BTreeSet<(PathBuf, String)>,
    /// What was cut, by generation.
    cuts: BTreeMap<String, Tree>,
    broken: Option<String>,
}

/// One copy on a disk.
struct Copy {
    name: String,
    uid: String,
    path: PathBuf,
    meta: Vec<u8>,
    read_only: bool,
    epoch: Option<u64>,
    generation: Option<String>,
}

impl Copy {
    fn read(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        let meta = std::fs::read(path.join("meta.json")).ok()?;
        let said: Value = serde_json::from_slice(&meta).ok()?;
        let tags = said["tags"].as_array().cloned().unwrap_or_default();
        let tag = |key: &str| {
            let tags = tags.iter().filter_map(Value::as_str);
            tags.filter_map(|tag| tag.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned).next()
        };
        let uid = KINDS.iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(&name).to_owned();
        let (epoch, generation) =
            (tag("lifeboat.epoch").and_then(|it| it.parse().ok()), tag("lifeboat.generation"));
        Some(Self { read_only: said["mode"] == "ReadOnly", epoch, generation, name, uid, path, meta })
    }

    /// Whether it holds all of some state of the volume.
    fn is_whole(&self) -> bool {
        self.name == self.uid
            || ["replica-", "diverged-"].iter().any(|kind| self.name.starts_with(kind))
            || (self.name.starts_with("filling-") && self.generation.is_some())
    }

    /// Its files, if it was the same copy all the while.
    fn tree(&self) -> Option<Tree> {
        let mut tree = Tree::new();
        for entry in std::fs::read_dir(self.path.join("data")).ok()? {
            let entry = entry.ok()?;
            tree.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).ok()?);
        }
        (std::fs::read(self.path.join("meta.json")).ok()? == self.meta).then_some(tree)
    }
}

fn copies(side: &Path) -> Vec<Copy> {
    let entries = std::fs::read_dir(side).into_iter().flatten().flatten();
    entries.filter_map(|entry| Copy::read(entry.path())).collect()
}

impl Watch {
    pub fn add(&self, volumes: PathBuf) {
        self.sides.lock().push(volumes);
    }

    /// Looks, and remembers the first thing that is not as it must be.
    pub fn look(&self) {
        let sides = self.sides.lock().clone();
        let mut seen = self.seen.lock();
        // Others rename while this looks: what is wrong is wrong the next moment too.
        let mut found = seen.look(&sides);
        for _ in 0..3 {
            if found.is_err() {
                found = seen.look(&sides);
            }
        }
        if let Err(why) = found {
            seen.broken.get_or_insert(why);
        }
    }

    pub fn verdict(&self) {
        self.look();
        assert_eq!(self.seen.lock().broken, None);
    }
}

impl Seen {
    fn look(&mut self, sides: &[PathBuf]) -> Result<(), String> {
        let mut live = Vec::new();
        for side in sides {
            let copies = copies(side);
            for copy in &copies {
                self.one(copy)?;
                // One that still is called a generation is on its way to or from being a primary's, and nobody may use it.
                let used = copy.name == copy.uid && copy.generation.is_none();
                live.extend(used.then_some(copy.epoch).flatten());
            }
            let mut highest = BTreeMap::<&str, u64>::new();
            for copy in &copies {
                let epoch = highest.entry(&copy.uid).or_default();
                *epoch = (*epoch).max(copy.epoch.unwrap_or(0));
            }
            for (uid, epoch) in highest {
                // S3: what was seen once is never forgotten.
                let last = self.epochs.get(&(side.clone(), uid.to_owned())).copied().unwrap_or(0);
                if epoch < last {
                    return Err(format!("the epoch of {uid} went from {last} to {epoch}"));
                }
                self.epochs.insert((side.clone(), uid.to_owned()), epoch);
            }
            // S9: of what was once whole on this side, something whole is always there.
            let whole = |uid: &str| copies.iter().any(|copy| copy.uid == uid && copy.is_whole());
            if let Some((_, uid)) = self.whole.iter().find(|(at, uid)| at == side && !whole(uid)) {
                return Err(format!("no whole copy of {uid} is left"));
            }
            let all =
                copies.iter().filter(|copy| copy.is_whole()).map(|copy| (side.clone(), copy.uid.clone()));
            self.whole.extend(all);
        }
        // S2: no two sides write at one epoch.
        live.sort_unstable();
        match live.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(format!("two live volumes at epoch {}", two[0])),
            None => Ok(()),
        }
    }

    fn one(&mut self, copy: &Copy) -> Result<(), String> {
        // S19: every volume belongs to an object by its name.
        if !copy.uid.split('-').map(str::len).eq([8, 4, 4, 4, 12]) {
            return Err(format!("nobody knows whose {} is", copy.name));
        }
        let Some(generation) = copy.generation.clone().filter(|_| copy.name != copy.uid) else {
            return Ok(());
        };
        let Some(tree) = copy.tree() else { return Ok(()) };
        if copy.name.starts_with("cut-") {
            // S17: what is sent is only read, and stays what it was.
            if !copy.read_only {
                return Err(format!("{} is sent and can be written to", copy.name));
            }
            if self.cuts.entry(generation).or_insert_with(|| tree.clone()) != &tree {
                return Err(format!("{} has changed while it was sent", copy.name));
            }
            return Ok(());
        }
        // S5, S16: what is called a copy of a cut is all of that cut.
        match self.cuts.get(&generation) {
            Some(cut) if *cut != tree => Err(format!("{} is not what {generation} was", copy.name)),
            _ => Ok(()),
        }
    }
}

/// A copy on a side, as the directory back end keeps it.
fn put(side: &Path, name: &str, read_only: bool, tags: &[&str], text: &str) {
    let folder = side.join(name);
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("data/ledger"), text).unwrap();
    let mode = if read_only { "ReadOnly" } else { "ReadWrite" };
    let meta = serde_json::json!({ "tags": tags, "mode": mode });
    std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
}

#[test]
fn every_rule_can_be_broken() {
    const UID: &str = "11111111-2222-3333-4444-555555555555";
    const PEER: &str = "99999999-2222-3333-4444-555555555555";
    let check = |expected: &str, breach: &dyn Fn(&Path, &Path)| {
        let folder = tempfile::TempDir::new().unwrap();
        let (east, west) = (folder.path().join("east"), folder.path().join("west"));
        let watch = Watch::default();
        watch.add(east.clone());
        watch.add(west.clone());
        put(&east, UID, false, &["lifeboat.epoch=2"], "one");
        put(&east, &format!("cut-{UID}"), true, &["lifeboat.epoch=2", "lifeboat.generation=g"], "one");
        put(&west, &format!("replica-{PEER}"), false, &["lifeboat.epoch=2", "lifeboat.generation=g"], "one");
        watch.verdict();
        breach(&east, &west);
        watch.look();
        let found = watch.seen.lock().broken.clone().unwrap_or_default();
        assert!(found.contains(expected), "{expected:?} was not seen, but {found:?}");
    };
    check("went from 2 to 1", &|_, west| {
        put(west, &format!("replica-{PEER}"), false, &["lifeboat.epoch=1", "lifeboat.generation=g"], "one");
    });
    check("no whole copy", &|_, west| {
        std::fs::rename(west.join(format!("replica-{PEER}")), west.join(format!("filling-{PEER}"))).unwrap();
        put(west, &format!("filling-{PEER}"), false, &["lifeboat.epoch=2"], "one");
    });
    check("two live volumes at epoch 2", &|_, west| put(west, PEER, false, &["lifeboat.epoch=2"], "one"));
    check("nobody knows whose", &|_, west| put(west, "stray", false, &[], ""));
    check("can be written to", &|east, _| {
        put(east, &format!("cut-{UID}"), false, &["lifeboat.epoch=2", "lifeboat.generation=g"], "one");
    });
    check("changed while it was sent", &|east, _| {
        put(east, &format!("cut-{UID}"), true, &["lifeboat.epoch=2", "lifeboat.generation=g"], "two");
    });
    check("is not what g was", &|_, west| {
        put(west, &format!("replica-{PEER}"), false, &["lifeboat.epoch=2", "lifeboat.generation=g"], "half");
    });
}
