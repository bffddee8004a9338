//! What has to be done on the target, found by comparing the tree with the last sync.
//!
//! Order matters, because the target may die at any record and go on from an earlier one: first files are put aside that live on under another
//! name, then what is gone is removed, then a barrier, then everything is made and filled, then names are added to files that have several,
//! and last, from the leaves up, directories get their times.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Entry, Kind, order};

/// Where the content of a file starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Nothing is known of it.
    None,
    /// The old entry of this number, at the same path.
    Same(usize),
    /// The old entry of this number, which had another path and was put aside.
    Moved(usize, u32),
}

/// The changes of a tree, by the numbers of entries.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Old entries that are put aside, with their slots.
    pub(crate) stash: Vec<(usize, u32)>,
    /// Old entries that are removed: the topmost only.
    pub(crate) delete: Vec<usize>,
    /// For each new entry, the old one at the same path that is of the same kind and still there.
    pub(crate) old: Vec<Option<usize>>,
    /// For each new entry, where its content starts from.
    pub(crate) base: Vec<Option<usize>>,
    /// Slots of moved files, by new entry.
    pub(crate) slots: BTreeMap<usize, u32>,
    /// For each new entry that is another name of a file, the entry under which that is sent.
    pub(crate) alias: BTreeMap<usize, usize>,
    /// New directories whose times must be set, because something in them is made or removed.
    pub(crate) touched: BTreeSet<usize>,
}

/// Tells whether a file looks more like the first than like the second of two old ones.
pub(crate) type Resembles<'a> = dyn Fn(&Entry, &Entry, &Entry) -> bool + 'a;

impl Plan {
    /// Compares two trees, both in the order of a walk.
    pub(crate) fn new(old: &[Entry], new: &[Entry], resembles: &Resembles<'_>) -> Self {
        let mut plan = Self { old: vec![None; new.len()], base: vec![None; new.len()], ..Self::default() };
        let mut gone = Vec::new();
        plan.pair(old, new, &mut gone);
        plan.name(old, new);
        plan.part(old, &mut gone);
        plan.moves(old, new, resembles, &mut gone);
        plan.remove(old, &gone);
        plan.touch(old, new, &gone);
        plan
    }

    /// Where the content of a new file starts from.
    pub(crate) fn base(&self, new: usize) -> Base {
        match (self.base[new], self.slots.get(&new)) {
            (Some(old), Some(slot)) => Base::Moved(old, *slot),
            (Some(old), None) => Base::Same(old),
            (None, _) => Base::None,
        }
    }

    /// Pairs entries of the same path and kind; what has no partner is gone.
    fn pair(&mut self, old: &[Entry], new: &[Entry], gone: &mut Vec<usize>) {
        let mut at = 0;
        for (number, entry) in old.iter().enumerate() {
            while new.get(at).is_some_and(|new| order(&new.path.0, &entry.path.0).is_lt()) {
                at += 1;
            }
            match new.get(at) {
                Some(same) if same.path == entry.path && same.kind.is_like(&entry.kind) => {
                    self.old[at] = Some(number);
                    self.base[at] = Some(number);
                }
                _ => gone.push(number),
            }
        }
    }

    /// Chooses the name under which a file of several names is sent: one that it had before, if any.
    fn name(&mut self, old: &[Entry], new: &[Entry]) {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (number, entry) in new.iter().enumerate().filter(|(_, entry)| entry.names > 1) {
            if matches!(entry.kind, Kind::File) {
                groups.entry(entry.number).or_default().push(number);
            }
        }
        for group in groups.values().filter(|group| group.len() > 1) {
            let kept = |number: &&usize| self.old[**number].is_some_and(|at| old[at].alias.is_none());
            let chosen = *group.iter().find(kept).unwrap_or(&group[0]);
            for number in group.iter().filter(|number| **number != chosen) {
                self.alias.insert(*number, chosen);
                self.base[*number] = None;
            }
        }
    }

    /// A file of several names is not written to where some other name of it stays and becomes a file of its own.
    fn part(&mut self, old: &[Entry], gone: &mut Vec<usize>) {
        let mut partner = vec![None; old.len()];
        for (number, at) in self.old.iter().enumerate() {
            if let Some(at) = at {
                partner[*at] = Some(number);
            }
        }
        let mut groups: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (at, entry) in old.iter().enumerate().filter(|(_, entry)| entry.names > 1) {
            if matches!(entry.kind, Kind::File) {
                groups.entry(&entry.alias.as_ref().unwrap_or(&entry.path).0).or_default().push(at);
            }
        }
        for group in groups.values() {
            let root = |number: usize| self.alias.get(&number).copied().unwrap_or(number);
            let roots: BTreeSet<usize> = group.iter().filter_map(|at| partner[*at]).map(root).collect();
            let stays: Vec<usize> = group.iter().copied().filter(|at| partner[*at].is_some()).collect();
            if roots.len() > 1 {
                // Taken apart: each is made anew. This is rare, and costs the content once.
                for at in stays {
                    if let Some(number) = partner[at] {
                        self.old[number] = None;
                        self.base[number] = None;
                    }
                    gone.push(at);
                }
            }
        }
        // A name that joins another file is not that file yet.
        let joins: Vec<usize> = self
            .alias
            .iter()
            .filter(|(name, root)| {
                let before = self.old[**name].map(|at| &old[at]);
                let main = self.old[**root].map(|at| &old[at].path);
                before.is_some_and(|before| before.alias.as_ref() != main)
            })
            .map(|(name, _)| *name)
            .collect();
        for name in joins {
            gone.extend(self.old[name].take());
        }
        gone.sort_unstable();
    }

