//! Finds out whether a peer that does not understand us is a stock VolSync, whose receiver is stunnel.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The beginning of a TLS conversation that no server can go on with: each answers with an alert.
const NONSENSE: [u8; 9] = [0x16, 0x03, 0x01, 0x00, 0x04, 0x01, 0x00, 0x00, 0x00];

/// Whether a peer speaks TLS.
pub async fn speaks_tls(peer: SocketAddr, within: Duration) -> bool {
    let asking = async {
        let mut socket = TcpStream::connect(peer).await.ok()?;
        socket.write_all(&NONSENSE).await.ok()?;
        let mut head = [0; 2];
        socket.read_exact(&mut head).await.ok()?;
        Some(matches!(head, [0x15 | 0x16, 0x03]))
    };
    tokio::time::timeout(within.min(Duration::from_secs(2)), asking).await.ok().flatten() == Some(true)
}
