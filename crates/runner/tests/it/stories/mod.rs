//! Stories with real processes.

mod machine;
mod whole;
