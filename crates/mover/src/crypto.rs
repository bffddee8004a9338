//! The cipher of restic's repositories, and how a password opens one.
//!
//! AES-256 in counter mode with a Poly1305-AES tag; the key of a repository lies in `keys/`, sealed with a key that scrypt makes of
//! the password.

use aes256ctr_poly1305aes::aead::{Aead, AeadInPlace};
use aes256ctr_poly1305aes::{Aes256CtrPoly1305Aes, Key, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use rustic_core::repofile::MasterKey;
use serde::{Deserialize, Serialize};

use crate::Error;

/// Bytes that sealing adds: a nonce before, a tag behind.
pub(crate) const OVERHEAD: usize = 32;
const NONCE: usize = 16;

/// Seals and opens what a repository holds.
#[derive(Clone)]
pub(crate) struct Seal(Aes256CtrPoly1305Aes);

impl Seal {
    /// With the key of a repository.
    pub(crate) fn of(master: &MasterKey) -> Option<Self> {
        let parts = [&master.encrypt[..], &master.mac.k[..], &master.mac.r[..]].concat();
        // A key of another length is a hostile one.
        let lengths = (master.encrypt.len(), master.mac.k.len(), master.mac.r.len());
        (lengths == (32, 16, 16)).then(|| Self(Aes256CtrPoly1305Aes::new(Key::from_slice(&parts))))
    }

    /// Seals some bytes.
    pub(crate) fn seal(&self, data: &[u8]) -> Result<Vec<u8>, Error> {
        let mut sealed = Vec::with_capacity(data.len() + OVERHEAD);
        self.seal_into(&mut sealed, random()?, data)?;
        Ok(sealed)
    }

    /// Seals some bytes behind others. No two may ever have the same nonce.
    pub(crate) fn seal_into(
        &self,
        sealed: &mut Vec<u8>,
        nonce: [u8; NONCE],
        data: &[u8],
    ) -> Result<(), Error> {
        sealed.extend_from_slice(&nonce);
        let start = sealed.len();
        sealed.extend_from_slice(data);
        let tag = self
            .0
            .encrypt_in_place_detached(Nonce::from_slice(&nonce), &[], &mut sealed[start..])
            .map_err(|_| Error::Invalid("too much to seal in one piece".into()))?;
        sealed.extend_from_slice(&tag);
        Ok(())
    }

    /// Opens what was sealed; none where it was not sealed with this key or was changed since.
    pub(crate) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_at_checked(NONCE)?;
        self.0.decrypt(Nonce::from_slice(nonce), body).ok()
    }

    /// Opens what was sealed without moving it: the bytes lie between the nonce and the tag.
    pub(crate) fn open_in_place<'a>(&self, sealed: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (nonce, rest) = sealed.split_at_mut_checked(NONCE)?;
        let (body, tag) = rest.split_at_mut_checked(rest.len().checked_sub(OVERHEAD - NONCE)?)?;
        let nonce = Nonce::from_slice(nonce);
        self.0
            .decrypt_in_place_detached(
                nonce,
                &[],
                body,
                aes256ctr_poly1305aes::aead::Tag::<Aes256CtrPoly1305Aes>::from_slice(tag),
            )
            .ok()?;
        Some(body)
    }
}

/// A file in `keys/`, as restic writes it.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeyFile {
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    username: String,
    kdf: String,
    #[serde(rename = "N")]
    n: u32,
    r: u32,
    p: u32,
    created: String,
    data: String,
    salt: String,
}

/// Cost of a new key: 32 MiB, three times over. restic's own choice is of that size.
const COST: (u32, u32, u32) = (1 << 15, 8, 3);
/// What a key may ask of us at most: a hostile one could ask for all memory.
const MOST_MEMORY: u64 = 512 << 20;

