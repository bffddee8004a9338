//! Gives a test a cluster, embedded or real, and kills what runs on it at every write.
//!
//! * [`Cluster`] is one or the other; [`on_both!`] writes a test once and runs it on both. The embedded one lives on virtual time
//!   when the test's runtime is paused, so waiting costs nothing and sleeping is never needed.
//! * [`CrashStory`] runs a story once to see its effects, then once for each of them with the process dying right before it, and
//!   right after it with the answer lost, and checks what is left.
//! * [`faults`] play a bad network; [`fixtures`] are objects to start from.
//!
//! It knows no rules of any controller.

mod account;
mod cluster;
mod crash;
mod effects;
pub mod faults;
pub mod fixtures;
pub mod real;
mod scene;

pub use cluster::{Cluster, NotYet, Task};
pub use crash::{CrashStory, Process};
pub use effects::{CrashPoints, Died, Kind, Moment, Point};
pub use scene::Scene;

/// Runs one test body on an embedded cluster in virtual time and on a real one, as two tests.
///
/// ```
/// # // The tests it makes exist only where tests are compiled.
/// use lifeboat_testbed::{Cluster, on_both};
///
/// on_both!(
///     /// What the user is promised.
///     async fn a_namespace_is_made(cluster: &Cluster) {
///         let name = cluster.namespace("example").await;
///         assert!(name.starts_with("example"));
///     }
/// );
/// ```
#[macro_export]
macro_rules! on_both {
    ($(#[$doc:meta])* async fn $name:ident($cluster:ident: &Cluster) $body:block) => {
        $(#[$doc])*
        #[cfg(test)]
        mod $name {
            #[allow(unused_imports, reason = "a body may need nothing from around it")]
            use super::*;

            async fn story($cluster: &$crate::Cluster) $body

            #[tokio::test(start_paused = true)]
            async fn embedded() {
                story(&$crate::Cluster::embedded()).await;
            }

            #[tokio::test]
            async fn real() {
                let Some(cluster) = $crate::Cluster::real(concat!(env!("CARGO_PKG_NAME"), " ", module_path!(), "::real")).await else { return };
                story(&cluster).await;
            }
        }
    };
}
