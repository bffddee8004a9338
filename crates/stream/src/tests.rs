//! Tests that need the inside: records one by one, and peers that hold the key and lie.

mod hostile;
mod replay;
#[path = "../tests/it/trees.rs"]
mod trees;

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};

use crate::receive::session::Ends;
use crate::wire::handshake;
use crate::wire::link::{Timing, split};
use crate::{Error, Key};

fn key() -> Key {
    Key::parse("tests:000102030405060708090a0b0c0d0e0f").unwrap()
}

/// Connects as somebody who holds a key and says what it likes.
async fn dial(address: SocketAddr, key: &Key) -> Result<Ends, Error> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let agreed = handshake::initiate(&mut socket, key, Timing::default().handshake).await?;
    let (reader, writer, shared) =
        split(socket.into_std().unwrap(), agreed.transport, Timing::default(), None)?;
    Ok(Ends { reader, writer, shared })
}

/// Both ends of a link.
async fn both() -> (Ends, Ends) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let near = tokio::spawn(async move { dial(address, &key()).await.unwrap() });
    let (mut socket, _) = listener.accept().await.unwrap();
    let within = Timing::default().handshake;
    let (agreed, _) = handshake::respond(&mut socket, |_, _| Some(key()), within).await.unwrap();
    let (reader, writer, shared) =
        split(socket.into_std().unwrap(), agreed.transport, Timing::default(), None).unwrap();
    (near.await.unwrap(), Ends { reader, writer, shared })
}
