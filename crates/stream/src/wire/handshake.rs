//! The handshake: Noise with a pre-shared key. Who does not hold the key gets silence.
//!
//! The sender opens with a nonce and a hint that only holders of the key can tell from noise, so that one listener finds the key among
//! many and an eavesdropper learns no name. The hint and every later byte are bound into the handshake. Names, epochs and generations
//! follow after it, under keys that both sides made fresh: a recording of it is of no use to anybody.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use snow::StatelessTransportState;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{Error, Key};

/// AES in counter mode with a tag, as every server processor does it in hardware.
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";
/// Version of what follows the handshake.
pub(crate) const VERSION: u8 = 1;
/// What this side can do, one bit each: unpack zstd.
pub(crate) const CAPABILITIES: u32 = 1;
/// Nonce and hint.
const OPENING: usize = 32;
/// Ephemeral key, version, capabilities and tag.
const MESSAGE: usize = 32 + 5 + 16;

/// What was agreed on.
pub(crate) struct Agreed {
    pub(crate) transport: StatelessTransportState,
    /// Capabilities of the peer.
    pub(crate) capabilities: u32,
}

/// Opens a connection as the sender.
pub(crate) async fn initiate<S>(link: &mut S, key: &Key, within: Duration) -> Result<Agreed, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    timed(within, async {
        let mut opening = [0; OPENING];
        let mut nonce = [0; 16];
        SystemRandom::new().fill(&mut nonce).map_err(|_| Error::Invalid("no randomness".to_owned()))?;
        opening[..16].copy_from_slice(&nonce);
        opening[16..].copy_from_slice(&key.hint(&nonce));
        let mut state = builder(key, &opening)?.build_initiator().map_err(untrusted)?;
        let mut message = [0; MESSAGE];
        state.write_message(&payload(), &mut message).map_err(untrusted)?;
        link.write_all(&opening).await.map_err(|error| Error::link(&error))?;
        link.write_all(&message).await.map_err(|error| Error::link(&error))?;
        if link.read_exact(&mut message).await.is_err() {
            // A receiver that does not know the key hangs up without a word, as a cut link does.
            return Err(Error::Untrusted("it hung up during the handshake"));
        }
        finish(state, &message)
    })
    .await
}

/// Answers a connection as the receiver; which of the keys was meant is part of the answer. Writes nothing before the peer has
/// shown that it holds one of them.
pub(crate) async fn respond<S>(
    link: &mut S,
    keys: impl Fn(&[u8; 16], &[u8; 16]) -> Option<Key>,
    within: Duration,
) -> Result<(Agreed, Key), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    timed(within, async {
        let mut opening = [0; OPENING];
        link.read_exact(&mut opening).await.map_err(|error| Error::link(&error))?;
        let (mut nonce, mut hint) = ([0; 16], [0; 16]);
        nonce.copy_from_slice(&opening[..16]);
        hint.copy_from_slice(&opening[16..]);
        let key = keys(&nonce, &hint).ok_or(Error::Untrusted("it showed no key that is known here"))?;
        let mut state = builder(&key, &opening)?.build_responder().map_err(untrusted)?;
        let mut message = [0; MESSAGE];
        link.read_exact(&mut message).await.map_err(|error| Error::link(&error))?;
        let mut said = [0; MESSAGE];
        let length = state.read_message(&message, &mut said).map_err(untrusted)?;
        let capabilities = understood(&said[..length])?;
        state.write_message(&payload(), &mut message).map_err(untrusted)?;
        link.write_all(&message).await.map_err(|error| Error::link(&error))?;
        let transport = state.into_stateless_transport_mode().map_err(untrusted)?;
        Ok((Agreed { transport, capabilities }, key))
    })
    .await
}

fn builder<'a>(key: &'a Key, opening: &'a [u8]) -> Result<snow::Builder<'a>, Error> {
    let params = PATTERN.parse().map_err(untrusted)?;
    snow::Builder::new(params)
        .psk(0, key.noise())
        .and_then(|builder| builder.prologue(opening))
        .map_err(untrusted)
}

fn finish(mut state: snow::HandshakeState, message: &[u8]) -> Result<Agreed, Error> {
    let mut said = [0; MESSAGE];
    let length = state.read_message(message, &mut said).map_err(untrusted)?;
    let capabilities = understood(&said[..length])?;
    Ok(Agreed { transport: state.into_stateless_transport_mode().map_err(untrusted)?, capabilities })
}

fn payload() -> [u8; 5] {
    let [a, b, c, d] = CAPABILITIES.to_le_bytes();
    [VERSION, a, b, c, d]
}

fn understood(payload: &[u8]) -> Result<u32, Error> {
    match payload {
        [VERSION, a, b, c, d] => Ok(u32::from_le_bytes([*a, *b, *c, *d])),
        [other, ..] => Err(Error::Protocol(format!("it speaks version {other}, this side speaks {VERSION}"))),
        [] => Err(Error::Protocol("an empty handshake".to_owned())),
    }
}

async fn timed<T>(within: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(within, work)
        .await
        .unwrap_or_else(|_| Err(Error::Link("no handshake in time".to_owned())))
}

fn untrusted<E>(_: E) -> Error {
    Error::Untrusted("the handshake failed")
}
