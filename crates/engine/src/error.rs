//! How an effect can fail, in the terms the loop acts on: look again, try again, or tell people.

use std::error::Error as StdError;
use std::fmt::Write as _;

/// What a failure asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Class {
    /// The world was not as observed (conflict, gone, already there): observe and decide again at once.
    Stale,
    /// A try later may succeed: pause, then look again.
    Transient,
    /// Somebody does not allow it: people are told, and it is tried again slowly.
    Refused,
    /// What was asked for cannot be done as it is written: people are told, and it is tried again slowly or on change.
    BadInput,
}

/// An effect that failed: what was tried, and what it asks for.
#[derive(Debug, thiserror::Error)]
#[error("{tried}")]
pub struct EffectError {
    /// What it asks for.
    pub class: Class,
    /// What was tried.
    pub tried: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl EffectError {
    /// A failure of a class, without a deeper cause.
    pub fn new(class: Class, tried: impl Into<String>) -> Self {
        Self { class, tried: tried.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        class: Class,
        tried: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self { class, tried: tried.into(), source: Some(source.into()) }
    }

    /// A request to the API server that failed; the class follows from its answer.
    pub fn api(tried: impl Into<String>, error: kube::Error) -> Self {
        Self::caused(class_of(&error), tried, error)
    }

    /// What was tried and every cause below it, in one line.
    pub fn sentence(&self) -> String {
        let mut sentence = self.tried.clone();
        if let Some(cause) = StdError::source(self) {
            let _ = write!(sentence, ": {}", told(cause));
        }
        sentence
    }
}

/// An error and every cause below it, in one line; of an API error its own words, not how the client wraps them.
pub(crate) fn told(error: &(dyn StdError + 'static)) -> String {
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        return status.message.clone();
    }
    match error.source() {
        Some(cause) => format!("{error}: {}", told(cause)),
        None => error.to_string(),
    }
}

fn class_of(error: &kube::Error) -> Class {
    match error {
        kube::Error::Api(status) => match status.code {
            404 | 409 | 410 => Class::Stale,
            400 | 413 | 415 | 422 => Class::BadInput,
            401 | 403 | 405 => Class::Refused,
            _ => Class::Transient,
        },
        kube::Error::BuildRequest(_) | kube::Error::SerdeError(_) => Class::BadInput,
        _ => Class::Transient,
    }
}

/// The last failure of a key, as the next observation sees it: `decide` may show it, and goes on as if it had not been.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Trouble {
    /// Which effect failed: its variant's name, or `Status`.
    pub effect: String,
    /// What the failure asks for.
    pub class: Class,
    /// What was tried and why it failed.
    pub message: String,
    /// Since when it fails in this way.
    pub since: jiff::Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn answers_have_classes() {
        let check = |code: u16, class: Class| {
            let status = Status::failure("no", "Reason").with_code(code).boxed();
            assert_eq!(class_of(&kube::Error::Api(status)), class, "{code}");
        };
        check(404, Class::Stale);
        check(409, Class::Stale);
        check(422, Class::BadInput);
        check(403, Class::Refused);
        check(429, Class::Transient);
        check(500, Class::Transient);
        check(503, Class::Transient);
    }

    #[test]
    fn a_sentence_says_what_was_tried_and_what_came_of_it() {
        let status = Status::failure("configmaps \"a\" is forbidden", "Forbidden").with_code(403).boxed();
        let error = EffectError::api("creating configmap a", kube::Error::Api(status));
        assert_eq!(error.sentence(), "creating configmap a: configmaps \"a\" is forbidden");
    }
}
