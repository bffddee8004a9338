//! What a controller decides: data that tests assert on, people are told, and the simulator can crash between.

use jiff::Timestamp;
use serde::Serialize;
use std::fmt::{self, Debug, Display, Write};

/// What to do next, and what to show meanwhile.
#[must_use = "a decision that nobody carries out changes nothing"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision<E, W, S> {
    /// What comes next.
    pub next: Next<E, W>,
    /// The status to show; `None` leaves what is shown as it is, which spares a write between two steps.
    pub status: Option<S>,
    /// Nothing is done unless the status is written first; otherwise a status that cannot be written holds nothing up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_record: bool,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Next<E, W> {
    /// These effects, in any order, then observe and decide again. Never empty.
    Do(Vec<E>),
    /// Nothing can be done until something changes or, at the latest, until a time.
    Wait {
        /// What is waited for.
        why: W,
        /// When to look again though nothing has changed; `None` where a watch will tell.
        until: Option<Timestamp>,
    },
    /// Everything is as wanted.
    Settled,
}

impl<E, W, S> Decision<E, W, S> {
    /// Do these; doing nothing is to be settled.
    pub fn act(effects: impl IntoIterator<Item = E>) -> Self {
        let effects: Vec<E> = effects.into_iter().collect();
        let next = if effects.is_empty() { Next::Settled } else { Next::Do(effects) };
        Self { next, status: None, on_record: false }
    }

    /// Wait until something that is watched changes.
    pub fn wait(why: W) -> Self {
        Self { next: Next::Wait { why, until: None }, status: None, on_record: false }
    }

    /// Wait until something that is watched changes, or it is `until`.
    pub fn wait_until(why: W, until: Timestamp) -> Self {
        Self { next: Next::Wait { why, until: Some(until) }, status: None, on_record: false }
    }

    /// Nothing is left to do.
    pub fn settled() -> Self {
        Self { next: Next::Settled, status: None, on_record: false }
    }

    /// The same, showing this status.
    pub fn showing(mut self, status: S) -> Self {
        self.status = Some(status);
        self
    }

    /// The same, done only once the status is written: for what must not happen without a record of it.
    pub fn on_record(mut self) -> Self {
        self.on_record = true;
        self
    }

    /// What is waited for, if anything is.
    pub fn why(&self) -> Option<&W> {
        match &self.next {
            Next::Wait { why, .. } => Some(why),
            _ => None,
        }
    }
}

/// How much an event matters to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Level {
    /// Information.
    Normal,
    /// Somebody may have to do something.
    Warning,
}

impl Level {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What a controller waits for, mostly an enum. Its `Display` is the sentence that people read.
pub trait Why: Debug + Display + Serialize + Clone + PartialEq + Send + Sync + 'static {
    /// One CamelCase word, for conditions, events and metrics: the variant's name unless the wire wants another.
    fn reason(&self) -> String {
        variant(self)
    }

    /// Whether starting to wait for this is worth an event on the object, and of which level.
    fn event(&self) -> Option<Level> {
        None
    }
}

/// Name of the variant of an enum that derives `Debug`.
pub fn variant(value: &impl Debug) -> String {
    /// Takes the first word and ends the formatting there: effects can carry whole objects.
    struct FirstWord(String);
    impl Write for FirstWord {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            self.0.push_str(word);
            if word.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
        }
    }
    let mut first = FirstWord(String::new());
    // The error is how the formatting is ended early.
    let _ = write!(first, "{value:?}");
    first.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[expect(dead_code, reason = "only their names are read")]
    enum Step {
        Create { name: &'static str },
        Bind(u32),
        Release,
    }

    #[test]
    fn a_variant_gives_its_name() {
        let check = |step: Step, name: &str| assert_eq!(variant(&step), name);
        check(Step::Create { name: "a b" }, "Create");
        check(Step::Bind(3), "Bind");
        check(Step::Release, "Release");
    }

    #[test]
    fn doing_nothing_is_settled() {
        let decision: Decision<u8, u8, ()> = Decision::act([]);
        assert_eq!(decision, Decision::settled());
    }
}
