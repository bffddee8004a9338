//! The records of a sync, and how they are written.
//!
//! Each is a small header, encoded with postcard; only [`Record::Data`] is followed by the bytes that it announces. Everything that a
//! header can claim is bounded by the frame that it came in.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::link::ROOM;
use crate::Error;
use crate::error::Refusal;
use crate::index::Meta;

/// Longest path, in bytes; longer ones cannot be sent.
pub(crate) const LONGEST_PATH: usize = 16 << 10;
/// Longest piece of an extended attribute in one record.
pub(crate) const ATTRIBUTE_PIECE: usize = 16 << 10;
/// Most bytes of data in one record.
pub(crate) const MOST_DATA: usize = 60 << 10;
/// Room that a header takes at most.
pub(crate) const HEADER: usize = 2 * LONGEST_PATH + 1024;

/// What the sender opens with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) destination: String,
    pub(crate) epoch: u64,
    /// Generations that the sender knows what has changed since.
    pub(crate) bases: Vec<String>,
    /// Whether the sender would also send everything.
    pub(crate) full: bool,
    /// Whether the sender would rather learn what the receiver has than send everything.
    pub(crate) compare: bool,
    pub(crate) generation: String,
    /// Seconds and nanoseconds of the sender's clock at which the source was cut.
    pub(crate) cut: (i64, i32),
    pub(crate) token: Option<String>,
    pub(crate) kind: Kind,
    /// The secret under which blocks are hashed.
    pub(crate) secret: [u8; 32],
    /// Follows in the same frame. A receiver that does not know of it reads no further, and a sender that does not know of it sends none.
    #[serde(skip)]
    pub(crate) more: More,
}

/// What senders say since they know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct More {
    /// Whether the sender understands that a copy is complete and not yet published.
    pub(crate) waits: bool,
    /// The volume that the source descends from.
    pub(crate) lineage: Option<String>,
    /// Why the source may show different moments.
    pub(crate) fuzzy: Option<String>,
}

impl Hello {
    /// Writes all of it.
    pub(crate) fn encode(&self, onto: &mut Vec<u8>) -> Result<(), Error> {
        encode(self, onto)?;
        encode(&self.more, onto)
    }

    /// Reads all of it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let (mut hello, rest) = decode::<Self>(bytes)?;
        if !rest.is_empty() {
            hello.more = decode(rest)?.0;
        }
        Ok(hello)
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Tree,
    Device { size: u64 },
}

/// What the receiver says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Send what has changed since this generation, or everything.
    Start {
        base: Option<String>,
    },
    /// The same sync was cut off: go on after so many records.
    Resume {
        base: Option<String>,
        records: u64,
        digest: [u8; 32],
    },
    /// A piece of the index of what the receiver has, before it says `Start`.
    Inventory(Bytes),
    /// So many records are safe.
    Confirmed {
        records: u64,
    },
    /// All of it is safe; or was, before this sync began.
    Finished {
        token: Option<String>,
    },
    Refused(Refusal),
    Alive,
}

/// Where the first bytes of a file come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum From {
    Nothing,
    /// The file at this path in the base.
    Base,
    /// A file of the base that had another name.
    Slot(u32),
}

/// A file that is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Special {
    Pipe,
    Socket,
    Character(u64),
    Block(u64),
}

/// One step of a sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Record {
    /// Puts a file of the base aside, because it will be needed under another name.
    Stash {
        path: Bytes,
        slot: u32,
    },
    /// Removes a file, or a directory with all that is in it.
    Delete {
        path: Bytes,
    },
    /// Everything before this is safe before anything after it begins.
    Barrier,
    /// Makes a directory.
    Make {
        path: Bytes,
    },
    /// Opens a directory, to say what it is like.
    Folder {
        path: Bytes,
    },
    /// Opens a file, to say what is in it.
    File {
        path: Bytes,
        from: From,
        block: u32,
    },
    /// Opens the device, to say what is in it.
    Device {
        block: u32,
    },
    Symlink {
        path: Bytes,
        target: Bytes,
    },
    Special {
        path: Bytes,
        special: Special,
    },
    /// Another name for a file; neither opens nor needs anything open.
    Link {
        path: Bytes,
        to: Bytes,
    },
    /// `length` bytes of the open file, followed by the `stored` bytes that they are packed in, or that they are.
    Data {
        offset: u64,
        length: u32,
        stored: u32,
        packed: bool,
    },
    /// A hole in the open file.
    Zero {
        offset: u64,
        length: u64,
    },
    /// A piece of an attribute of what is open.
    Attribute {
        name: Bytes,
        piece: Bytes,
        last: bool,
    },
    /// Closes what is open.
    Close {
        size: u64,
        meta: Meta,
        attributes: bool,
    },
    /// That was all.
    End {
        digest: [u8; 32],
        entries: u64,
        content: Option<Content>,
    },
    /// What the receiver has cannot be gone on with.
    Abandon,
    Alive,
}

