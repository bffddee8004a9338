//! Carries intent to clusters and observations back: ManifestWork, ManagedClusterView.
