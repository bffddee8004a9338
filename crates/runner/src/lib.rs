//! Starts the pods of an embedded cluster as child processes.
