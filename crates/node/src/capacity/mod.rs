//! Says on the Node how much room it has, at once after every change on its disks: free bytes of each device class, which volumes that
//! takes into account, which class is the default and which hold directories, and the label that volumes are bound to the node by.
//!
//! One controller for one node, woken by its Node, by every change that the back end tells of, and by a slow clock. It writes nothing
//! when nothing has changed, and takes off the figures of classes that are not there any more.
//!
//! Peers also put the finalizer `topolvm.io/node` on the Node, and delete claims and LogicalVolumes with it. Here a Node that is deleted
//! takes nothing with it, so it gets no finalizer.

pub mod decide;
mod metrics;
mod run;

pub use metrics::Gauges;
pub use run::{Reporter, reporter};
