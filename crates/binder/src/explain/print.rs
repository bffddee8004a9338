//! An account as a person reads it in a terminal.

use super::{Account, State};
use std::fmt;

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Bound => "bound",
            State::Ready => "about to go on",
            State::Waiting => "waiting",
            State::Lost => "lost",
        };
        writeln!(f, "{} is {state}. {}", self.claim, self.summary)?;
        writeln!(f, "\n  wants    {}", self.wants)?;
        if let Some(class) = &self.class {
            let who = match (&class.provisioner, class.exists) {
                (_, false) => " (does not exist)".to_owned(),
                (Some(provisioner), _) => format!(", provisioner {provisioner}"),
                (None, _) => String::new(),
            };
            let delay = if class.waits_for_pod { ", binds when a pod needs it" } else { "" };
            writeln!(f, "  class    {}{who}{delay}", class.name)?;
        }
        if let Some(volume) = &self.volume {
            writeln!(f, "  volume   {volume}")?;
        }
        if !self.pods.is_empty() {
            writeln!(f, "  used by  {}", self.pods.join(", "))?;
        }
        section(
            f,
            "Near misses",
            self.near_misses.iter().map(|m| format!("{}: {}", m.volume, m.lacks.join("; "))),
        )?;
        section(f, "Other volumes", self.others.iter().map(|(why, count)| format!("{count} {why}")))?;
        section(f, "Said lately", self.told.iter().cloned())?;
        section(f, "What to do", self.next.iter().cloned())
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: impl Iterator<Item = String>) -> fmt::Result {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        writeln!(f, "\n{title}")?;
    }
    lines.try_for_each(|line| writeln!(f, "  {line}"))
}
