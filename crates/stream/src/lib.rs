//! Carries a volume's changes to a peer: keyed, encrypted, resumable.
