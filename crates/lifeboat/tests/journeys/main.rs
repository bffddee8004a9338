//! Journeys: what people do with a protected application, one thing after another, on an embedded fleet with real bytes. After every step the
//! bytes on the disks are compared with what `lifeboat status`, `plan`, exit codes and `lastFailover` say. Some journeys are written down,
//! because users have been hurt on them; others are drawn by chance, and the seed is printed.
//!
//! `LIFEBOAT_JOURNEYS=FROM..TO` walks those seeds instead of the few that every run walks; `LIFEBOAT_JOURNEY_STEPS` says how long each is.

#![allow(clippy::disallowed_methods, reason = "a test is the outside: it starts processes and tasks")]
#![allow(clippy::print_stdout, reason = "a journey tells its seed and its steps while it is walked")]

mod disks;
mod fleet;
mod paths;
mod steps;
mod walk;
