//! Stories with real processes.
