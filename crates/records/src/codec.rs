//! Bytes and what they mean: gzip of JSON as Ramen writes it, and sealed documents of our own.
//!
//! Everything read here was written by somebody else: lengths and depth are bounded before anything is believed.

use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder, GzHeader};
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// The longest object that is read from a store: Kubernetes objects are at most 1.5 MiB, manifests name a few thousand.
pub(crate) const LONGEST_PACKED: u64 = 8 << 20;
/// The longest JSON that a packed record may unfold into.
const LONGEST: u64 = 16 << 20;

/// A SHA-256 checksum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The checksum of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let digits = text.as_bytes();
        let good = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if digits.len() != 64 || !digits.iter().all(good) {
            return Err(Fault::Content("a checksum has 64 small hexadecimal digits".into()));
        }
        let value = |digit: u8| if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What is wrong with the content of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The object is not there.
    #[error("it is not there")]
    Missing,
    /// It is longer than any honest one.
    #[error("it is longer than {LONGEST_PACKED} bytes, or unfolds into more than {LONGEST}")]
    TooLong,
    /// Its checksum or length is not the one that was written.
    #[error("its content is not what was written: the checksum or the length differs")]
    Checksum,
    /// It cannot be decompressed.
    #[error("it is no gzip")]
    NotGzip,
    /// It is JSON of another shape, or none.
    #[error("its content makes no sense: {0}")]
    Content(String),
    /// It tells of another object than its key.
    #[error("it tells of {0}, which is not what its key says")]
    Other(String),
}

/// The comment in the header of what we pack, by which it is told from what Ramen packed. Who unpacks it passes over it.
const MARK: &[u8] = b"lifeboat";

/// Whether we packed it.
pub(crate) fn is_ours(packed: &[u8]) -> bool {
    let decoder = GzDecoder::new(packed);
    decoder.header().and_then(GzHeader::comment) == Some(MARK)
}

/// gzip of JSON with a line end, as Go's encoder leaves it.
pub(crate) fn pack<T: Serialize>(value: &T) -> Result<Bytes, Fault> {
    let mut text = serde_json::to_vec(value).map_err(|error| Fault::Content(error.to_string()))?;
    text.push(b'\n');
    // No time and no name go into the header, so the same object gives the same bytes.
    let mut encoder = GzBuilder::new().comment(MARK).write(Vec::new(), Compression::default());
    let packed = encoder.write_all(&text).and_then(|()| encoder.finish());
    packed.map(Bytes::from).map_err(|error| Fault::Content(error.to_string()))
}

/// The one JSON object in a packed record.
pub(crate) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Result<T, Fault> {
    if packed.len() as u64 > LONGEST_PACKED {
        return Err(Fault::TooLong);
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(packed).take(LONGEST + 1).read_to_end(&mut text).map_err(|_| Fault::NotGzip)?;
    if text.len() as u64 > LONGEST {
        return Err(Fault::TooLong);
    }
    // By way of a tree, which bounds the depth and, as Go does, takes the last of two equal keys.
    let tree: serde_json::Value = parse(&text)?;
    if !tree.is_object() {
        return Err(Fault::Content("it is no object".into()));
    }
    serde_json::from_value(tree).map_err(|error| Fault::Content(plain(&error.to_string())))
}

#[derive(Serialize, Deserialize)]
struct Sealed<'a> {
    format: &'a str,
    #[serde(borrow)]
    content: &'a RawValue,
    sha256: Digest,
}

/// A document with its own checksum, so that damage is not taken for content.
pub(crate) fn seal<T: Serialize>(format: &str, content: &T) -> Result<Bytes, Fault> {
    let fault = |error: serde_json::Error| Fault::Content(error.to_string());
    let text = serde_json::to_string(content).map_err(fault)?;
    let sha256 = Digest::of(text.as_bytes());
    let content = RawValue::from_string(text).map_err(fault)?;
    let mut sealed = serde_json::to_vec(&Sealed { format, content: &content, sha256 }).map_err(fault)?;
    sealed.push(b'\n');
    Ok(sealed.into())
}

