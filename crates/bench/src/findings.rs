//! What a benchmark found, and the little arithmetic that it takes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

/// Ratios between two systems, and figures that stand by themselves.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    ratios: BTreeMap<String, f64>,
    figures: BTreeMap<String, f64>,
}

impl Findings {
    /// Notes `ours / theirs`.
    pub fn ratio(&mut self, name: &str, ours: f64, theirs: f64) {
        self.ratios.insert(name.to_owned(), ours / theirs);
    }

    /// Notes a figure.
    pub fn figure(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), value);
    }

    /// Writes all of it as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

/// The value below which `share` of the samples lie (nearest rank); 0 of none.
pub fn percentile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    let rank = (share * samples.len() as f64).ceil() as usize;
    samples.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The middle one; of an even number, the lower of the two.
pub fn median(samples: &mut [Duration]) -> Duration {
    percentile(samples, 0.5)
}

/// In milliseconds, with fractions.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let check = |samples: &[u64], share, expected| {
            let mut samples: Vec<Duration> = samples.iter().map(|n| Duration::from_millis(*n)).collect();
            assert_eq!(
                percentile(&mut samples, share),
                Duration::from_millis(expected),
                "{samples:?} {share}"
            );
        };
        check(&[], 0.99, 0);
        check(&[7], 0.99, 7);
        check(&[3, 1, 2], 0.5, 2);
        check(&[4, 3, 2, 1], 0.5, 2);
        let hundred: Vec<u64> = (1..=100).collect();
        check(&hundred, 0.99, 99);
        check(&hundred, 1.0, 100);
    }
}
