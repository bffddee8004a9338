//! `volsync.backube/v1alpha1`: copying a claim's bytes to another place at intervals.

mod destination;
mod mover;
mod source;
mod syncthing;

pub use destination::{
    RcloneDestination, ReplicationDestination, ReplicationDestinationSpec, ReplicationDestinationStatus,
    ResticDestination, RsyncDestination, RsyncDestinationStatus, RsyncTlsDestination,
    RsyncTlsDestinationStatus,
};
pub use mover::{
    CustomCa, DestinationVolumeOptions, External, MoverConfig, MoverStatus, MoverVolume, MoverVolumeSource,
    SourceVolumeOptions, Trigger,
};
pub use source::{
    RcloneSource, ReplicationSource, ReplicationSourceSpec, ReplicationSourceStatus, ResticRetain,
    ResticSource, ResticSourceStatus, RsyncSource, RsyncSourceStatus, RsyncTlsSource, RsyncTlsSourceStatus,
};
pub use syncthing::{Syncthing, SyncthingPeer, SyncthingPeerStatus, SyncthingStatus};

use crate::wire::wire_enum;

/// The API group of these kinds.
pub const GROUP: &str = "volsync.backube";

/// Longest name of a service.
const LONGEST_SERVICE: usize = 63;

/// The service by which a receiver of changes over TLS is reached. A name that would be too long is replaced by its checksum, as VolSync and Ramen do.
#[must_use]
pub fn service_name(receiver: &str) -> String {
    let whole = format!("volsync-rsync-tls-dst-{receiver}");
    match whole.len() <= LONGEST_SERVICE {
        true => whole,
        false => format!("volsync-rsync-tls-dst-{:08x}", crc32(receiver.as_bytes())),
    }
}

/// CRC-32 as Ethernet has it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

wire_enum! {
    /// How a stable image of a volume is made.
    closed CopyMethod {
        /// Not at all: the volume itself is used.
        Direct = "Direct",
        /// The former name of Direct.
        None = "None",
        /// By cloning the volume.
        Clone = "Clone",
        /// By a snapshot.
        Snapshot = "Snapshot",
    }
}

wire_enum! {
    /// How the last run of a mover ended.
    open MoverResult {
        /// All was copied.
        Successful = "Successful",
        /// It was not.
        Failed = "Failed",
    }
}

#[cfg(test)]
mod tests {
    use super::{crc32, service_name};

    #[test]
    fn a_service_has_a_name_for_every_receiver() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(service_name("data"), "volsync-rsync-tls-dst-data");
        let (fits, over) = ("a".repeat(41), "a".repeat(42));
        assert_eq!(service_name(&fits), format!("volsync-rsync-tls-dst-{fits}"));
        assert_eq!(service_name(&over), format!("volsync-rsync-tls-dst-{:08x}", crc32(over.as_bytes())));
        assert!(service_name(&"b".repeat(253)).len() <= 63);
    }
}
