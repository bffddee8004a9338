//! CEL rules of a schema.
