//! When a schedule is due: five fields of cron, in UTC, as VolSync's triggers have them. Pure.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// A line of cron that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Cron's own rule: where both kinds of days are restricted, either will do.
    either_day: bool,
}

/// The line makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the schedule {0:?} is not a line of cron: write five fields (minute hour day month weekday), in UTC"
)]
pub struct BadSchedule(String);

/// A date that has not come after so many days never comes: the 30th of February.
const FURTHEST: i32 = 366 * 8;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is not one.
    pub fn parse(line: &str) -> Result<Self, BadSchedule> {
        let bad = || BadSchedule(line.to_owned());
        let plain = match line.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = plain.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else { return Err(bad()) };
        let read = |text: &str, least: u32, most: u32, names: &[&str]| {
            field(text, least, most, names).ok_or_else(bad)
        };
        let weekdays = read(weekday, 0, 7, &WEEKDAYS)?;
        let schedule = Self {
            minutes: read(minute, 0, 59, &[])?,
            hours: read(hour, 0, 23, &[])?,
            days: read(day, 1, 31, &[])?,
            months: read(month, 1, 12, &MONTHS)?,
            // Sunday has two numbers.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            either_day: !day.starts_with(['*', '?']) && !weekday.starts_with(['*', '?']),
        };
        Ok(schedule)
    }

    fn takes(&self, date: Date) -> bool {
        let has = |set: u64, at: i8| u32::try_from(at).is_ok_and(|at| set >> at & 1 == 1);
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        has(self.months, date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }

    /// The first time after another; none where it never comes.
    #[must_use]
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let zoned = time.to_zoned(TimeZone::UTC);
        let (first, second) = (zoned.date(), zoned.time());
        let past = i32::from(second.hour()) * 60 + i32::from(second.minute());
        for ahead in 0..FURTHEST {
            let date = first.checked_add(ahead.days()).ok()?;
            if !self.takes(date) {
                continue;
            }
            let from = if ahead == 0 { past + 1 } else { 0 };
            let due = (from..24 * 60).find(|minute| {
                self.hours >> (minute / 60) & 1 == 1 && self.minutes >> (minute % 60) & 1 == 1
            });
            let Some(due) = due else { continue };
            let (hour, minute) = (i8::try_from(due / 60).ok()?, i8::try_from(due % 60).ok()?);
            return date.at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
        }
        None
    }
}

/// A field as a set of bits.
fn field(text: &str, least: u32, most: u32, names: &[&str]) -> Option<u64> {
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        // Months count from one, weekdays from nought.
        let value = match named {
            Some(at) => u32::try_from(at).ok()? + u32::from(names.len() == 12),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (least..=most).contains(&value).then_some(value)
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<u32>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (least, most),
            Some((from, to)) => (number(from)?, number(to)?),
            // `5/15` goes on to the end.
            None => (number(range)?, if part.contains('/') { most } else { number(range)? }),
        };
        if from > to {
            return None;
        }
        (from..=to).step_by(step as usize).for_each(|value| set |= 1 << value);
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_of_a_schedule() {
        let check = |line: &str, time: &str, next: &str| {
            let at = |text: &str| text.parse::<Timestamp>().unwrap();
            let next = (!next.is_empty()).then(|| at(next));
            assert_eq!(Schedule::parse(line).unwrap().after(at(time)), next, "{line} after {time}");
        };
        check("*/5 * * * *", "2030-01-01T00:00:00Z", "2030-01-01T00:05:00Z");
        check("*/5 * * * *", "2030-01-01T00:04:59Z", "2030-01-01T00:05:00Z");
        check("*/5 * * * *", "2030-01-01T23:57:00Z", "2030-01-02T00:00:00Z");
        check("0 */2 * * *", "2030-01-01T01:30:00Z", "2030-01-01T02:00:00Z");
        check("0 0 */3 * *", "2030-01-31T12:00:00Z", "2030-02-01T00:00:00Z");
        check("15,45 8-10 * * *", "2030-01-01T08:15:00Z", "2030-01-01T08:45:00Z");
        check("15,45 8-10 * * *", "2030-01-01T10:45:00Z", "2030-01-02T08:15:00Z");
        check("0 0 1 jan *", "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z");
        check("0 0 * * 7", "2030-01-01T00:00:00Z", "2030-01-06T00:00:00Z");
        check("0 0 * * SUN", "2030-01-01T00:00:00Z", "2030-01-06T00:00:00Z");
        // Either kind of day.
        check("0 0 13 * 5", "2030-01-01T00:00:00Z", "2030-01-04T00:00:00Z");
        check("0 0 29 2 *", "2030-01-01T00:00:00Z", "2032-02-29T00:00:00Z");
        check("0 0 30 2 *", "2030-01-01T00:00:00Z", "");
        check("@hourly", "2030-01-01T00:10:00Z", "2030-01-01T01:00:00Z");
        check("7/20 * * * *", "2030-01-01T00:08:00Z", "2030-01-01T00:27:00Z");
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for line in ["", "* * * *", "60 * * * *", "* 24 * * *", "*/0 * * * *", "a * * * *", "5-1 * * * *"] {
            assert!(Schedule::parse(line).is_err(), "{line}");
        }
    }
}