/// Opens a sealed document of this format.
pub(crate) fn unseal<T: DeserializeOwned>(format: &str, bytes: &[u8]) -> Result<T, Fault> {
    if bytes.len() as u64 > LONGEST_PACKED {
        return Err(Fault::TooLong);
    }
    let sealed: Sealed<'_> =
        serde_json::from_slice(bytes).map_err(|error| Fault::Content(plain(&error.to_string())))?;
    if sealed.format != format {
        return Err(Fault::Content(format!("it is no {format}")));
    }
    if Digest::of(sealed.content.get().as_bytes()) != sealed.sha256 {
        return Err(Fault::Checksum);
    }
    parse(sealed.content.get().as_bytes())
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(text).map_err(|error| Fault::Content(plain(&error.to_string())))
}

/// A reader's complaint, short and on one line: it may quote what a stranger wrote.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packing_is_the_same_every_time_and_ends_a_line() {
        let value = json!({"b": 1, "a": "<&>"});
        let packed = pack(&value).unwrap();
        assert_eq!(packed, pack(&value).unwrap());
        assert_eq!(unpack::<Value>(&packed).unwrap(), value);
        let mut text = String::new();
        MultiGzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        assert!(text.ends_with("}\n"));
        assert!(is_ours(&packed) && !is_ours(&gzip(text.as_bytes())) && !is_ours(b"") && !is_ours(b"{}"));
    }

    #[test]
    fn hostile_content_is_a_fault() {
        let check = |packed: &[u8], expected: &str| {
            let fault = unpack::<Value>(packed).unwrap_err();
            assert!(format!("{fault:?}").starts_with(expected), "{fault:?}");
        };
        check(b"", "NotGzip");
        check(b"{}", "NotGzip");
        check(&gzip(b""), "Content");
        check(&gzip(b"[]"), "Content");
        check(&gzip(b"null"), "Content");
        check(&gzip(b"{} {}"), "Content");
        check(&gzip(b"\xff\xfe{}"), "Content");
        check(&gzip("{\"a\":".repeat(100_000).as_bytes()), "Content");
        check(&gzip(&vec![b' '; usize::try_from(LONGEST).unwrap() + 2]), "TooLong");
        check(&vec![0; usize::try_from(LONGEST_PACKED).unwrap() + 1], "TooLong");
        let whole = gzip(b"{\"a\":1}");
        check(&whole[..whole.len() - 3], "NotGzip");
        let mut two = gzip(b"{\"a\":");
        two.extend(gzip(b"1}"));
        assert_eq!(unpack::<Value>(&two).unwrap(), json!({"a": 1}), "Go reads several members as one");
    }

    #[test]
    fn a_seal_shows_every_change_of_a_byte() {
        let sealed = seal("test/v1", &json!({"epoch": 3, "who": "east"})).unwrap();
        assert!(unseal::<Value>("test/v1", &sealed).is_ok());
        assert!(unseal::<Value>("other/v1", &sealed).is_err());
        for place in 0..sealed.len() - 1 {
            for bit in 0..8 {
                let mut hurt = sealed.to_vec();
                hurt[place] ^= 1 << bit;
                assert!(unseal::<Value>("test/v1", &hurt).is_err(), "bit {bit} of byte {place}");
            }
        }
        for length in 0..sealed.len() - 1 {
            assert!(unseal::<Value>("test/v1", &sealed[..length]).is_err(), "{length} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack::<Value>(&bytes);
            let _ = unpack::<Value>(&gzip(&bytes));
            let _ = unseal::<Value>("test/v1", &bytes);
        }

        #[test]
        fn digests_read_back(bytes in any::<[u8; 32]>()) {
            let digest = Digest(bytes);
            prop_assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        }
    }
}
