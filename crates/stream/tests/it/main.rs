//! Real sockets, real files, links that are cut and slowed, and peers that die, lie or hold the wrong key.

mod crash;
mod hostile;
mod link;
mod pair;
mod processes;
mod property;
mod stories;
mod trees;
