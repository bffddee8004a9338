//! A disk that loses power. Until a sync it may have kept, lost, zeroed or reordered any page of what was written; names change in order, and
//! are kept for sure only when they were synced. The store must start again whatever came of it, with every acknowledged write.

use super::*;
use std::collections::BTreeMap;
use std::io::{Error, Read, Result};

/// Numbers by chance, the same for the same seed.
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap_or(1)).unwrap_or(0)
    }
}

#[derive(Clone, Default)]
struct Bytes {
    /// On the disk for sure.
    synced: Vec<u8>,
    /// What a reader sees while there is power.
    now: Vec<u8>,
}

impl Bytes {
    /// What is on the disk when the power is gone.
    fn cut(&self, page: usize, chance: &mut Chance) -> Vec<u8> {
        let (least, most) = (self.synced.len().min(self.now.len()), self.synced.len().max(self.now.len()));
        let length = match chance.below(3) {
            0 => self.synced.len(),
            1 => self.now.len(),
            _ => least + chance.below(most - least + 1),
        };
        let mut left = Vec::with_capacity(length);
        for start in (0..length).step_by(page) {
            let fate = chance.below(3);
            for at in start..(start + page).min(length) {
                let (synced, now) = (self.synced.get(at), self.now.get(at));
                left.push(match (synced, now, fate) {
                    (Some(synced), Some(now), _) if synced == now => *synced,
                    (_, Some(now), 0) => *now,
                    (Some(synced), _, 1) => *synced,
                    _ => 0,
                });
            }
        }
        left
    }
}

type Names = BTreeMap<&'static str, usize>;

#[derive(Default)]
struct State {
    files: Vec<Bytes>,
    names: Names,
    /// Every state of the names since they were synced, the synced one first.
    past: Vec<Names>,
    /// Changes until the power goes.
    left: usize,
    done: usize,
}

#[derive(Clone, Default)]
struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn with_power_for(self, changes: usize) -> Self {
        self.0.lock().left = changes;
        self
    }

    /// The disk as it is found when the power is back.
    fn cut(&self, page: usize, chance: &mut Chance) -> Self {
        let state = self.0.lock();
        let kept = chance.below(state.past.len() + 1);
        let names = state.past.get(kept).unwrap_or(&state.names).clone();
        let files = state.files.iter().map(|file| file.cut(page, chance));
        let files = files.map(|bytes| Bytes { synced: bytes.clone(), now: bytes }).collect();
        Self(Arc::new(Mutex::new(State { files, names, left: usize::MAX, ..State::default() })))
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> Result<()> {
        let mut state = self.0.lock();
        state.left = state.left.checked_sub(1).ok_or_else(|| Error::other("the power is gone"))?;
        state.done += 1;
        change(&mut state);
        Ok(())
    }
}

impl State {
    fn file(&mut self, name: &'static str) -> &mut Bytes {
        if !self.names.contains_key(name) {
            self.past.push(self.names.clone());
            self.names.insert(name, self.files.len());
            self.files.push(Bytes::default());
        }
        &mut self.files[self.names[name]]
    }
}

impl Media for Disk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(name)
    }

    fn length(&self, name: &str) -> Result<Option<u64>> {
        let state = self.0.lock();
        Ok(state.names.get(name).map(|file| state.files[*file].now.len() as u64))
    }

    fn reader(&self, name: &str) -> Result<Box<dyn Read + '_>> {
        let state = self.0.lock();
        let file = state.names.get(name).ok_or(std::io::ErrorKind::NotFound)?;
        Ok(Box::new(std::io::Cursor::new(state.files[*file].now.clone())))
    }

    fn write_at(&mut self, name: &'static str, offset: u64, bytes: &[u8]) -> Result<()> {
        let offset = usize::try_from(offset).map_err(Error::other)?;
        // The power may go between two pieces of one write.
        for (at, piece) in bytes.chunks(bytes.len().div_ceil(2).max(1)).scan(offset, |at, piece| {
            *at += piece.len();
            Some((*at - piece.len(), piece))
        }) {
            self.change(|state| {
                let now = &mut state.file(name).now;
                now.resize(now.len().max(at + piece.len()), 0);
                now[at..at + piece.len()].copy_from_slice(piece);
            })?;
        }
        Ok(())
    }

    fn set_len(&mut self, name: &'static str, length: u64) -> Result<()> {
        let length = usize::try_from(length).map_err(Error::other)?;
        self.change(|state| state.file(name).now.resize(length, 0))
    }

    fn sync(&mut self, name: &'static str) -> Result<()> {
        self.change(|state| {
            let file = state.file(name);
            file.synced.clone_from(&file.now);
        })
    }

    fn rename(&mut self, from: &'static str, to: &'static str) -> Result<()> {
        self.change(|state| {
            state.past.push(state.names.clone());
            if let Some(file) = state.names.remove(from) {
                state.names.insert(to, file);
            }
        })
    }

    fn sync_names(&mut self) -> Result<()> {
        self.change(|state| state.past.clear())
    }
}

