//! How often data is copied, as policies and replication classes write it. Read in one place, because a number that two readers understand
//! differently is copied too seldom by one of them.

use std::fmt;

/// A whole number of seconds, minutes, hours or days, more than none. Upstream has no seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(i64);

/// The text is no interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadInterval(String);

impl fmt::Display for BadInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no interval: write a whole number and s, m, h or d, such as 5m", self.0)
    }
}

impl std::error::Error for BadInterval {}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The longest, a hundred years: what is added to a time must stay one.
const LONGEST: i64 = 36_525 * DAY;

impl Interval {
    /// Reads an interval. No text, and a number of nought, mean that nothing is copied at intervals.
    ///
    /// # Errors
    /// When it is not one.
    pub fn parse(text: &str) -> Result<Option<Self>, BadInterval> {
        let bad = || BadInterval(text.to_owned());
        if text.is_empty() {
            return Ok(None);
        }
        let unit = match text.as_bytes().last() {
            Some(b's' | b'S') => 1,
            Some(b'm' | b'M') => MINUTE,
            Some(b'h' | b'H') => HOUR,
            Some(b'd' | b'D') => DAY,
            _ => return Err(bad()),
        };
        let number = &text[..text.len() - 1];
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let number: i64 = number.parse().map_err(|_| bad())?;
        let seconds = number.checked_mul(unit).filter(|seconds| *seconds <= LONGEST).ok_or_else(bad)?;
        Ok((seconds > 0).then_some(Self(seconds)))
    }

    /// The interval that a text is, if it is one.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::parse(text).ok().flatten()
    }

    /// How many seconds it has.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// As a cron schedule, spread as evenly as cron can: a divisor of the hour or the day that is not longer than what was asked, so that
    /// nobody is protected less often than agreed. None where it is shorter than cron's minute: such copies follow one another without a
    /// schedule.
    #[must_use]
    pub fn cron(self) -> Option<String> {
        // Of several numbers that divide the whole, the largest that is asked for.
        let fits = |number: i64, whole: i64| (1..=number.min(whole)).rev().find(|step| whole % step == 0);
        match self.0 {
            ..MINUTE => None,
            seconds @ MINUTE..HOUR => fits(seconds / MINUTE, 60).map(|step| format!("*/{step} * * * *")),
            seconds @ HOUR..DAY => fits(seconds / HOUR, 24).map(|step| format!("0 */{step} * * *")),
            seconds => Some(format!("0 0 */{} * *", (seconds / DAY).min(28))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_a_number_and_a_unit() {
        let check = |text: &str, seconds: Option<i64>| {
            assert_eq!(Interval::of(text).map(Interval::seconds), seconds, "{text:?}");
        };
        check("15s", Some(15));
        check("5m", Some(5 * MINUTE));
        check("90M", Some(90 * MINUTE));
        check("2h", Some(2 * HOUR));
        check("1d", Some(DAY));
        check("0m", None);
        check("", None);
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in ["m", "5", "5w", "-5m", "+5m", " 5m", "5 m", "5mm", "1h5m", "5é", "99999999999999d"] {
            assert_eq!(Interval::parse(text), Err(BadInterval(text.to_owned())), "{text:?}");
        }
        for text in ["", "0m", "0d"] {
            assert_eq!(Interval::parse(text), Ok(None), "{text:?}");
        }
    }
}
