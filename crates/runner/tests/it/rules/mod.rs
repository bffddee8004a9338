//! One row for each rule.

mod deploy;
mod pods;
mod schedule;
mod subscribe;