/// Digests of everything that the target must hold: of what anybody can set, and of what root can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) data: [u8; 32],
    pub(crate) owners: [u8; 32],
}

/// Bytes that are encoded at once, not one by one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Bytes(#[serde(with = "serde_bytes")] pub(crate) Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0.escape_ascii().to_string())
    }
}

impl std::convert::From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// Writes something after what is there.
pub(crate) fn encode<T: Serialize>(value: &T, onto: &mut Vec<u8>) -> Result<(), Error> {
    let whole = std::mem::take(onto);
    *onto = postcard::to_extend(value, whole)
        .map_err(|error| Error::Invalid(format!("a record cannot be written: {error}")))?;
    Ok(())
}

/// Reads something and says what comes after it.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), Error> {
    postcard::take_from_bytes(bytes).map_err(|error| Error::Protocol(error.to_string()))
}

/// Whether a path leads to something below a root: plain names with single slashes.
pub(crate) fn is_below(path: &[u8]) -> bool {
    !path.is_empty()
        && path.len() <= LONGEST_PATH
        && path
            .split(|byte| *byte == b'/')
            .all(|name| !matches!(name, b"" | b"." | b"..") && name.len() <= 255 && !name.contains(&0))
}

const _: () = assert!(MOST_DATA + 64 <= ROOM && HEADER <= ROOM && ATTRIBUTE_PIECE + 1024 <= ROOM);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_not_below() {
        let check = |path: &[u8], below| assert_eq!(is_below(path), below, "{}", path.escape_ascii());
        check(b"a", true);
        check(b"a/b/c", true);
        check(b"...", true);
        check(b"\xff/\n", true);
        check(b"", false);
        check(b"/", false);
        check(b"/etc/passwd", false);
        check(b"..", false);
        check(b"a/../b", false);
        check(b"a/..", false);
        check(b"a//b", false);
        check(b"a/", false);
        check(b"./a", false);
        check(b"a\0b", false);
        check(&[b'x'; 256], false);
        check(&[b'x', b'/'].repeat(LONGEST_PATH), false);
    }

    #[test]
    fn what_a_hostile_peer_claims_does_not_make_room() {
        // A length of the largest number, and nothing behind it.
        for tag in 0..32 {
            let mut bytes = vec![tag];
            bytes.extend([0xff; 9]);
            bytes.push(1);
            let _ = decode::<Record>(&bytes);
            let _ = decode::<Answer>(&bytes);
        }
        assert!(decode::<Record>(&[]).is_err());
    }

    #[test]
    fn a_sender_that_knows_less_is_understood_and_one_that_knows_more_does_no_harm() {
        let more = More { waits: true, lineage: Some("u".to_owned()), fuzzy: None };
        let hello = Hello {
            destination: "d".to_owned(),
            epoch: 1,
            bases: Vec::new(),
            full: true,
            compare: true,
            generation: "g".to_owned(),
            cut: (1, 2),
            token: None,
            kind: Kind::Tree,
            secret: [0; 32],
            more,
        };
        let mut bytes = Vec::new();
        hello.encode(&mut bytes).unwrap();
        assert_eq!(Hello::decode(&bytes).unwrap(), hello);
        // As an older receiver reads it, and as an older sender writes it.
        let earlier = Hello { more: More::default(), ..hello };
        assert_eq!(decode::<Hello>(&bytes).unwrap().0, earlier);
        let mut bytes = Vec::new();
        encode(&earlier, &mut bytes).unwrap();
        assert_eq!(Hello::decode(&bytes).unwrap(), earlier);
    }

    #[test]
    fn records_come_back_as_they_were() {
        let records = [
            Record::Barrier,
            Record::File { path: Bytes(b"a\xff".to_vec()), from: From::Slot(7), block: 4096 },
            Record::Data { offset: 1 << 40, length: 9, stored: 3, packed: true },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(record, &mut bytes).unwrap());
        let mut rest = bytes.as_slice();
        for expected in records {
            let (record, after) = decode::<Record>(rest).unwrap();
            assert_eq!(record, expected);
            rest = after;
        }
        assert!(rest.is_empty());
    }
}
