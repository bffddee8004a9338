//! What a volume may be called and what a tag may hold: LVM's rules, kept by every back end, so that a volume that works on
//! directories works on LVM.

use crate::Error;
use std::collections::BTreeSet;

/// Longest name of a volume: device-mapper joins it with the group's name into 127 bytes.
const LONGEST_NAME: usize = 100;

/// Longest tag, as LVM stores it.
const LONGEST_TAG: usize = 1024;

/// Beginnings that LVM keeps for itself, and those of volumes that are not shown.
const RESERVED_PREFIXES: [&str; 5] = ["snapshot", "pvmove", "lb.staged.", "lb.removed.", "lb.swap."];

/// Parts that LVM keeps for the hidden halves of its own volumes.
const RESERVED_PARTS: [&str; 12] = [
    "_cdata", "_cmeta", "_corig", "_cvol", "_mimage", "_mlog", "_rimage", "_rmeta", "_tdata", "_tmeta",
    "_vorigin", "_pmspare",
];

/// Whether LVM takes this as the name of a volume.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.len() > LONGEST_NAME {
        "is longer than 100 bytes"
    } else if name == "." || name == ".." || name.starts_with('-') {
        "starts with a dash or is a dot name"
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+_.-".contains(&byte)) {
        "has letters other than a-z, A-Z, 0-9 and +_.-"
    } else if RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        "starts with a reserved word (snapshot, pvmove, lb.staged., lb.removed., lb.swap.)"
    } else if RESERVED_PARTS.iter().any(|part| name.contains(part)) {
        "has a part that LVM keeps for its hidden volumes"
    } else {
        return Ok(());
    };
    Err(Error::Invalid(format!("{name:?} cannot name a volume: it {fault}; choose another name")))
}

/// Whether these tags can be kept.
pub(crate) fn check_tags(tags: &BTreeSet<String>) -> Result<(), Error> {
    for tag in tags {
        if tag.is_empty() {
            return Err(Error::Invalid("a tag is empty; leave it out".to_owned()));
        }
        if encode_tag(tag).len() > LONGEST_TAG {
            return Err(Error::Invalid(format!("the tag {tag:.40}… is longer than 1024 bytes; shorten it")));
        }
    }
    Ok(())
}

/// A tag in letters that LVM allows. What it does not allow becomes `&` and two hexadecimal digits per byte.
pub(crate) fn encode_tag(tag: &str) -> String {
    let mut encoded = String::with_capacity(tag.len());
    for (at, byte) in tag.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"_+./=!:#".contains(&byte) || (byte == b'-' && at > 0);
        if plain {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("&{byte:02X}"));
        }
    }
    encoded
}

/// The tag that [`encode_tag`] was given. A foreign tag with a stray `&` is left as it is.
pub(crate) fn decode_tag(stored: &str) -> String {
    let bytes = stored.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'&').then(|| stored.get(at + 1..at + 3)).flatten();
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| stored.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_lvm() {
        let check = |name: &str, expected: bool| assert_eq!(check_name(name).is_ok(), expected, "{name:?}");
        check("f3a9c1d2-0b7e-4f3a-9c61-2f2d8c0c9a11", true);
        check("a+b_c.d-e", true);
        check("staging.f3a9", true);
        check("", false);
        check(".", false);
        check("..", false);
        check("-n", false);
        check("a/b", false);
        check("a b", false);
        check("ä", false);
        check("snapshot1", false);
        check("pvmove0", false);
        check("lb.staged.a", false);
        check("lb.removed.a", false);
        check("lb.swap.1.a.b", false);
        check("x_tmeta", false);
        check("lvol0_pmspare", false);
        check(&"n".repeat(100), true);
        check(&"n".repeat(101), false);
    }

    #[test]
    fn tags_come_back_as_they_went() {
        let check = |tag: &str, stored: &str| {
            assert_eq!(encode_tag(tag), stored);
            assert_eq!(decode_tag(stored), tag);
        };
        check("lifeboat.io/volume=abc", "lifeboat.io/volume=abc");
        check("a b", "a&20b");
        check("a&b", "a&26b");
        check("-x-", "&2Dx-");
        check("größe", "gr&C3&B6&C3&9Fe");
        check("a,b@c", "a&2Cb&40c");
        assert_eq!(decode_tag("foreign&tag"), "foreign&tag");
        assert_eq!(decode_tag("end&"), "end&");
        assert_eq!(decode_tag("bad&FF"), "bad&FF");
    }

    #[test]
    fn tags_that_cannot_be_kept_are_refused() {
        let check = |tag: &str, expected: bool| {
            assert_eq!(check_tags(&[tag.to_owned()].into()).is_ok(), expected, "{tag:.10}");
        };
        check("a", true);
        check("", false);
        check(&"t".repeat(1024), true);
        check(&"t".repeat(1025), false);
        check(&" ".repeat(400), false);
    }
}
