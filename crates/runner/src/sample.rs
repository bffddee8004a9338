//! The application that the demo protects: records with a number, a time, a writer and a checksum that goes on from the record before, one
//! to a line. Whoever reads the file can tell what was lost, damaged or written twice. Pure but for [`Log`], which appends.

use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

/// Name of the file in the volume.
pub const FILE: &str = "records.log";

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Its number; the first is 1.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub millis: i64,
    /// Who wrote it.
    pub writer: String,
}

/// What a file of records has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// Good records.
    pub records: u64,
    /// The last good one in an unbroken row from 1; `None` where there is none.
    pub last: Option<Record>,
    /// The first number that is missing though a later one is there.
    pub first_missing: Option<u64>,
    /// Lines that are damaged: their numbers, the first being 1.
    pub damaged: Vec<u64>,
    /// Bytes of a last line that was being written: it was never acknowledged.
    pub torn: u64,
    /// Who wrote which numbers, in order.
    pub writers: Vec<Span>,
}

/// The numbers that one writer wrote in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The writer.
    pub writer: String,
    /// Its first number.
    pub from: u64,
    /// Its last.
    pub to: u64,
}

impl Findings {
    /// The last number, 0 where there is none.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.number)
    }

    /// Whether every record up to the last is there and good.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.first_missing.is_none() && self.damaged.is_empty()
    }
}

