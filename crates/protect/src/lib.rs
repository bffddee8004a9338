//! Protects one application's volumes on one cluster: the controller of VolumeReplicationGroup.
