//! Every claim finds its volume: the controller that binds PersistentVolumeClaims to PersistentVolumes.
//!
//! Two controllers share one engine. `claims` looks for a volume, or asks a provisioner for one, and makes all four writes of a
//! binding; it is woken by its claim, by the volumes that name it or that it names, by its class and by pods that need it.
//! `volumes` shows a volume's phase, offers a free one to a waiting claim that it fits, takes a claim off that went
//! elsewhere, and releases a volume whose claim is gone; it is woken by its volume and by the claim it is for.
//!
//! Beside them, where nobody else does it, their neighbours: two guards keep what is in use from being deleted ([`protect`]),
//! whoever grows a volume is named and told ([`expand`]), and volumes that live with a pod get their claims ([`ephemeral`]).
//!
//! The names, phases, annotations, reasons and messages are Kubernetes' own, so that this can take the place of
//! kube-controller-manager's binder. Not here: making or deleting storage, which provisioners do.

pub mod decide;
pub mod desk;
mod effects;
pub mod ephemeral;
pub mod expand;
pub mod explain;
pub mod lean;
pub mod metrics;
pub mod protect;
mod run;
pub mod status;
pub mod words;
pub mod world;

pub use run::{Binder, NAME, Neighbours, Protection, binder, engine};
