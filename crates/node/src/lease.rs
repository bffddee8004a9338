//! Whether this process may still write what it has put its name on. Others take a silent process's work over after
//! [`DEAD_AFTER`](crate::volume::words::DEAD_AFTER); so one that cannot renew its record stops by itself well before that.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A record that could not be renewed for so long counts as lost. What is written stops at once; the rest is for a slow disk.
pub(crate) const HELD_FOR: Duration = Duration::from_secs(30);

/// When records were last written, by the UID of their object; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Leases {
    /// A record was written. The moment is that before the write began: others count from no later one.
    pub(crate) fn renew(&self, uid: &str, began: Instant) {
        self.0.lock().insert(uid.to_owned(), began);
    }

    /// Whether nobody else may have taken the work over.
    pub(crate) fn is_held(&self, uid: &str) -> bool {
        self.until(uid).is_some_and(|until| Instant::now() < until)
    }

    /// Returns when the record could not be renewed for too long.
    pub(crate) async fn lost(&self, uid: &str) {
        while let Some(until) = self.until(uid).filter(|until| Instant::now() < *until) {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Forgets objects that are gone.
    pub(crate) fn keep(&self, is_there: impl Fn(&String) -> bool) {
        self.0.lock().retain(|uid, _| is_there(uid));
    }

    fn until(&self, uid: &str) -> Option<Instant> {
        self.0.lock().get(uid).map(|renewed| *renewed + HELD_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::words::DEAD_AFTER;

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_cannot_renew_its_record_stops_before_another_may_take_over() {
        let leases = Leases::default();
        let began = Instant::now();
        leases.renew("u", began);
        let lost = async {
            leases.lost("u").await;
            began.elapsed()
        };
        let renews = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                leases.renew("u", Instant::now());
            }
            assert!(leases.is_held("u"));
        };
        let (lost, ()) = tokio::join!(lost, renews);
        assert_eq!(lost, Duration::from_secs(60), "30 s after the last word");
        assert!(!leases.is_held("u"));
        let dead = u64::try_from(DEAD_AFTER.as_secs()).expect("positive");
        assert!(HELD_FOR + Duration::from_secs(10) < Duration::from_secs(dead), "there is time to stop");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_never_written_down_is_not_held() {
        let leases = Leases::default();
        leases.lost("u").await;
        assert!(!leases.is_held("u"));
    }
}
