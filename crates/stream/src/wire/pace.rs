//! A bound on bytes in a second.

use std::time::{Duration, Instant};

/// Lets bytes pass at a rate.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Option<u64>,
    next: Instant,
}

/// What may pass at once after a pause.
const BURST: Duration = Duration::from_millis(50);

impl Pace {
    pub(crate) fn new(rate: Option<u64>, now: Instant) -> Self {
        Self { rate: rate.filter(|rate| *rate > 0), next: now }
    }

    /// How long to wait before so many bytes may go.
    pub(crate) fn delay(&mut self, bytes: usize, now: Instant) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let from = now.checked_sub(BURST).map_or(self.next, |earliest| self.next.max(earliest));
        self.next = from + Duration::from_secs_f64(bytes as f64 / rate as f64);
        from.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_for_their_turn() {
        let start = Instant::now();
        let mut pace = Pace::new(Some(1000), start);
        assert_eq!(pace.delay(500, start), Duration::ZERO);
        assert_eq!(pace.delay(500, start), Duration::from_millis(500));
        assert_eq!(pace.delay(1, start + Duration::from_secs(1)), Duration::ZERO);
        // A long pause gives no right to a long burst.
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.delay(1000, later), Duration::ZERO);
        assert_eq!(pace.delay(1, later), Duration::from_millis(950));
        let mut free = Pace::new(None, start);
        assert_eq!(free.delay(1 << 40, start), Duration::ZERO);
    }
}
