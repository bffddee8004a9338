//! A real Kubernetes control plane on loopback: etcd, kube-apiserver and, where asked for, chosen controllers of
//! kube-controller-manager.
//!
//! The embedded API server is judged by this one: suites run on both, benchmarks compare both. The programs are built
//! by `cargo xtask tools` from the Go modules under `tools/` and kept in a cache outside the tree; this crate only finds
//! and runs them. It is blocking and small on purpose, so that both the test harness and `xtask` can use it. Kubernetes
//! clients are left to the caller: what comes out is a kubeconfig.

mod binaries;
mod credentials;
pub mod folder;
pub mod judge;
mod plane;
mod process;
mod ready;
mod skip;

pub use binaries::{Binaries, Missing, Pins, cache_root};
pub use plane::{Builder, ControlPlane, Durability, StartError};
pub use process::Process;
pub use skip::{Lack, skip, skip_for};
