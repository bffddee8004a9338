//! Faults on demand: a hook that sees every request of a client and every event it is about to be sent, and can delay,
//! refuse, lose or repeat them. Tests and the simulator use it to play a bad network and a dying process; without
//! one nothing is ever touched.

use crate::error::ApiError;
use crate::path::{ResourcePath, Verb};
use crate::store::Event;
use std::time::Duration;

/// What a hook is told about a request.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The verb.
    pub verb: Verb,
    /// The path.
    pub path: &'a ResourcePath,
}

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum RequestFault {
    /// It is served.
    None,
    /// It is served after a while.
    Delay(Duration),
    /// It is refused with this error and changes nothing.
    Refuse(Box<ApiError>),
    /// The connection breaks before anything happens.
    DropRequest,
    /// It is carried out, and the connection breaks before the answer arrives.
    DropAnswer,
    /// A list or get shows the cluster as it was this many revisions ago.
    Stale(u64),
}

/// What happens to a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFault {
    /// It is sent.
    None,
    /// It is sent after a while.
    Delay(Duration),
    /// It is lost.
    Lose,
    /// It is sent twice.
    Repeat,
    /// The watch ends before it.
    Close,
    /// The watch ends before it with `410 Gone`.
    Expire,
}

/// A source of faults for one client.
pub trait Faults: Send + Sync {
    /// Called once for each request to a resource, before it is carried out.
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        let _ = asked;
        RequestFault::None
    }

    /// Called after a request was carried out, with the HTTP status it will be answered with.
    fn on_answer(&self, asked: Asked<'_>, code: u16) {
        let _ = (asked, code);
    }

    /// Called for each event before it is sent.
    fn on_event(&self, path: &ResourcePath, event: &Event) -> EventFault {
        let _ = (path, event);
        EventFault::None
    }
}

/// The connection broke: what a client sees when a process or a network dies.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("connection reset by peer")]
pub struct ConnectionLost;
