//! Rules as tables: what is decided in a world, row by row.

mod clusters;
mod manifests;
mod views;
mod works;
