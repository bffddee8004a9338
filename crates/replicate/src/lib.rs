//! Carries out ReplicationSource and ReplicationDestination on the node that has the volume.
