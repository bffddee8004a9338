//! The controller of DRPolicy: which clusters protect each other, and what they have in common.
