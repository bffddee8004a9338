//! The only place where the engine asks what time it is. Controllers are handed `now`; whoever runs them owns the clock,
//! so that an hour passes in a test as fast as nothing happens in it. Waiting is tokio's business, whose clock tests pause.

use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Tells the time of day, and turns it into moments to wait for.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The same moment on both clocks; from here [`Clock::steady`] counts.
    anchor: (Timestamp, Instant),
}

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the one place where real time comes in")]
    pub fn system() -> Self {
        Self::from_fn(Timestamp::now)
    }

    /// Virtual time: starts at `start` and follows tokio's clock, which tests can pause.
    pub fn following_tokio(start: Timestamp) -> Self {
        let began = Instant::now();
        Self::from_fn(move || after(start, began.elapsed()))
    }

    /// Any source of time, such as the one an embedded API server was given.
    pub fn from_fn(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let anchor = (now(), Instant::now());
        Self { wall: Arc::new(now), anchor }
    }

    /// The time of day, as written into objects. It may jump when somebody sets the machine's clock.
    pub fn now(&self) -> Timestamp {
        (self.wall)()
    }

    /// A time that never jumps and never goes back: for measuring how long something takes. Apart from the
    /// time of day once somebody has set the machine's clock.
    pub fn steady(&self) -> Timestamp {
        after(self.anchor.0, self.anchor.1.elapsed())
    }

    /// The moment, on tokio's clock, at which it will be `at`; a past moment is now.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + Duration::try_from(ahead).unwrap_or_default()
    }

    /// Returns when it is `at`.
    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep_until(self.instant(at)).await;
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// `start` and a while; a time too far to name stays the last that can be named.
pub(crate) fn after(start: Timestamp, passed: Duration) -> Timestamp {
    let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
    start.checked_add(passed).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_follows_tokio() {
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::following_tokio(start);
        clock.sleep_until("2030-01-01T01:00:00Z".parse().unwrap()).await;
        assert_eq!(clock.now().duration_since(start).as_secs(), 3600);
        assert_eq!(clock.steady(), clock.now());
        assert_eq!(clock.instant(start), Instant::now(), "the past is now");
    }
}
