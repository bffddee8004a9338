//! The string formats that Kubernetes checks in custom resources.

use crate::pattern::compile;
use base64::Engine;
use regex::Regex;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// Formats that are a regular expression and nothing else.
const PATTERNS: &[(&str, &str)] = &[
    ("uuid", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid3", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("ssn", r"^\d{3}[- ]?\d{2}[- ]?\d{4}$"),
    ("hexcolor", r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "rgbcolor",
        r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$",
    ),
    ("bsonobjectid", r"^[0-9a-fA-F]{24}$"),
    ("mac", r"^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5,19}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,9})$"),
    ("email", r#"^([^<>]*<)?[^\s<>@,]+@[^\s<>@,]+>?$"#),
    ("k8sshortname", r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    ("k8slongname", r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    (
        "creditcard",
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$",
    ),
    (
        "duration",
        r"^[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*$",
    ),
    ("scaladuration", r"(?i)((\d+)\s*([A-Za-zµ]+))"),
];

static REGEXES: LazyLock<BTreeMap<&'static str, Regex>> = LazyLock::new(|| {
    let compiled = |pattern| compile(pattern).expect("invariant: the patterns above are valid");
    PATTERNS.iter().map(|(name, pattern)| (*name, compiled(pattern))).collect()
});

/// The formats that are known; others are not checked. Dashes do not count.
const KNOWN: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// The name under which a string format is known, where it is.
pub(crate) fn known(format: &str) -> Option<&'static str> {
    let plain = format.replace('-', "");
    KNOWN.iter().copied().find(|name| *name == plain)
}

/// Whether `text` has the format of this name (one that [`known`] gave).
pub(crate) fn fits(format: &str, text: &str) -> bool {
    let matches = |name: &str| REGEXES.get(name).is_some_and(|r| r.is_match(text));
    match format {
        "password" => true,
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => cidr(text),
        "byte" => !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "datetime" => date_time(text),
        "duration" => text == "0" || matches("duration") || scala_duration(text),
        "uri" => uri(text),
        "hostname" => hostname(text),
        "k8slongname" => text.len() <= 253 && matches(format),
        "creditcard" => {
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            REGEXES.get("creditcard").is_some_and(|r| r.is_match(&digits)) && luhn(&digits)
        }
        "isbn" => isbn10(text) || isbn13(text),
        "isbn10" => isbn10(text),
        "isbn13" => isbn13(text),
        _ => matches(format),
    }
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if bits.is_empty()
        || !bits.bytes().all(|b| b.is_ascii_digit())
        || (bits.len() > 1 && bits.starts_with('0'))
    {
        return false;
    }
    let Ok(bits) = bits.parse::<u8>() else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && bits <= 32)
        || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
}

fn date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else { return false };
    if date.parse::<jiff::civil::Date>().is_err() || !time.starts_with(['T', 't']) {
        return false;
    }
    let time = &time[1..];
    let split = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(split);
    let clock_fits =
        clock.len() >= 8 && clock.get(2..3) == Some(":") && clock.parse::<jiff::civil::Time>().is_ok();
    let zone_fits = matches!(zone, "Z" | "z")
        || (zone.len() == 6
            && zone.get(3..4) == Some(":")
            && zone.bytes().enumerate().all(|(i, b)| matches!(i, 0 | 3) || b.is_ascii_digit()));
    clock_fits && zone_fits
}

/// The other notation Kubernetes takes: `3 days`, `1 hour`.
fn scala_duration(text: &str) -> bool {
    const UNITS: &[&str] = &[
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d",
        "day", "w", "wk", "week",
    ];
    let Some(regex) = REGEXES.get("scaladuration") else { return false };
    regex.captures_iter(text).any(|c| {
        let unit = c.get(3).map_or("", |m| m.as_str()).to_lowercase();
        UNITS.iter().any(|u| unit == *u || (u.len() > 2 && unit.starts_with(u)))
    })
}

/// An absolute URI or an absolute path, as a request line takes it.
fn uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return false;
    }
    if text.starts_with('/') {
        return escapes_fit(text);
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && escapes_fit(rest)
}

fn escapes_fit(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(i, b)| {
        let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        *b != b'%' || (hex(i + 1) && hex(i + 2))
    })
}

/// One label of letters, digits, symbols and inner dashes, or several of which the last is letters alone.
fn hostname(text: &str) -> bool {
    let plain = |c: char| {
        c.is_ascii_digit()
            || c.is_alphabetic()
            || (!c.is_ascii() && !c.is_control())
            || "$+<=>^`|~".contains(c)
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.starts_with(plain)
            && label.ends_with(plain)
            && label.chars().all(|c| plain(c) || c == '-')
    };
    let labels: Vec<&str> = text.split('.').collect();
    let top = |label: &str| label.chars().count() >= 2 && label.chars().all(char::is_alphabetic);
    match labels.as_slice() {
        // A single label may have one dash, behind its first character.
        [only] => label(only) && only.chars().skip(2).all(|c| c != '-'),
        [.., last] => text.len() <= 255 && labels.iter().all(|l| label(l)) && top(last),
        [] => false,
    }
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(i, d)| if i % 2 == 1 { if d > 4 { 2 * d - 9 } else { 2 * d } } else { d })
        .sum();
    sum.is_multiple_of(10)
}

fn isbn_digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '-')).collect()
}

fn isbn10(text: &str) -> bool {
    let text = isbn_digits(text);
    let value = |(i, c): (usize, char)| match c {
        'X' if i == 9 => Some(10),
        c => c.to_digit(10),
    };
    let digits: Option<Vec<u32>> = text.chars().enumerate().map(value).collect();
    digits.is_some_and(|d| {
        d.len() == 10 && d.iter().zip(1..).map(|(d, weight)| d * weight).sum::<u32>().is_multiple_of(11)
    })
}

fn isbn13(text: &str) -> bool {
    let text = isbn_digits(text);
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(10)).collect();
    digits.is_some_and(|d| {
        let weighted = d.iter().enumerate().map(|(i, d)| if i % 2 == 0 { *d } else { 3 * d });
        d.len() == 13 && weighted.sum::<u32>().is_multiple_of(10)
    })
}