type Things = BTreeMap<String, u64>;

/// What was written, at every revision that ends a batch; and what was acknowledged.
#[derive(Clone, Default)]
struct Model {
    states: BTreeMap<u64, Things>,
    acknowledged: u64,
}

fn read_back(disk: &Disk) -> std::result::Result<(Opened<Disk>, Things), DiskError> {
    let mut things = Things::new();
    let opened = open_on(disk.clone(), None, |record| {
        match record.json {
            Some(_) => things.insert(record.name, record.revision),
            None => things.remove(&record.name),
        };
        Ok(())
    })?;
    things.remove("");
    Ok((opened, things))
}

/// Opens, writes batches and rewrites the log now and then, until the power goes or everything is written.
fn work(disk: &Disk, model: &mut Model, chance: &mut Chance) -> std::result::Result<(), DiskError> {
    let (mut opened, mut things) = read_back(disk)?;
    let mut revision = opened.revision;
    for _ in 0..6 {
        let mut batch = Vec::new();
        for _ in 0..=chance.below(3) {
            revision += 1;
            let name = format!("t{}", chance.below(5));
            let text = vec![b'x'; chance.below(60)];
            let json = (chance.below(4) > 0).then_some(&text[..]);
            format::push(&mut batch, revision, ["things", "", &name], json);
            match json {
                Some(_) => things.insert(name, revision),
                None => things.remove(&name),
            };
        }
        model.states.insert(revision, things.clone());
        append(&mut opened, &mut batch, revision)?;
        model.acknowledged = revision;
        if chance.below(4) == 0 {
            write_snapshot(&mut opened.media)?;
            begin_log(&mut opened.media)?;
            opened.log_bytes = BATCHES.len() as u64;
        }
    }
    Ok(())
}

fn is_power(error: &DiskError) -> bool {
    matches!(error, DiskError::Io { source, .. } if source.to_string() == "the power is gone")
}

#[test]
fn every_acknowledged_write_is_there_whatever_a_power_cut_left_of_the_others() {
    let seeds = std::env::var("LIFEBOAT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40);
    for seed in 0..seeds {
        let whole = Disk::default().with_power_for(usize::MAX);
        work(&whole, &mut Model::default(), &mut Chance(seed)).expect("with power everything works");
        let changes = whole.0.lock().done;
        for after in 0..=changes {
            let disk = Disk::default().with_power_for(after);
            let mut model = Model { states: [(0, Things::new())].into(), ..Model::default() };
            let cut = work(&disk, &mut model, &mut Chance(seed));
            let mut chance = Chance(seed << 32 | after as u64);
            lives_on(seed, after, disk, model, cut, &mut chance);
        }
    }
}

/// The power comes back, and goes again at any moment, also while the store is being opened.
fn lives_on(
    seed: u64,
    after: usize,
    mut disk: Disk,
    mut model: Model,
    mut ended: std::result::Result<(), DiskError>,
    chance: &mut Chance,
) {
    for round in 0..3 {
        if let Err(error) = &ended {
            assert!(is_power(error), "seed {seed}, cut after {after}, round {round}: {error}");
        }
        disk = disk.cut(1 + chance.below(40), chance);
        // The store may be read and thrown away: nothing on the disk depends on it.
        let probe = disk.cut(1, &mut chance.clone());
        let (opened, things) = read_back(&probe).unwrap_or_else(|error| {
            panic!("seed {seed}, cut after {after}, round {round}: the store does not start: {error}")
        });
        let place = format!("seed {seed}, cut after {after}, round {round}, revision {}", opened.revision);
        assert!(opened.revision >= model.acknowledged, "{place}: {} was acknowledged", model.acknowledged);
        assert_eq!(Some(&things), model.states.get(&opened.revision), "{place}");
        // What was found is what goes on; what was lost was never acknowledged, and its revisions are used again.
        let found = opened.revision;
        model.states.retain(|revision, _| *revision <= found);
        model.acknowledged = found;
        disk = disk.with_power_for(chance.below(40));
        ended = work(&disk, &mut model, chance);
    }
}
