//! Inputs from a seed: the small corpus, bent and mixed. No coverage is measured; that is left to libFuzzer.

use std::path::{Path, PathBuf};

/// No input is longer.
const LONGEST: usize = 64 << 10;

/// Things that readers stumble over.
const TRAPS: &[&str] = &[
    "0",
    "-1",
    "1e400",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0.1",
    "1e-7",
    "null",
    "true",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "\u{0}",
    "\u{fffd}",
    "🦀",
    "\"",
    "'",
    "\\",
    "/",
    "~1",
    "-",
    "---",
    "\n",
    "\n\n",
    "%",
    "%00",
    ",",
    ":",
    "$patch",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "!",
    "&&",
    "..",
    "*",
];

/// Chance that a seed decides (splitmix64).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Chance from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`; zero when `end` is.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.bits() % end as u64) as usize }
    }

    /// A number below two to the power of `bits`, mostly far below.
    pub fn small(&mut self, bits: usize) -> usize {
        let end = 1 << self.below(bits);
        self.below(end)
    }
}

/// Where the seeds of a target are.
pub fn seeds_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus-seeds").join(target)
}

/// The seeds of a target, in the order of their names.
///
/// # Errors
/// When the folder can not be read.
pub fn seeds(target: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(seeds_folder(target))? {
        paths.push(entry?.path());
    }
    paths.sort();
    paths.iter().map(std::fs::read).collect()
}

/// One more input.
pub fn input(chance: &mut Chance, seeds: &[Vec<u8>]) -> Vec<u8> {
    if seeds.is_empty() || chance.below(3) == 0 {
        // A byte that is no text first: the targets make their input of the rest.
        let length = 1 + chance.small(12);
        let mut bytes: Vec<u8> = (0..length).map(|_| chance.bits() as u8).collect();
        bytes[0] |= 0x80;
        return bytes;
    }
    let mut bytes = seeds[chance.below(seeds.len())].clone();
    for _ in 0..1 + chance.small(4) {
        bend(chance, seeds, &mut bytes);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn bend(chance: &mut Chance, seeds: &[Vec<u8>], bytes: &mut Vec<u8>) {
    let at = chance.below(bytes.len() + 1);
    let span = |chance: &mut Chance, of: &[u8]| {
        let start = chance.below(of.len() + 1);
        let end = (start + chance.small(9)).min(of.len());
        start..end
    };
    match chance.below(8) {
        0 if at < bytes.len() => bytes[at] = chance.bits() as u8,
        1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        2 => {
            let gone = span(chance, bytes);
            bytes.drain(gone);
        }
        3 => {
            let copied = bytes[span(chance, bytes)].to_vec();
            bytes.splice(at..at, copied);
        }
        4 => {
            let other = &seeds[chance.below(seeds.len())];
            let taken = other[span(chance, other)].to_vec();
            let gone = (at + chance.below(taken.len() + 1)).min(bytes.len());
            bytes.splice(at..gone, taken);
        }
        5 => {
            // Deep or long.
            let part = bytes[span(chance, bytes)].to_vec();
            let times = chance.small(8);
            if part.len() * times < LONGEST {
                bytes.splice(at..at, part.repeat(times));
            }
        }
        _ => {
            let trap = TRAPS[chance.below(TRAPS.len())];
            let gone = (at + chance.below(trap.len() + 2)).min(bytes.len());
            bytes.splice(at..gone, trap.bytes());
        }
    }
}