    /// Finds files that live on under another name.
    fn moves(&mut self, old: &[Entry], new: &[Entry], resembles: &Resembles<'_>, gone: &mut Vec<usize>) {
        let alone = |entry: &Entry| matches!(entry.kind, Kind::File) && entry.names == 1 && entry.size > 0;
        let mut by_number: BTreeMap<u64, usize> = BTreeMap::new();
        for (at, entry) in old.iter().enumerate().filter(|(_, entry)| alone(entry)) {
            by_number.insert(entry.number, at);
        }
        for (number, entry) in new.iter().enumerate() {
            // It stayed where it was: it cannot have gone elsewhere.
            if self.old[number].is_some_and(|at| old[at].number == entry.number) {
                by_number.remove(&entry.number);
            }
        }
        let mut taken = BTreeSet::new();
        for (number, entry) in new.iter().enumerate() {
            if !matches!(entry.kind, Kind::File) || self.alias.contains_key(&number) {
                continue;
            }
            let Some(from) = by_number.get(&entry.number).copied() else { continue };
            let better = match self.base[number] {
                Some(same) if !taken.contains(&same) => {
                    same != from && resembles(entry, &old[from], &old[same])
                }
                _ => true,
            };
            if better {
                let slot = taken.len() as u32;
                taken.insert(from);
                by_number.remove(&entry.number);
                self.stash.push((from, slot));
                self.slots.insert(number, slot);
                self.base[number] = Some(from);
            }
        }
        // What went elsewhere is no longer where it was.
        gone.retain(|at| !taken.contains(at));
        for number in 0..new.len() {
            if self.old[number].is_some_and(|at| taken.contains(&at)) {
                self.old[number] = None;
            }
            if !self.slots.contains_key(&number) && self.base[number].is_some_and(|at| taken.contains(&at)) {
                self.base[number] = None;
            }
        }
        // The old file at the new name of a moved one makes way, unless it moves itself.
        for number in self.slots.keys() {
            if let Some(at) = self.old[*number].take() {
                gone.push(at);
            }
        }
        gone.sort_unstable();
        gone.dedup();
    }

    /// Leaves out what goes with its directory.
    fn remove(&mut self, old: &[Entry], gone: &[usize]) {
        let mut covered: Option<Vec<u8>> = None;
        for at in gone {
            let path = &old[*at].path.0;
            if covered.as_ref().is_some_and(|top| path.starts_with(top)) {
                continue;
            }
            self.delete.push(*at);
            covered = matches!(old[*at].kind, Kind::Folder).then(|| [path, &b"/"[..]].concat());
        }
    }

    /// Notes the directories that change by what happens in them.
    fn touch(&mut self, old: &[Entry], new: &[Entry], gone: &[usize]) {
        let folders: BTreeMap<&[u8], usize> = new
            .iter()
            .enumerate()
            .filter(|(_, entry)| matches!(entry.kind, Kind::Folder))
            .map(|(number, entry)| (entry.path.0.as_slice(), number))
            .collect();
        let made = (0..new.len()).filter(|number| self.old[*number].is_none()).map(|number| &new[number]);
        let removed = gone.iter().chain(self.stash.iter().map(|(at, _)| at)).map(|at| &old[*at]);
        for entry in made.chain(removed).filter(|entry| !entry.path.0.is_empty()) {
            let folder = lifeboat_beneath::split(&entry.path.0).0;
            self.touched.extend(folders.get(folder));
        }
        if !self.stash.is_empty() {
            self.touched.extend(folders.get(&b""[..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Meta, Table};
    use crate::wire::record::Bytes;

    fn entry(path: &str, kind: Kind, number: u64) -> Entry {
        Entry {
            path: Bytes(path.as_bytes().to_vec()),
            kind,
            meta: Meta { mode: 0o644, uid: 0, gid: 0, modified: (0, 0) },
            size: 10,
            number,
            names: 1,
            touched: (0, 0),
            settled: true,
            attributes: crate::blocks::ZERO,
            alias: None,
            block: 4096,
            first: 0,
        }
    }

    #[test]
    fn numbers_of_another_filesystem_move_nothing() {
        let old = vec![entry("", Kind::Folder, 2), entry("a", Kind::File, 11), entry("b", Kind::File, 12)];
        // Two filesystems gave the same numbers to other files.
        let new = vec![entry("", Kind::Folder, 2), entry("b", Kind::File, 11), entry("c", Kind::File, 12)];
        let stashed = |old: &[Entry]| Plan::new(old, &new, &|_, _, _| true).stash.len();
        assert_eq!(stashed(&old), 2, "on one filesystem they would have been renamed");
        let mut table = Table { generation: String::new(), secret: [0; 32], device: false, entries: old };
        table.forget_numbers();
        assert_eq!(stashed(&table.entries), 0);
    }
}
