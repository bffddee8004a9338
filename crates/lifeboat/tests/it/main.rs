//! The binary as a person uses it: started, used with a kubeconfig, killed, started again.

mod process;
mod up;
