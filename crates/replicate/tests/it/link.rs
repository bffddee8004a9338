//! A link that is cut and slow, and a peer that speaks another language.

#![expect(clippy::disallowed_methods, reason = "the network between two sites is nobody's controller")]

use crate::site::*;
use crate::stories::pair;
use async_trait::async_trait;
use lifeboat_api::volsync::ReplicationSource;
use lifeboat_replicate::{Resolve, ResolveError};
use lifeboat_testbed::NotYet;
use serde_json::json;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Leads everybody to one place.
pub struct Fixed(pub SocketAddr);

#[async_trait]
impl Resolve for Fixed {
    async fn resolve(&self, _: &str, _: Option<u16>) -> Result<Vec<SocketAddr>, ResolveError> {
        Ok(vec![self.0])
    }
}

/// A link between two sites that lets so many bytes through and is then cut, once; and is slow.
#[derive(Clone)]
pub struct Link {
    left: Arc<AtomicI64>,
    /// Bytes that went from the sender to the receiver.
    pub crossed: Arc<AtomicU64>,
    pub connections: Arc<AtomicU64>,
    pause: Duration,
}

impl Link {
    pub async fn lay(to: SocketAddr, left: i64, pause: Duration) -> (Self, SocketAddr) {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let link = Self {
            left: Arc::new(AtomicI64::new(left)),
            crossed: Arc::default(),
            connections: Arc::default(),
            pause,
        };
        let laid = link.clone();
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                laid.connections.fetch_add(1, Ordering::Relaxed);
                let Ok(far) = TcpStream::connect(to).await else { continue };
                let link = laid.clone();
                tokio::spawn(async move { link.carry(near, far).await });
            }
        });
        (link, address)
    }

    async fn carry(&self, near: TcpStream, far: TcpStream) {
        let (mut near_in, mut near_out) = near.into_split();
        let (mut far_in, mut far_out) = far.into_split();
        let there = async {
            let mut buffer = vec![0; 64 << 10];
            loop {
                let count = near_in.read(&mut buffer).await.unwrap_or(0);
                let left = self.left.fetch_sub(count as i64, Ordering::Relaxed) - count as i64;
                if count == 0 || (left <= 0 && left > i64::MIN / 2) {
                    // Cut once; from then on it holds.
                    self.left.store(i64::MAX, Ordering::Relaxed);
                    return;
                }
                tokio::time::sleep(self.pause).await;
                self.crossed.fetch_add(count as u64, Ordering::Relaxed);
                if far_out.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        };
        let back = async {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match far_in.read(&mut buffer).await {
                    Ok(count) if count > 0 => {
                        if near_out.write_all(&buffer[..count]).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                }
            }
        };
        tokio::select! {
            () = there => {}
            () = back => {}
        }
    }
}

#[test]
fn a_copy_goes_on_where_a_slow_link_was_cut() {
    crate::tell(false, async {
        let (mut east, west) = pair().await;
        let (link, address) = Link::lay(west.address.unwrap(), 6_000_000, Duration::from_millis(1)).await;
        east.kill().await;
        east.start(Arc::new(Fixed(address))).await;
        let files = east.claim("data").await;
        for number in 0..10_u64 {
            fs::write(files.join(format!("f{number}")), noise(number + 1, 1_000_000)).unwrap();
        }
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = east.served("data", "first").await;
        let logs =
            source.status.as_ref().unwrap().latest_mover_status.as_ref().unwrap().logs.clone().unwrap();
        assert!(logs.contains("going on after a cut link"), "{logs}");
        assert!(link.connections.load(Ordering::Relaxed) >= 2);
        // What was safe on the other side was not sent again: all of it and the piece under way.
        let crossed = link.crossed.load(Ordering::Relaxed);
        assert!(crossed < 14_000_000, "{crossed} bytes crossed the link");
        west.has("data", external(&source, "generation")).await;
        assert_eq!(tree(&west.files("volsync-data-dst").await), tree(&files));
    });
}

#[test]
fn a_receiver_that_dies_in_the_middle_goes_on_after_it() {
    crate::tell(false, async {
        let (mut east, mut west) = pair().await;
        let (link, address) = Link::lay(west.address.unwrap(), i64::MAX, Duration::from_millis(5)).await;
        east.kill().await;
        east.start(Arc::new(Fixed(address))).await;
        let files = east.claim("data").await;
        for number in 0..20_u64 {
            fs::write(files.join(format!("f{number}")), noise(number + 1, 500_000)).unwrap();
        }
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let crossing = || async {
            let crossed = link.crossed.load(Ordering::Relaxed);
            if crossed >= 4_000_000 { Ok(()) } else { Err(NotYet(format!("{crossed} bytes have crossed"))) }
        };
        east.cluster.eventually("half of it", crossing).await;
        // Nothing that is not whole is ever shown.
        assert!(west.destinations.get("data").await.unwrap().status.unwrap().latest_image.is_none());
        let port = west.address.unwrap();
        west.kill().await;
        west.start_with(Arc::new(Fixed(port)), |config| config.listen = port).await;
        let source = east.served("data", "first").await;
        west.has("data", external(&source, "generation")).await;
        assert_eq!(tree(&west.files("volsync-data-dst").await), tree(&files));
    });
}

#[test]
fn a_stock_receiver_is_told_from_a_wrong_key() {
    crate::tell(false, async {
        let (mut east, _west) = pair().await;
        // As stunnel does: an alert to whatever is no TLS, and to what begins like it and makes no sense.
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut first = [0; 5];
                if socket.read_exact(&mut first).await.is_ok() && first[0] == 0x16 {
                    let _ = socket.write_all(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x32]).await;
                }
            }
        });
        east.kill().await;
        east.start(Arc::new(Fixed(address))).await;
        fs::write(east.claim("data").await.join("f"), "x").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = says(&east, "stock VolSync").await;
        assert!(source.status.unwrap().last_sync_time.is_none());
    });
}

/// Waits until the sender says this in its condition.
pub async fn says(site: &Site, text: &str) -> ReplicationSource {
    let is = |source: Option<&ReplicationSource>| {
        let conditions = source.and_then(|source| Some(&source.status.as_ref()?.conditions));
        conditions
            .is_some_and(|all| all.iter().any(|one| one.message.contains(text) && one.reason == "Error"))
    };
    site.cluster.until(&site.sources, "data", is).await.unwrap()
}
