//! A storage driver that mirrors volumes between clusters, behind VolumeReplication.
