//! Tells the demo: each step with its time, what goes on meanwhile, and a table at the end.

use super::proof::Promise;
use crate::status::{say, table};
use serde::Serialize;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;
use tokio::time::Instant;

/// A step that was taken.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// What was done.
    pub what: String,
    /// How long it took.
    pub seconds: f64,
}

/// Who tells.
pub struct Narrator {
    began: Instant,
    quiet: bool,
    /// Whether a line can be written over.
    live: bool,
    shown: String,
    /// The steps so far.
    pub steps: Vec<Step>,
    /// The promises so far.
    pub promises: Vec<Promise>,
}

impl Narrator {
    /// Begins; a quiet one only keeps what it would tell.
    pub fn new(quiet: bool) -> Self {
        Self {
            began: Instant::now(),
            quiet,
            live: std::io::stdout().is_terminal(),
            shown: String::new(),
            steps: Vec::new(),
            promises: Vec::new(),
        }
    }

    /// Says a sentence.
    pub fn tell(&mut self, text: &str) {
        self.clear();
        if !self.quiet {
            // Whoever read the first lines may be gone by now.
            let _ = say(&format!("{text}\n"));
        }
    }

    /// Begins a step.
    pub fn step(&mut self, what: &str) -> Begun {
        self.tell(&format!("\n{:>6.1} s  {what}", self.began.elapsed().as_secs_f64()));
        Begun { what: what.to_owned(), since: Instant::now() }
    }

    /// Shows what goes on in a step.
    pub fn now(&mut self, text: &str) {
        if self.quiet || text == self.shown {
            return;
        }
        if self.live {
            let short: String = text.chars().take(150).collect();
            let _ = write!(std::io::stdout(), "\r\x1b[2K          … {short}");
            let _ = std::io::stdout().flush();
        } else {
            let _ = say(&format!("          … {text}\n"));
        }
        text.clone_into(&mut self.shown);
    }

    /// Ends a step.
    pub fn done(&mut self, begun: Begun, result: &str) -> Duration {
        let took = begun.since.elapsed();
        self.tell(&format!("          {result} ({:.1} s)", took.as_secs_f64()));
        self.steps.push(Step { what: begun.what, seconds: took.as_secs_f64() });
        took
    }

    /// Tells which promises were kept.
    pub fn judge(&mut self, promises: Vec<Promise>) {
        for one in promises {
            let mark = if one.kept { "kept  " } else { "BROKEN" };
            self.tell(&format!("          {mark} {}: {}", one.what, one.found));
            self.promises.push(one);
        }
    }

    /// Whether every promise was kept, and at least one was made.
    pub fn all_kept(&self) -> bool {
        !self.promises.is_empty() && self.promises.iter().all(|one| one.kept)
    }

    /// The table at the end.
    pub fn conclude(&mut self) {
        let lines: Vec<Vec<String>> =
            self.steps.iter().map(|step| vec![format!("{:.2}", step.seconds), step.what.clone()]).collect();
        let text = table(&["SECONDS", "STEP"], &lines);
        let kept = self.promises.iter().filter(|one| one.kept).count();
        let all = self.promises.len();
        let took = self.began.elapsed().as_secs_f64();
        self.tell(&format!("\n{text}\n{kept} of {all} promises kept, in {took:.1} s"));
    }

    fn clear(&mut self) {
        if !self.shown.is_empty() && self.live && !self.quiet {
            let _ = write!(std::io::stdout(), "\r\x1b[2K");
        }
        self.shown.clear();
    }
}

/// A step that has begun.
pub struct Begun {
    what: String,
    since: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_promise_is_enough_and_no_promise_is_none_kept() {
        let check = |kept: &[bool], expected: bool| {
            let mut narrator = Narrator::new(true);
            let promise = |kept: &bool| Promise { what: String::new(), kept: *kept, found: String::new() };
            narrator.judge(kept.iter().map(promise).collect());
            assert_eq!(narrator.all_kept(), expected, "{kept:?}");
        };
        check(&[], false);
        check(&[true, true], true);
        check(&[true, false], false);
    }
}
