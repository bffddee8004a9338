//! The pre-shared key of a pair of volumes: read from `psk.txt`, never shown.

use std::fmt;

use crate::Error;

/// A pre-shared key, as the secret's `psk.txt` holds it: `id:hex`. Prints as dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    derived: [u8; 32],
}

/// Hex digits that a key has at least: 128 bits.
const SHORTEST: usize = 32;
/// Hex digits that a key has at most.
const LONGEST: usize = 1024;

impl Key {
    /// Reads the one line of a `psk.txt`.
    ///
    /// # Errors
    /// When it is not `id:hex`, or too short to be a secret. The error does not show it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let line = text.trim();
        if line.lines().count() != 1 {
            return Err(Error::Key("it is not one line"));
        }
        let (id, hex) = line.split_once(':').ok_or(Error::Key("it has no colon"))?;
        if id.is_empty() || id.len() > 256 || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(Error::Key("its id is empty, too long or has blanks"));
        }
        if hex.len() < SHORTEST {
            return Err(Error::Key("its secret is too short"));
        }
        if hex.len() > LONGEST || hex.len() % 2 != 0 {
            return Err(Error::Key("its secret has an odd or too large number of digits"));
        }
        let mut secret = Vec::with_capacity(hex.len() / 2);
        for pair in hex.as_bytes().chunks_exact(2) {
            let digit = |c: u8| (c as char).to_digit(16).ok_or(Error::Key("its secret is not in hex"));
            secret.push((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
        }
        let mut hasher = blake3::Hasher::new_derive_key("lifeboat stream v1 pre-shared key");
        hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes()).update(&secret);
        Ok(Self { derived: *hasher.finalize().as_bytes() })
    }

    /// The key of the handshake.
    pub(crate) fn noise(&self) -> &[u8; 32] {
        &self.derived
    }

    /// The secret under which blocks of a volume are hashed as long as nothing else is agreed on: the same in every try.
    pub(crate) fn block_secret(&self, destination: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("lifeboat stream v1 blocks");
        *hasher.update(&self.derived).update(destination.as_bytes()).finalize().as_bytes()
    }

    /// Says to who holds the key, and to nobody else, which key is meant.
    pub(crate) fn hint(&self, nonce: &[u8; 16]) -> [u8; 16] {
        let key = blake3::derive_key("lifeboat stream v1 hint", &self.derived);
        let mut hint = [0; 16];
        hint.copy_from_slice(&blake3::keyed_hash(&key, nonce).as_bytes()[..16]);
        hint
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(••••)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line_of_id_and_hex() {
        let check = |text: &str, good: bool| assert_eq!(Key::parse(text).is_ok(), good, "{text:?}");
        let hex = "00112233445566778899aabbccddeeff";
        check(&format!("volsyncramen:{hex}"), true);
        check(&format!("volsyncramen:{hex}\n"), true);
        check(&format!("volsyncramen:{}", hex.to_uppercase()), true);
        check(hex, false);
        check(&format!(":{hex}"), false);
        check(&format!("a b:{hex}"), false);
        check(&format!("id:{}", &hex[2..]), false);
        check(&format!("id:{hex}0"), false);
        check(&format!("id:{}zz", &hex[2..]), false);
        check(&format!("id:{hex}\nid:{hex}"), false);
        check("", false);
    }

    #[test]
    fn a_key_prints_as_dots_and_its_faults_do_not_show_it() {
        let key = Key::parse("id:deadbeefdeadbeefdeadbeefdeadbeef").unwrap();
        assert_eq!(format!("{key:?}"), "Key(••••)");
        let fault = Key::parse("id:deadbeefdeadbeefdeadbeefdeadbeeg").unwrap_err();
        assert!(!format!("{fault} {fault:?}").contains("dead"), "{fault}");
    }

    #[test]
    fn the_id_is_part_of_the_key() {
        let key = |id: &str| Key::parse(&format!("{id}:00112233445566778899aabbccddeeff")).unwrap();
        assert_ne!(key("a"), key("b"));
        assert_ne!(key("a").hint(&[0; 16]), key("b").hint(&[0; 16]));
        assert_ne!(key("a").hint(&[0; 16]), key("a").hint(&[1; 16]));
    }
}
