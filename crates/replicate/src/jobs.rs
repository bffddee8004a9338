//! Copies under way in this process, each known by the generation that is sent or the image that is gone back to.

/// How far a job is.
pub type JobView<T, E> = lifeboat_node::jobs::View<String, T, E>;
/// The jobs of this process by the UID of their object.
pub type Jobs<T, E> = lifeboat_node::jobs::Jobs<String, T, E>;