impl KeyFile {
    /// A new key file for a repository's key.
    pub(crate) fn seal(master: &MasterKey, password: &str, hostname: &str) -> Result<Self, Error> {
        let salt = random::<64>()?;
        let (n, r, p) = COST;
        let seal = derive(password, &salt, n, r, p)
            .ok_or_else(|| Error::Invalid("the cost of the key is out of range".into()))?;
        let plain = serde_json::to_vec(master).map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Self {
            hostname: hostname.to_owned(),
            username: "lifeboat".to_owned(),
            kdf: "scrypt".to_owned(),
            n,
            r,
            p,
            created: jiff::Timestamp::now().to_string(),
            data: STANDARD.encode(seal.seal(&plain)?),
            salt: STANDARD.encode(salt),
        })
    }

    /// The repository's key; none where the password is another or the file makes no sense.
    pub(crate) fn open(&self, password: &str) -> Option<MasterKey> {
        let (salt, data) = (STANDARD.decode(&self.salt).ok()?, STANDARD.decode(&self.data).ok()?);
        if self.kdf != "scrypt" {
            return None;
        }
        let seal = derive(password, &salt, self.n, self.r, self.p)?;
        serde_json::from_slice(&seal.open(&data)?).ok()
    }
}

fn derive(password: &str, salt: &[u8], n: u32, r: u32, p: u32) -> Option<Seal> {
    let memory = u64::from(n) * u64::from(r) * 128;
    if !n.is_power_of_two() || memory > MOST_MEMORY || p > 64 {
        return None;
    }
    let params = scrypt::Params::new(u8::try_from(n.trailing_zeros()).ok()?, r, p).ok()?;
    let mut key = [0; 64];
    scrypt::scrypt(password.as_bytes(), salt, &params, &mut key).ok()?;
    Some(Seal(Aes256CtrPoly1305Aes::new(Key::from_slice(&key))))
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::Transient("the system gives no random bytes".into()))?;
    Ok(bytes)
}

/// The name of some content.
pub(crate) fn sha256(data: &[u8]) -> [u8; 32] {
    let mut id = [0; 32];
    id.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, data).as_ref());
    id
}

/// A name in hexadecimal digits.
pub(crate) fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::with_capacity(id.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_only() {
        let master = MasterKey::new();
        let seal = Seal::of(&master).unwrap();
        for plain in [&b""[..], b"x", &[7; 100_000]] {
            let mut sealed = seal.seal(plain).unwrap();
            assert_eq!(sealed.len(), plain.len() + OVERHEAD);
            assert_eq!(seal.open(&sealed).as_deref(), Some(plain));
            assert!(Seal::of(&MasterKey::new()).unwrap().open(&sealed).is_none());
            assert_eq!(seal.open_in_place(&mut sealed.clone()).as_deref(), Some(plain));
            let last = sealed.len() - 1;
            sealed[last] ^= 1;
            assert!(seal.open(&sealed).is_none());
            assert!(seal.open_in_place(&mut sealed).is_none());
        }
        assert!(seal.open(&[0; 31]).is_none());
        assert!(seal.open_in_place(&mut [0; 31]).is_none());
    }

    #[test]
    fn a_key_file_opens_with_its_password_only() {
        let master = MasterKey::new();
        let file = KeyFile::seal(&master, "right", "host").unwrap();
        let text = serde_json::to_string(&file).unwrap();
        let file: KeyFile = serde_json::from_str(&text).unwrap();
        assert_eq!(file.open("right").unwrap().encrypt, master.encrypt);
        assert!(file.open("wrong").is_none());
    }

    #[test]
    fn a_key_file_that_asks_for_too_much_is_refused() {
        let check = |n, r, p| assert!(derive("x", b"salt", n, r, p).is_none(), "{n} {r} {p}");
        check(0, 8, 1);
        check(3, 8, 1);
        check(1 << 31, 8, 1);
        check(1 << 15, u32::MAX, 1);
        check(2, 8, 65);
    }
}
