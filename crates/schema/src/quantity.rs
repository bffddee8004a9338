//! Kubernetes quantities: `100m`, `1.5Gi`, `2e3`. Exact, without floats.
//!
//! A quantity is an integer number of nano-units with a preferred notation (decimal suffixes, binary suffixes or an
//! exponent). What is finer than a nano-unit is rounded up, what is larger than can be held is capped, as Kubernetes
//! does.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use thiserror::Error;

/// Why a text is not a quantity; worded as Kubernetes words it.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// The suffix is none of those known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// Not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
}

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity; compares by value, prints canonically.
#[derive(Clone, Debug)]
pub struct Quantity {
    nano: i128,
    notation: Notation,
}

const NANO: i128 = 1_000_000_000;
/// The largest magnitude: what an `i64` of whole units holds.
const MAX: i128 = (i64::MAX as i128) * NANO;
/// Where even short decimals end.
const LIMIT: i128 = i128::MAX / 4;

impl Quantity {
    /// Parses a quantity.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return Err(QuantityError::Format);
        }
        let (base, exponent, notation) = suffix_of(suffix)?;
        // Short decimals are held with their exponent and never capped; the rest is held as whole units.
        let cap = if base == 10 && number.len() <= 19 { LIMIT } else { MAX };
        let nano = scale(whole, fraction, base, exponent).min(cap);
        Ok(Quantity { nano: if negative { -nano } else { nano }, notation })
    }

    /// The value rounded up to a whole number, at most `i64::MAX`.
    pub fn value(&self) -> i64 {
        clamp(round_up(self.nano, NANO))
    }

    /// The value in thousandths, rounded up, at most `i64::MAX`.
    pub fn milli_value(&self) -> i64 {
        clamp(round_up(self.nano, NANO / 1000))
    }

    /// Whether the value is below zero.
    pub fn is_negative(&self) -> bool {
        self.nano < 0
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.nano == 0
    }

    /// The sum of two quantities, in this one's notation.
    #[must_use]
    pub fn add(&self, other: &Quantity) -> Quantity {
        Quantity { nano: (self.nano + other.nano).clamp(-LIMIT, LIMIT), notation: self.notation }
    }

    /// This quantity less another, in this one's notation.
    #[must_use]
    pub fn sub(&self, other: &Quantity) -> Quantity {
        Quantity { nano: (self.nano - other.nano).clamp(-LIMIT, LIMIT), notation: self.notation }
    }
}

/// The base, the power of it and the notation that a suffix stands for.
fn suffix_of(suffix: &str) -> Result<(u32, i32, Notation), QuantityError> {
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let decimal = |exponent| Ok((10, exponent, Notation::Decimal));
    let binary = |exponent| Ok((2, exponent, Notation::Binary));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let Some(digits) = suffix.strip_prefix(['e', 'E']) else { return Err(QuantityError::Suffix) };
            let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                return Err(QuantityError::Suffix);
            }
            // Beyond this every value is capped or rounds to the smallest anyway.
            let exponent = digits.parse::<i32>().unwrap_or(i32::MAX).clamp(-10_000, 10_000);
            Ok((10, exponent, Notation::Exponent))
        }
    }
}

/// `whole.fraction * base^exponent` in nano-units, rounded up; saturates.
fn scale(whole: &str, fraction: &str, base: u32, exponent: i32) -> i128 {
    if base == 2 {
        return scale_binary(whole, fraction, exponent.unsigned_abs());
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // More significant digits than these change nothing but the rounding.
    let (kept, dropped) = digits.split_at(digits.len().min(36));
    let mut value: i128 = kept.parse().unwrap_or(LIMIT);
    let mut lost = dropped.bytes().any(|b| b != b'0');
    // How far the decimal point stands behind the digits kept, in nano-units.
    let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX / 4);
    let mut point = 9 + exponent - length(fraction) + length(dropped);
    while point > 0 && value < LIMIT {
        value = value.saturating_mul(10);
        point -= 1;
    }
    while point < 0 && value > 0 {
        lost |= value % 10 != 0;
        value /= 10;
        point += 1;
    }
    if lost { value.saturating_add(1) } else { value }
}

/// As [`scale`], for binary suffixes: doubles the whole and the fraction apart, so that nothing is lost.
fn scale_binary(whole: &str, fraction: &str, doublings: u32) -> i128 {
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(LIMIT) };
    let (kept, dropped) = fraction.split_at(fraction.len().min(24));
    let one = 10_i128.pow(u32::try_from(kept.len()).unwrap_or(24));
    let numerator = kept.parse::<i128>().unwrap_or(0) * NANO;
    let (mut nano, mut rest) = (numerator / one, numerator % one);
    for _ in 0..doublings {
        nano = 2 * nano + 2 * rest / one;
        rest = 2 * rest % one;
    }
    let lost = rest != 0 || dropped.bytes().any(|b| b != b'0');
    let whole = whole.saturating_mul(NANO).saturating_mul(1 << doublings);
    whole.saturating_add(nano).saturating_add(i128::from(lost))
}

/// Division that rounds away from zero, as Kubernetes rounds.
fn round_up(nano: i128, unit: i128) -> i128 {
    let (quotient, remainder) = (nano / unit, nano % unit);
    quotient + remainder.signum()
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        let magnitude = self.nano.abs();
        // Binary notation only pays from 1024 on, and only for whole numbers.
        if self.notation == Notation::Binary && magnitude >= 1024 * NANO && magnitude % NANO == 0 {
            return binary(f, self.nano / NANO);
        }
        let mut value = self.nano;
        let mut exponent: i32 = -9;
        while value % 1000 == 0 && exponent < 18 {
            value /= 1000;
            exponent += 3;
        }
        if self.notation == Notation::Exponent {
            return if exponent == 0 { write!(f, "{value}") } else { write!(f, "{value}e{exponent}") };
        }
        let suffix = match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            0 => "",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            _ => "E",
        };
        write!(f, "{value}{suffix}")
    }
}

fn binary(f: &mut fmt::Formatter<'_>, whole: i128) -> fmt::Result {
    let suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut value = whole;
    let mut power = 0;
    while value % 1024 == 0 && power + 1 < suffixes.len() {
        value /= 1024;
        power += 1;
    }
    write!(f, "{value}{}", suffixes[power])
}
