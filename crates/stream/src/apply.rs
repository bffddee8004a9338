//! Applies records to a staging volume, and to nothing else.
//!
//! Every record may come a second time after a crash, on a target that has some later ones already; each leaves the same result then. What was
//! applied is safe once [`Applier::sync`] has returned. A sender that holds the key may still be hostile: paths are plain names below the root,
//! no link is followed, nothing outside is touched.

mod device;
mod entries;
mod meta;

use std::path::PathBuf;

use device::Device;
use entries::{Open, Tree};

use crate::attributes::{self, Attributes};
use crate::blocks::{self, Hash};
use crate::wire::record::{Kind, MOST_DATA, Record, is_below};
use crate::{Error, Refusal};

/// Where files wait that live on under another name. At the root of the target, and never part of the data.
pub(crate) const STASH: &[u8] = b".lifeboat-stream-stash";

/// A volume that a sync is applied to: never the live one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A directory that holds the files.
    Tree(PathBuf),
    /// A block device, or a plain file in its place.
    Device(PathBuf),
}

/// What a sender may make on the target besides files, directories, links, pipes and sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Device nodes. Without it they are left out and counted.
    pub devices: bool,
    /// The bits that let a program run as its owner. They are the application's data, so they are kept unless this is off; staging is
    /// to be mounted `nosuid,nodev` either way.
    pub set_id: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { devices: false, set_id: true }
    }
}

/// Applies records.
pub(crate) struct Applier {
    target: Target,
    attributes: Attributes,
    piece: Vec<u8>,
    secret: [u8; 32],
    unpacker: zstd::bulk::Decompressor<'static>,
    data: Vec<u8>,
    /// Device nodes that were left out.
    pub(crate) skipped: u64,
}

enum Target {
    Tree(Tree),
    Device(Device),
}

impl Applier {
    /// Opens the target; `whole` says that it is to hold nothing but what is sent.
    pub(crate) fn open(place: &Place, policy: Policy, kind: Kind, secret: [u8; 32]) -> Result<Self, Error> {
        let target = match (place, kind) {
            (Place::Tree(path), Kind::Tree) => Target::Tree(Tree::open(path, policy)?),
            (Place::Device(path), Kind::Device { size }) => Target::Device(Device::open(path, size)?),
            (Place::Tree(_), Kind::Device { .. }) => {
                return Err(unfit("it is a directory, the source is a device"));
            }
            (Place::Device(_), Kind::Tree) => return Err(unfit("it is a device, the source is a directory")),
        };
        let unpacker = zstd::bulk::Decompressor::new()
            .map_err(|error| Error::Target(format!("preparing to unpack: {error}")))?;
        Ok(Self {
            target,
            attributes: Attributes::new(),
            piece: Vec::new(),
            secret,
            unpacker,
            data: vec![0; MOST_DATA],
            skipped: 0,
        })
    }

