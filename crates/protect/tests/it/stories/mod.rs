//! Stories, on both clusters.

mod blind;
mod copied;
mod fleets;
mod lacking;
mod many;
mod metro;
mod moves;
mod older;
mod orphaned;
mod recovery;
mod replicated;
mod roles;
mod surroundings;
mod survey;
mod walk;
