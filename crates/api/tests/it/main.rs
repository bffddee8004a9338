//! Tests of the words: what is on the wire, what the CRDs say, and that the files are current.

mod current;
