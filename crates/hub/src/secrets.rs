//! Secrets that clusters need: keys of object stores and of movers.
