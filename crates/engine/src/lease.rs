//! Who leads, by a `Lease` that all candidates write: when to take it, when to renew it, when to believe it lost. Pure.
//!
//! No candidate compares its clock with another's. A candidate counts from when *it* first saw a version of the lease, and takes
//! it only when that version has not changed for the whole time it promises. The leader counts from when it *sent* the
//! renewal that succeeded and stops `margin` earlier. So two never lead at once, whatever their clocks say, as long as no
//! clock runs faster than another by more than the margin allows.

use jiff::Timestamp;
use std::time::Duration;

/// How long leadership lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseConfig {
    /// How long a lease holds that is not renewed.
    pub lasts: Duration,
    /// How much earlier than that a leader stops.
    pub margin: Duration,
    /// How often a leader renews, and a candidate that was refused tries again.
    pub every: Duration,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self { lasts: Duration::from_secs(15), margin: Duration::from_secs(5), every: Duration::from_secs(2) }
    }
}

/// A lease as one candidate sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// Who holds it; `None` when it was given back.
    pub holder: Option<String>,
    /// How long it holds after each renewal.
    pub lasts: Duration,
    /// When this candidate first saw this version, by its own steady clock. For a version it wrote itself: when it
    /// sent the write, or an earlier one; never when it read of it, for others may have seen it long before.
    pub seen: Timestamp,
}

/// What to do about a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Take it.
    Acquire,
    /// It is ours; renew it.
    Renew,
    /// Look again at this time at the latest: somebody else holds it, or it is ours and fresh.
    Wait {
        /// When to look again.
        until: Timestamp,
    },
    /// It was ours and cannot be relied on any more: stop at once.
    Lost,
}

/// When a leader that renewed at `renewed` must have stopped.
pub fn stop_at(renewed: Timestamp, config: &LeaseConfig) -> Timestamp {
    later(renewed, config.lasts.saturating_sub(config.margin))
}

/// What candidate `me` does now. `leads` says whether it believes to lead already.
pub fn decide(
    now: Timestamp,
    lease: Option<&LeaseView>,
    me: &str,
    leads: bool,
    config: &LeaseConfig,
) -> Verdict {
    let Some(lease) = lease else {
        // Somebody deleted it: nobody may rely on it.
        return if leads { Verdict::Lost } else { Verdict::Acquire };
    };
    let mine = lease.holder.as_deref() == Some(me);
    match (mine, leads) {
        (true, true) if now >= stop_at(lease.seen, config) => Verdict::Lost,
        (true, true) if now >= later(lease.seen, config.every) => Verdict::Renew,
        (true, true) => Verdict::Wait { until: later(lease.seen, config.every) },
        (false, true) => Verdict::Lost,
        // A write whose answer was lost, or a former self of the same name: ours to take, by renewing it first.
        (true, false) => Verdict::Acquire,
        (false, false) => match &lease.holder {
            None => Verdict::Acquire,
            Some(_) => {
                let free = later(lease.seen, lease.lasts);
                if now >= free { Verdict::Acquire } else { Verdict::Wait { until: free } }
            }
        },
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    crate::clock::after(time, by)
}

#[cfg(test)]
mod tests;
