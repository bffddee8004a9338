//! Runs the workloads of an embedded cluster: what kube-controller-manager, the scheduler, the kubelet and a GitOps tool do elsewhere, as
//! far as a small fleet on one machine needs it.
//!
//! ```text
//!   hub: PlacementDecision ─▶ subscribe ─▶ Deployment ─▶ deploy ─▶ Pod ─▶ schedule ─▶ pods ─▶ Machine ─▶ child process
//!        ConfigMap (manifests)    │                                        │                    │
//!                                 └▶ PersistentVolumeClaim ◀─ selected-node ┘    volume folder ◀┘
//! ```
//!
//! * [`subscribe`] copies an application's manifests to the clusters that a placement names and takes them off the others.
//! * [`deploy`] keeps as many pods of a Deployment as it asks for.
//! * [`schedule`] puts pods on the cluster's one node, once their claims can be used there.
//! * [`pods`] starts a pod's containers as processes of a [`Machine`], restarts and stops them, and says how they are.
//! * [`LocalMachine`] is this machine: no image is pulled, no shell is asked, only programs on a list are run.
//!
//! Images, networks, probes, init containers and security contexts are not carried out. What a pod asks for and cannot have is
//! said in its status.

pub mod deploy;
mod local;
mod machine;
pub mod pods;
mod run;
pub mod sample;
pub mod schedule;
pub mod subscribe;
mod words;

pub use local::{LocalMachine, LocalSetup};
pub use machine::{End, Machine, MachineError, Mounted, Process, ProcessId, Run, Signal, State};
pub use run::{Runner, Setup, runner};
