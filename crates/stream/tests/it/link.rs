//! A link between two peers that can be cut, slowed, and made to lie.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What the link does to bytes on their way to the receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Hangs up both sides after so many bytes.
    pub cut_after: Option<u64>,
    /// Flips a bit of this byte.
    pub flip: Option<u64>,
    /// Stops carrying anything after so many bytes, without hanging up.
    pub stall_after: Option<u64>,
    /// Waits before every piece.
    pub delay: Duration,
}

/// A link that is up.
pub struct Link {
    pub address: SocketAddr,
    /// Bytes that went to the receiver.
    pub forth: Arc<AtomicU64>,
    pub back: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Link {
    pub async fn new(to: SocketAddr, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (forth, back) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (count_forth, count_back) = (Arc::clone(&forth), Arc::clone(&back));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let far = TcpStream::connect(to).await.unwrap();
                let (forth, back) = (Arc::clone(&count_forth), Arc::clone(&count_back));
                connections.spawn(carry(near, far, faults, forth, back));
            }
        });
        Self { address, forth, back, _tasks: tasks }
    }

    /// All bytes so far.
    pub fn bytes(&self) -> u64 {
        self.forth.load(Ordering::SeqCst) + self.back.load(Ordering::SeqCst)
    }
}

async fn carry(near: TcpStream, far: TcpStream, faults: Faults, forth: Arc<AtomicU64>, back: Arc<AtomicU64>) {
    let (mut near_read, mut near_write) = near.into_split();
    let (mut far_read, mut far_write) = far.into_split();
    let there = async {
        let mut buffer = vec![0; 16 << 10];
        let mut passed = 0_u64;
        while let Ok(mut read @ 1..) = near_read.read(&mut buffer).await {
            tokio::time::sleep(faults.delay).await;
            if let Some(at) = faults.flip.and_then(|at| at.checked_sub(passed)).filter(|at| *at < read as u64)
            {
                buffer[at as usize] ^= 0x10;
            }
            let cut = faults.cut_after.is_some_and(|cut| passed + read as u64 >= cut);
            if let Some(cut) = faults.cut_after.filter(|_| cut) {
                read = cut.saturating_sub(passed) as usize;
            }
            if faults.stall_after.is_some_and(|at| passed + read as u64 >= at) {
                std::future::pending::<()>().await;
            }
            if far_write.write_all(&buffer[..read]).await.is_err() {
                break;
            }
            passed += read as u64;
            forth.fetch_add(read as u64, Ordering::SeqCst);
            if cut {
                break;
            }
        }
        let _ = far_write.shutdown().await;
    };
    let home = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(read @ 1..) = far_read.read(&mut buffer).await {
            if near_write.write_all(&buffer[..read]).await.is_err() {
                break;
            }
            back.fetch_add(read as u64, Ordering::SeqCst);
        }
    };
    // Whichever side ends, the link ends.
    tokio::select! { () = there => {}, () = home => {} }
    drop((near_read, near_write));
    // What was carried is heard: only an unread answer would make the system forget it.
    let mut buffer = vec![0; 16 << 10];
    while let Ok(1..) = far_read.read(&mut buffer).await {}
}
