//! Reads what LVM prints: reports and its own log, as JSON in any of its dialects. Pure.

use crate::names::decode_tag;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One volume group with its volumes, of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// The group's UUID.
    pub(crate) id: String,
    pub(crate) size: u64,
    pub(crate) free: u64,
    pub(crate) extent: u64,
    /// Physical volumes that are gone.
    pub(crate) missing: u64,
    pub(crate) volumes: BTreeMap<String, Row>,
}

/// One logical volume as LVM shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) path: String,
    /// Bytes that can be read from it; for a copy-on-write snapshot that is its origin's size.
    pub(crate) size: u64,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) attr: String,
    pub(crate) device: (u32, u32),
    pub(crate) origin: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) data_percent: f64,
    pub(crate) metadata_percent: f64,
    pub(crate) metadata_size: u64,
}

impl Row {
    /// The letter at a place of `lv_attr`.
    fn letter(&self, place: usize) -> u8 {
        self.attr.as_bytes().get(place).copied().unwrap_or(b'-')
    }

    pub(crate) fn is_pool(&self) -> bool {
        self.letter(0) == b't'
    }

    /// A copy-on-write snapshot of a thick volume.
    pub(crate) fn is_cow(&self) -> bool {
        matches!(self.letter(0), b's' | b'S')
    }

    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.letter(1), b'r' | b'R')
    }

    pub(crate) fn is_active(&self) -> bool {
        self.letter(4) != b'-'
    }

    pub(crate) fn is_open(&self) -> bool {
        self.letter(5) == b'o'
    }
}

/// Why the text of LVM could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("LVM printed something that is not a report: {0}")]
    NotJson(String),
    #[error("LVM reported {field}={value:?}, which is no number")]
    NotNumber { field: &'static str, value: String },
}

#[derive(Debug, Default, Deserialize)]
struct Printed {
    #[serde(default)]
    report: Vec<Section>,
    #[serde(default)]
    log: Vec<LogLine>,
}

#[derive(Debug, Default, Deserialize)]
struct Section {
    #[serde(default)]
    vg: Vec<BTreeMap<String, Value>>,
    #[serde(default)]
    lv: Vec<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct LogLine {
    #[serde(default)]
    log_type: String,
    #[serde(default)]
    log_message: String,
}

/// The report of one group, if LVM told of it.
pub(crate) fn read_report(text: &str, group: &str) -> Result<Option<Report>, Unreadable> {
    let printed = parse(text)?;
    for section in &printed.report {
        let is_it = |vg: &&BTreeMap<String, Value>| word(vg, "vg_name") == group;
        let Some(vg) = section.vg.iter().find(is_it) else { continue };
        let mut report = Report {
            id: word(vg, "vg_uuid"),
            size: number(vg, "vg_size")?,
            free: number(vg, "vg_free")?,
            extent: number(vg, "vg_extent_size")?.max(512),
            missing: number(vg, "vg_missing_pv_count")?,
            volumes: BTreeMap::new(),
        };
        for lv in &section.lv {
            report.volumes.insert(word(lv, "lv_name"), row(lv)?);
        }
        return Ok(Some(report));
    }
    Ok(None)
}

/// What LVM calls errors, in its log report or on standard error.
pub(crate) fn read_errors(stdout: &str, stderr: &str) -> Vec<String> {
    let logged = parse(stdout).map(|printed| printed.log).unwrap_or_default();
    let errors = logged.into_iter().filter(|line| line.log_type == "error").map(|line| line.log_message);
    let plain = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
    errors.chain(plain).collect()
}

/// Some versions print messages into the middle of the report, each on a line of its own: a second try leaves those out.
fn parse(text: &str) -> Result<Printed, Unreadable> {
    if text.trim().is_empty() {
        return Ok(Printed::default());
    }
    serde_json::from_str(text)
        .or_else(|_| {
            let of_report = |line: &&str| line.trim_start().starts_with(['{', '}', '[', ']', ',', '"']);
            serde_json::from_str(&text.lines().filter(of_report).collect::<Vec<_>>().join("\n"))
        })
        .map_err(|error| Unreadable::NotJson(format!("{error} in {:.200?}", text.trim())))
}

fn row(lv: &BTreeMap<String, Value>) -> Result<Row, Unreadable> {
    let some = |field| Some(word(lv, field)).filter(|text| !text.is_empty());
    // An inactive volume has device -1:-1.
    let device = |field| number(lv, field).map(|number| u32::try_from(number).unwrap_or(0));
    let mut row = Row {
        path: word(lv, "lv_path"),
        size: number(lv, "lv_size")?,
        tags: tags(lv),
        attr: word(lv, "lv_attr"),
        device: (device("lv_kernel_major")?, device("lv_kernel_minor")?),
        origin: some("origin"),
        pool: some("pool_lv"),
        data_percent: fraction(lv, "data_percent")?,
        metadata_percent: fraction(lv, "metadata_percent")?,
        metadata_size: number(lv, "lv_metadata_size")?,
    };
    if row.is_cow() {
        row.size = number(lv, "origin_size")?;
    }
    Ok(row)
}

fn tags(lv: &BTreeMap<String, Value>) -> BTreeSet<String> {
    match lv.get("lv_tags") {
        Some(Value::Array(tags)) => tags.iter().filter_map(Value::as_str).map(decode_tag).collect(),
        Some(Value::String(tags)) => tags.split(',').filter(|tag| !tag.is_empty()).map(decode_tag).collect(),
        _ => BTreeSet::new(),
    }
}

fn word(row: &BTreeMap<String, Value>, field: &str) -> String {
    match row.get(field) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Absent and empty are 0, and so is -1, which LVM prints for what it does not know.
fn number(row: &BTreeMap<String, Value>, field: &'static str) -> Result<u64, Unreadable> {
    let text = word(row, field);
    let digits = text.strip_suffix(['B', 'b']).unwrap_or(&text);
    if digits.is_empty() || digits == "-1" {
        return Ok(0);
    }
    digits.parse().map_err(|_| Unreadable::NotNumber { field, value: text.clone() })
}

fn fraction(row: &BTreeMap<String, Value>, field: &'static str) -> Result<f64, Unreadable> {
    let text = word(row, field);
    if text.is_empty() || text == "-1" {
        return Ok(0.0);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(Unreadable::NotNumber { field, value: text }),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
