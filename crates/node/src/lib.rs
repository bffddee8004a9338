//! Node storage on Kubernetes.
