//! Bytes a second, at most: every transfer reserves its share of the line before it goes on.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A bound on the bytes a second that pass through everything that shares it.
#[derive(Debug)]
pub struct Throttle {
    bytes_per_second: u64,
    /// When the line is free again.
    free: Mutex<Option<Instant>>,
}

/// What may pass at once after a pause, so that short waits do not lower the rate.
const BURST: Duration = Duration::from_millis(100);

impl Throttle {
    /// A bound; none for 0.
    #[must_use]
    pub fn new(bytes_per_second: u64) -> Option<Self> {
        (bytes_per_second > 0).then(|| Self { bytes_per_second, free: Mutex::new(None) })
    }

    /// Reserves room for some bytes and says how long to wait before they are sent.
    #[must_use]
    pub fn reserve(&self, bytes: usize, now: Instant) -> Duration {
        let mut free = self.free.lock();
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let start = free.map_or(earliest, |free| free.max(earliest));
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        *free = Some(start + takes);
        (start + takes).saturating_duration_since(now)
    }

    /// Bytes a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }

    /// Waits in a thread until some bytes may pass.
    pub fn wait(&self, bytes: usize) {
        let delay = self.reserve(bytes, Instant::now());
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_spreads_bytes_over_time() {
        let start = Instant::now();
        let throttle = Throttle::new(1000).unwrap();
        let at = |ms| start + Duration::from_millis(ms);
        let check = |bytes, now, expected| {
            assert_eq!(throttle.reserve(bytes, at(now)).as_millis(), expected, "{bytes} bytes at {now} ms");
        };
        check(100, 0, 0);
        check(1000, 0, 1000);
        check(500, 500, 1000);
        // A long pause gives a burst and no more.
        check(100, 60_000, 0);
        check(100, 60_000, 100);
    }

    #[test]
    fn no_bound_is_no_throttle() {
        assert!(Throttle::new(0).is_none());
    }
}
