//! Why an object was not read or written.

/// Why an object was not read or written. No text holds a secret or a signed address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The store does not let us do this.
    #[error("{store} refuses us: {detail}; check the access key, the secret key and what they may do")]
    Denied {
        /// Where.
        store: String,
        /// What was tried and answered.
        detail: String,
    },
    /// The bucket or the directory is not there.
    #[error("{store} does not exist: create it, or correct its name")]
    NoStore {
        /// Where.
        store: String,
    },
    /// There is no object of this key.
    #[error("{store} has no object {key}")]
    NotFound {
        /// Where.
        store: String,
        /// Which.
        key: String,
    },
    /// The object ends before the part that was asked for.
    #[error("in {store} the object {key} is shorter than it has to be")]
    TooShort {
        /// Where.
        store: String,
        /// Which.
        key: String,
    },
    /// The object is longer than was to be read.
    #[error("in {store} the object {key} is longer than it may be")]
    TooLong {
        /// Where.
        store: String,
        /// Which.
        key: String,
    },
    /// The key is taken: somebody else was first.
    #[error("{store} has an object {key} already")]
    Exists {
        /// Where.
        store: String,
        /// Which.
        key: String,
    },
    /// Nobody answers, or the connection broke, every time we tried.
    #[error("{store} cannot be reached: {detail}")]
    Unreachable {
        /// Where.
        store: String,
        /// What was tried and how it ended.
        detail: String,
    },
    /// It answers too slowly, or asks us to slow down.
    #[error("{store} is too slow: {detail}")]
    Slow {
        /// Where.
        store: String,
        /// What took too long.
        detail: String,
    },
    /// There is no room left.
    #[error("{store} is full: {detail}")]
    Full {
        /// Where.
        store: String,
        /// What was tried.
        detail: String,
    },
    /// It says that it does not do this at all.
    #[error("{store} does not do what it is asked to: {detail}; use a store that does")]
    Lacking {
        /// Where.
        store: String,
        /// What was tried and answered.
        detail: String,
    },
    /// The address, the name of the bucket or a key makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// It answered something that we do not understand.
    #[error("{store} answered what it should not: {detail}")]
    Strange {
        /// Where.
        store: String,
        /// What was tried and answered.
        detail: String,
    },
}

impl Error {
    /// Whether the same request may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Slow { .. } | Self::Strange { .. })
    }

    /// Whether the object is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}