    /// Whether there is nothing on the target; of a device that cannot be said.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        match &self.target {
            Target::Tree(tree) => tree.is_empty(),
            Target::Device(_) => Ok(true),
        }
    }

    /// Makes the target hold nothing.
    pub(crate) fn clear(&mut self) -> Result<(), Error> {
        match &mut self.target {
            Target::Tree(tree) => tree.clear(),
            Target::Device(device) => device.clear(),
        }
    }

    /// Removes what a copy that was cut off has put aside.
    pub(crate) fn drop_stash(&mut self) -> Result<(), Error> {
        match &mut self.target {
            Target::Tree(tree) => tree.drop_stash(),
            Target::Device(_) => Ok(()),
        }
    }

    /// Puts everything that was applied on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        match &self.target {
            Target::Tree(tree) => tree.sync(),
            Target::Device(device) => device.sync(),
        }
    }

    /// Whether a restart may begin behind the last record.
    pub(crate) fn can_pause(&self) -> bool {
        self.attributes.is_empty() && self.piece.is_empty()
    }

    /// Opens again what was open before a restart.
    pub(crate) fn reopen(&mut self, record: Record) -> Result<(), Error> {
        match record {
            // Its first bytes are there already.
            Record::File { path, block, .. } => {
                self.apply(Record::File { path, from: crate::wire::record::From::Base, block })
            }
            other => self.apply(other),
        }
    }

    /// Unpacks and writes data; hands back the hashes of its blocks.
    pub(crate) fn data(
        &mut self,
        offset: u64,
        length: u32,
        stored: &[u8],
        packed: bool,
    ) -> Result<Vec<Hash>, Error> {
        let length = length as usize;
        if length == 0 || length > MOST_DATA {
            return Err(Error::Protocol("a piece of data of no sensible length".to_owned()));
        }
        let bytes = if packed {
            let unpacked = self.unpacker.decompress_to_buffer(stored, &mut self.data[..length]);
            if !unpacked.is_ok_and(|unpacked| unpacked == length) {
                return Err(Error::Protocol("data does not unpack to its length".to_owned()));
            }
            &self.data[..length]
        } else if stored.len() == length {
            stored
        } else {
            return Err(Error::Protocol("data is not as long as it says".to_owned()));
        };
        let block = match &self.target {
            Target::Tree(tree) => tree.block(),
            Target::Device(device) => device.block(),
        }?;
        if !offset.is_multiple_of(block.into()) || offset.checked_add(length as u64).is_none() {
            return Err(Error::Protocol("data begins inside of a block".to_owned()));
        }
        let hashes = bytes.chunks(block as usize).map(|block| blocks::hash(&self.secret, block)).collect();
        match &mut self.target {
            Target::Tree(tree) => tree.write(offset, bytes)?,
            Target::Device(device) => device.write(offset, bytes)?,
        }
        Ok(hashes)
    }

    /// Applies a record that is not data.
    pub(crate) fn apply(&mut self, record: Record) -> Result<(), Error> {
        if let Record::Attribute { name, piece, last } = record {
            return self.attribute(name.0, &piece.0, last);
        }
        match &mut self.target {
            Target::Tree(tree) => match record {
                Record::Stash { path, slot } => tree.stash(below(&path.0)?, slot),
                Record::Delete { path } => tree.delete(below(&path.0)?),
                Record::Make { path } => tree.make(below(&path.0)?),
                Record::Folder { path } if path.0.is_empty() => tree.folder(&[]),
                Record::Folder { path } => tree.folder(below(&path.0)?),
                Record::File { path, from, block } => tree.file(below(&path.0)?, from, block),
                Record::Symlink { path, target } => tree.symlink(below(&path.0)?, &target.0),
                Record::Special { path, special } => {
                    self.skipped += u64::from(!tree.special(below(&path.0)?, special)?);
                    Ok(())
                }
                Record::Link { path, to } => tree.link(below(&path.0)?, below(&to.0)?),
                Record::Zero { offset, length } => tree.zero(offset, length),
                Record::Close { size, meta, attributes } => {
                    let gathered = std::mem::take(&mut self.attributes);
                    tree.close(size, &meta, attributes.then_some(&gathered))
                }
                other => Err(unexpected(&other)),
            },
            Target::Device(device) => match record {
                Record::Device { block } => device.begin(block),
                Record::Zero { offset, length } => device.zero(offset, length),
                other => Err(unexpected(&other)),
            },
        }
    }

    fn attribute(&mut self, name: Vec<u8>, piece: &[u8], last: bool) -> Result<(), Error> {
        if !attributes::is_carried(&name) || self.attributes.len() >= 4096 || name.contains(&0) {
            return Err(Error::Protocol("an attribute that nobody may set".to_owned()));
        }
        self.piece.extend_from_slice(piece);
        if self.piece.len() > attributes::LARGEST {
            return Err(Error::Protocol("an attribute that is too large".to_owned()));
        }
        if last {
            self.attributes.insert(name, std::mem::take(&mut self.piece));
        }
        Ok(())
    }

    /// The root of the target, if it is a tree.
    pub(crate) fn root(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        match &self.target {
            Target::Tree(tree) => Some(tree.root()),
            Target::Device(_) => None,
        }
    }

    /// The file of the target, if it is a device.
    pub(crate) fn device(&self) -> Option<&std::fs::File> {
        match &self.target {
            Target::Tree(_) => None,
            Target::Device(device) => Some(device.file()),
        }
    }
}

/// A path that is safe to use.
fn below(path: &[u8]) -> Result<&[u8], Error> {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    if is_below(path) && first != STASH {
        Ok(path)
    } else {
        Err(Error::Protocol(format!("the path {} leads outside of the volume", path.escape_ascii())))
    }
}

fn unexpected(record: &Record) -> Error {
    let name = format!("{record:?}");
    let name = name.split([' ', '{', '(']).next().unwrap_or_default().to_owned();
    Error::Protocol(format!("a record {name} where none can be"))
}

fn unfit(why: &str) -> Error {
    Error::Refused(Refusal::Unfit(why.to_owned()))
}

fn is_open(open: &Open) -> Result<(&std::fs::File, u32), Error> {
    match open {
        Open::File { file, block, .. } => Ok((file, *block)),
        _ => Err(Error::Protocol("data, but no file is open".to_owned())),
    }
}
