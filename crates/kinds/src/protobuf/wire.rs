//! The protobuf wire format: tags, varints, fixed and length-delimited values. It knows no message.

use super::Error;

/// One value as it stands on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], Error> {
        match self {
            Wire::Bytes(v) => Ok(v),
            _ => Err(Error::Malformed("expected a length-delimited value")),
        }
    }

    pub(super) fn varint(self) -> Result<u64, Error> {
        match self {
            Wire::Varint(v) => Ok(v),
            _ => Err(Error::Malformed("expected a varint")),
        }
    }

    pub(super) fn fixed64(self) -> Result<u64, Error> {
        match self {
            Wire::Fixed64(v) => Ok(v),
            _ => Err(Error::Malformed("expected a 64-bit value")),
        }
    }
}

/// Takes a varint off the front of `bytes`.
pub(super) fn varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Error::Malformed("a varint is cut short"))?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Error::Malformed("a varint is longer than ten bytes"))
}

/// The fields of a message in the order of the wire: number and value. Stops at the first error.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Error::Malformed("a value is cut short"))?;
        self.rest = rest;
        Ok(head)
    }

    fn read(&mut self) -> Result<(u64, Wire<'a>), Error> {
        let tag = varint(&mut self.rest)?;
        let wire = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.rest)?),
            1 => {
                let bytes = self.take(8)?.try_into().expect("invariant: eight bytes were taken");
                Wire::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let length = varint(&mut self.rest)?;
                let length =
                    usize::try_from(length).map_err(|_| Error::Malformed("a length is out of range"))?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            _ => return Err(Error::Malformed("a wire type is not in use")),
        };
        Ok((tag >> 3, wire))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u64, Wire<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = self.read();
        if item.is_err() {
            self.rest = &[];
        }
        Some(item)
    }
}
