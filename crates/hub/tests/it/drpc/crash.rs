//! A death at every write.
