//! What crosses the wire: the handshake, sealed frames, and the records in them.

pub(crate) mod handshake;
pub(crate) mod link;
pub(crate) mod pace;
pub(crate) mod record;
