//! The words: every Kubernetes type Lifeboat reads or writes, and its CRDs