fn checksum(before: u32, body: &str) -> u32 {
    // FNV-1a over the record, going on from the one before: enough to see damage and mixed-up lines.
    body.bytes().fold(0x811c_9dc5 ^ before, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn line(record: &Record, before: u32) -> (String, u32) {
    let body = format!("{:010} {} {}", record.number, record.millis, record.writer);
    let sum = checksum(before, &body);
    (format!("{body} {sum:08x}\n"), sum)
}

fn parse(line: &str) -> Option<(Record, &str, u32)> {
    let (body, sum) = line.rsplit_once(' ')?;
    let mut parts = body.splitn(3, ' ');
    let record = Record {
        number: parts.next()?.parse().ok()?,
        millis: parts.next()?.parse().ok()?,
        writer: parts.next()?.to_owned(),
    };
    Some((record, body, u32::from_str_radix(sum, 16).ok()?))
}

/// Reads records and says what is wrong with them.
#[must_use]
pub fn check(text: &[u8]) -> Findings {
    read(text).0
}

/// The findings, the checksum to go on from, and how many bytes are whole lines.
fn read(text: &[u8]) -> (Findings, u32, usize) {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut findings = Findings { torn: (text.len() - whole) as u64, ..Findings::default() };
    let (mut before, mut expected) = (0, 1);
    for (number, bytes) in (1..).zip(text[..whole].split_inclusive(|byte| *byte == b'\n')) {
        let text = String::from_utf8_lossy(bytes);
        let good = parse(text.trim_end()).filter(|(_, body, sum)| checksum(before, body) == *sum);
        let Some((record, _, sum)) = good else {
            findings.damaged.push(number);
            // What follows can still be read, if it says itself what it goes on from.
            let last = text.trim_end().rsplit_once(' ').map(|(_, sum)| sum);
            before = last.and_then(|sum| u32::from_str_radix(sum, 16).ok()).unwrap_or(before);
            continue;
        };
        before = sum;
        findings.records += 1;
        if record.number == expected {
            expected += 1;
            if findings.first_missing.is_none() {
                findings.last = Some(record.clone());
            }
        } else {
            findings.first_missing.get_or_insert(expected);
            expected = record.number + 1;
        }
        match findings.writers.last_mut() {
            Some(span) if span.writer == record.writer => span.to = record.number,
            _ => {
                let span = Span { writer: record.writer, from: record.number, to: record.number };
                findings.writers.push(span);
            }
        }
    }
    (findings, before, whole)
}

/// A file that records are appended to.
pub struct Log {
    file: File,
    next: u64,
    before: u32,
    writer: String,
}

impl Log {
    /// Opens the file of a folder and goes on after the last whole record; half a record at the end is cut off, for nobody was told of it.
    ///
    /// # Errors
    /// When it cannot be read or written, or when records before the end are damaged: then nothing is appended.
    pub fn open(folder: &Path, writer: &str) -> io::Result<Self> {
        let path = folder.join(FILE);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let (findings, before, whole) = read(&text);
        if !findings.is_whole() {
            let why = format!(
                "{} has damaged or missing records; `lifeboat check-records` lists them",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if findings.torn > 0 {
            file.set_len(whole as u64)?;
            file.seek(io::SeekFrom::End(0))?;
        }
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        let writer = writer.replace(char::is_whitespace, "_");
        Ok(Self { file, next: findings.last_number() + 1, before, writer })
    }

    /// Appends a record; when this returns, it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written: what is there then is not known, and the log has to be opened anew.
    pub fn append(&mut self, millis: i64) -> io::Result<u64> {
        let record = Record { number: self.next, millis, writer: self.writer.clone() };
        let (line, sum) = line(&record, self.before);
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.next += 1;
        self.before = sum;
        Ok(record.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(numbers: &[u64]) -> Vec<u8> {
        let mut before = 0;
        let mut text = Vec::new();
        for number in numbers {
            let record =
                Record { number: *number, millis: 1_000 + number.cast_signed(), writer: "w".to_owned() };
            let (line, sum) = line(&record, before);
            before = sum;
            text.extend_from_slice(line.as_bytes());
        }
        text
    }

    fn finds(text: &[u8], expected: (u64, u64, Option<u64>, &[u64], u64)) {
        let found = check(text);
        let told =
            (found.records, found.last_number(), found.first_missing, found.damaged.as_slice(), found.torn);
        assert_eq!(told, expected, "{}", String::from_utf8_lossy(text));
    }

    #[test]
    fn what_is_wrong_is_found() {
        finds(b"", (0, 0, None, &[], 0));
        finds(&written(&[1, 2, 3]), (3, 3, None, &[], 0));
        finds(&written(&[1, 2, 4, 5]), (4, 2, Some(3), &[], 0));
        finds(&written(&[2, 3]), (2, 0, Some(1), &[], 0));
        let whole = written(&[1, 2, 3]);
        finds(&whole[..whole.len() - 5], (2, 2, None, &[], (whole.len() / 3 - 5) as u64));
        let mut damaged = whole.clone();
        damaged[whole.len() / 3 + 12] = b'9';
        finds(&damaged, (2, 1, Some(2), &[2], 0));
        let mut noise = whole.clone();
        noise.splice(0..10, *b"##########");
        assert_eq!(check(&noise).damaged, [1]);
        let mut swapped = whole[whole.len() / 3..2 * whole.len() / 3].to_vec();
        swapped.extend_from_slice(&whole[..whole.len() / 3]);
        assert!(!check(&swapped).is_whole());
    }

    #[test]
    fn a_log_goes_on_where_the_last_writer_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path(), "east pod").unwrap();
        assert_eq!((log.append(5).unwrap(), log.append(6).unwrap()), (1, 2));
        drop(log);
        let path = folder.path().join(FILE);
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"0000000003 7 half");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(check(&text).torn, 17);
        let mut log = Log::open(folder.path(), "west").unwrap();
        assert_eq!(log.append(8).unwrap(), 3);
        let found = check(&std::fs::read(&path).unwrap());
        assert!(found.is_whole() && found.torn == 0);
        let spans: Vec<(&str, u64, u64)> =
            found.writers.iter().map(|span| (span.writer.as_str(), span.from, span.to)).collect();
        assert_eq!(spans, [("east_pod", 1, 2), ("west", 3, 3)]);
    }

    #[test]
    fn nothing_is_appended_to_damaged_records() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), written(&[1, 3])).unwrap();
        assert!(Log::open(folder.path(), "w").is_err());
    }
}
