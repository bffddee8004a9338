//! Conditions as Kubernetes wants them: one of each type, the time of the last change of its status only, and the generation
//! they speak of. Pure, so that `decide` can compute them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Holds {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Holds {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Sets conditions of one object, at one moment, for one generation.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// The generation of the spec they speak of.
    pub generation: Option<i64>,
    /// Now.
    pub now: Timestamp,
}

impl Conditions {
    /// Sets a condition. What says the same as before keeps its time, to the last byte.
    pub fn set(
        &self,
        conditions: &mut Vec<Condition>,
        type_: &str,
        holds: Holds,
        reason: &str,
        message: impl Into<String>,
    ) {
        let mut wanted = Condition {
            type_: type_.to_owned(),
            status: holds.as_str().to_owned(),
            reason: reason.to_owned(),
            message: message.into(),
            observed_generation: self.generation,
            // Kubernetes keeps whole seconds; a finer time would look changed when read back.
            last_transition_time: Time(whole_seconds(self.now)),
        };
        match conditions.iter_mut().find(|condition| condition.type_ == type_) {
            Some(known) => {
                if known.status == wanted.status {
                    wanted.last_transition_time = known.last_transition_time.clone();
                }
                *known = wanted;
            }
            None => conditions.push(wanted),
        }
    }
}

/// The same time without fractions of a second, as Kubernetes stores it.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition is there and holds, for this generation or a later one.
pub fn holds(conditions: &[Condition], type_: &str, generation: Option<i64>) -> bool {
    find(conditions, type_)
        .is_some_and(|condition| condition.status == "True" && condition.observed_generation >= generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, generation: i64) -> Conditions {
        let now = Timestamp::new(second, 500_000_000).unwrap();
        Conditions { generation: Some(generation), now }
    }

    fn check(then: (Holds, &str, &str, i64), changed_at: i64) {
        let mut conditions = Vec::new();
        at(100, 1).set(&mut conditions, "Ready", Holds::False, "Starting", "soon");
        at(100, 1).set(&mut conditions, "Other", Holds::True, "Fine", "");
        let (holds, reason, message, generation) = then;
        at(200, generation).set(&mut conditions, "Ready", holds, reason, message);
        assert_eq!(conditions.len(), 2);
        let ready = find(&conditions, "Ready").unwrap();
        assert_eq!(ready.last_transition_time.0, Timestamp::from_second(changed_at).unwrap());
        let said = (ready.status.as_str(), ready.reason.as_str(), ready.message.as_str());
        assert_eq!((said, ready.observed_generation), ((holds.as_str(), reason, message), Some(generation)));
    }

    #[test]
    fn only_a_change_of_status_changes_the_time() {
        check((Holds::False, "Starting", "soon", 1), 100);
        check((Holds::False, "Waiting", "later", 1), 100);
        check((Holds::False, "Starting", "soon", 2), 100);
        check((Holds::True, "Started", "", 1), 200);
        check((Holds::Unknown, "Silent", "", 1), 200);
    }

    #[test]
    fn a_condition_of_an_older_generation_does_not_hold() {
        let mut conditions = Vec::new();
        at(100, 1).set(&mut conditions, "Ready", Holds::True, "Done", "");
        assert!(holds(&conditions, "Ready", Some(1)));
        assert!(!holds(&conditions, "Ready", Some(2)));
        assert!(!holds(&conditions, "Absent", None));
    }
}
