//! One change at a time per volume, while changes to other volumes go on.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// The right to change some volumes; moved into whatever does the work, so that it outlives a caller who went away.
pub(crate) type Held = Vec<OwnedMutexGuard<()>>;

/// Who may change which name.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeMap<String, Arc<Turn<()>>>>);

impl Names {
    /// Waits for every change of these names that has begun. Names are taken in order, so two callers cannot wait for each other.
    pub(crate) async fn hold(&self, names: &[&str]) -> Held {
        let mut wanted: Vec<&str> = names.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut held = Vec::with_capacity(wanted.len());
        for name in wanted {
            let turn = {
                let mut turns = self.0.lock();
                turns.retain(|_, turn| Arc::strong_count(turn) > 1);
                turns.entry(name.to_owned()).or_default().clone()
            };
            held.push(turn.lock_owned().await);
        }
        held
    }
}
