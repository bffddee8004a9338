//! A Kubernetes API server that fits in a process
