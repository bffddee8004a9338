//! Blobs on their way into the repository: packed, sealed, gathered in packs, named in an index.
//!
//! Nothing names what is not there: an index is written after the packs that it names, when the store has confirmed that it holds
//! them, and the snapshot comes after all indexes.

use std::collections::HashSet;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use rustic_core::repofile::BlobType;
use serde::Serialize;

use crate::Error;
use crate::backend::key;
use crate::crypto::{Seal, hex, sha256};
use crate::objects::Objects;

/// Level of zstd: the fastest that still finds repetitions.
const LEVEL: i32 = 1;
/// Blobs that one index names at most.
const INDEXED: usize = 50_000;
/// Blobs of a pack at most: its header is read in one piece.
const PACKED: usize = 10_000;

/// Where blobs go.
pub(crate) struct Packs<'a> {
    objects: &'a Objects,
    seal: &'a Seal,
    /// Bytes of a pack.
    size: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Blobs that somebody is storing or has stored.
    known: HashSet<[u8; 32]>,
    data: Pack,
    trees: Pack,
    index: Vec<IndexPack>,
    indexed: usize,
    /// What was written and is not confirmed yet.
    written: Vec<(String, u64)>,
    added: u64,
}

#[derive(Default)]
struct Pack {
    content: Vec<u8>,
    blobs: Vec<Blob>,
}

#[derive(Clone, Serialize)]
struct Blob {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    offset: usize,
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    uncompressed_length: Option<usize>,
    #[serde(skip)]
    bytes: [u8; 32],
}

#[derive(Serialize)]
struct IndexPack {
    id: String,
    blobs: Vec<Blob>,
    time: Timestamp,
}

#[derive(Serialize)]
struct Index {
    packs: Vec<IndexPack>,
}

/// Packs and seals blobs, with buffers that stay from blob to blob.
pub(crate) struct Packer {
    zstd: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    sealed: Vec<u8>,
}

impl Packer {
    pub(crate) fn new() -> Result<Self, Error> {
        let zstd = zstd::bulk::Compressor::new(LEVEL)
            .map_err(|error| Error::Transient(format!("preparing to pack: {error}")))?;
        Ok(Self { zstd, packed: Vec::new(), sealed: Vec::new() })
    }

    /// Packs and seals some content; tells its length if it was packed.
    fn seal(&mut self, seal: &Seal, content: &[u8]) -> Result<Option<usize>, Error> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(content.len()));
        let length = self
            .zstd
            .compress_to_buffer(content, &mut self.packed)
            .map_err(|error| Error::Transient(format!("packing: {error}")))?;
        // What does not get shorter is quicker to read as it is.
        let (packed, unpacked) =
            if length < content.len() { (&self.packed[..], Some(content.len())) } else { (content, None) };
        self.sealed.clear();
        seal.seal_into(&mut self.sealed, crate::crypto::random()?, packed)?;
        Ok(unpacked)
    }
}

impl<'a> Packs<'a> {
    /// Packs grow with the repository, so that a large one has not too many.
    pub(crate) fn new(objects: &'a Objects, seal: &'a Seal, repository_bytes: u64) -> Self {
        let grown = (repository_bytes as f64).sqrt() * 32.0;
        let size = ((8 << 20) + grown as usize).min(64 << 20);
        Self { objects, seal, size, state: Mutex::default() }
    }

    /// Whether nobody has brought this blob yet; whoever hears so brings it.
    pub(crate) fn claim(&self, id: [u8; 32]) -> bool {
        self.state.lock().known.insert(id)
    }

    /// Takes a blob.
    pub(crate) fn add(
        &self,
        kind: BlobType,
        id: [u8; 32],
        content: &[u8],
        packer: &mut Packer,
    ) -> Result<(), Error> {
        let unpacked = packer.seal(self.seal, content)?;
        let full = {
            let mut state = self.state.lock();
            state.added += packer.sealed.len() as u64;
            let (pack, name) = match kind {
                BlobType::Data => (&mut state.data, "data"),
                BlobType::Tree => (&mut state.trees, "tree"),
            };
            let (offset, length) = (pack.content.len(), packer.sealed.len());
            if pack.content.capacity() == 0 {
                // Room for the blob that fills it, so that it is never moved; what is not used is never touched.
                pack.content.reserve(self.size + (9 << 20));
            }
            pack.content.extend_from_slice(&packer.sealed);
            pack.blobs.push(Blob {
                id: hex(&id),
                kind: name,
                offset,
                length,
                uncompressed_length: unpacked,
                bytes: id,
            });
            let full = pack.content.len() >= self.size || pack.blobs.len() >= PACKED;
            full.then(|| std::mem::take(pack))
        };
        full.map_or(Ok(()), |pack| self.write_pack(pack))
    }

    /// Writes whatever is left; then every blob is in the repository. Tells the bytes that were added.
    pub(crate) fn finish(&self) -> Result<u64, Error> {
        let (data, trees) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.data), std::mem::take(&mut state.trees))
        };
        for pack in [data, trees] {
            if !pack.blobs.is_empty() {
                self.write_pack(pack)?;
            }
        }
        let last = std::mem::take(&mut self.state.lock().index);
        if !last.is_empty() {
            self.write_index(last)?;
        }
        self.confirm()?;
        Ok(self.state.lock().added)
    }

    /// Writes a file of its own, sealed and under the name of its content.
    pub(crate) fn write_file(&self, folder: &str, content: &impl Serialize) -> Result<String, Error> {
        let plain = serde_json::to_vec(content).map_err(|error| Error::Invalid(error.to_string()))?;
        let mut packed = vec![2];
        packed.extend(
            zstd::bulk::compress(&plain, LEVEL).map_err(|error| Error::Transient(error.to_string()))?,
        );
        let sealed = self.seal.seal(&packed)?;
        let id = hex(&sha256(&sealed));
        let size = sealed.len() as u64;
        let key = format!("{folder}/{id}");
        self.objects.put(&key, &[Bytes::from(sealed)])?;
        self.state.lock().written.push((key, size));
        Ok(id)
    }

    fn write_pack(&self, pack: Pack) -> Result<(), Error> {
        let Pack { mut content, blobs } = pack;
        let mut header = Vec::with_capacity(blobs.len() * 41);
        for blob in &blobs {
            let kind = u8::from(blob.kind == "tree") + if blob.uncompressed_length.is_some() { 2 } else { 0 };
            header.push(kind);
            let short = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
            header.extend_from_slice(&short(blob.length));
            if let Some(length) = blob.uncompressed_length {
                header.extend_from_slice(&short(length));
            }
            header.extend_from_slice(&blob.bytes);
        }
        let sealed = self.seal.seal(&header)?;
        content.extend_from_slice(&sealed);
        content.extend_from_slice(&u32::try_from(sealed.len()).unwrap_or(u32::MAX).to_le_bytes());
        let id = hex(&sha256(&content));
        let parsed = id.parse().map_err(|_| Error::Invalid("a name of 64 digits is no name".into()))?;
        let key = key(rustic_core::FileType::Pack, &parsed);
        let size = content.len() as u64;
        self.objects.put(&key, &[Bytes::from(content)])?;
        let full = {
            let mut state = self.state.lock();
            state.written.push((key, size));
            state.indexed += blobs.len();
            state.index.push(IndexPack { id, blobs, time: Timestamp::now() });
            (state.indexed >= INDEXED).then(|| {
                state.indexed = 0;
                std::mem::take(&mut state.index)
            })
        };
        full.map_or(Ok(()), |packs| self.write_index(packs))
    }

    fn write_index(&self, packs: Vec<IndexPack>) -> Result<(), Error> {
        self.confirm()?;
        self.write_file("index", &Index { packs }).map(drop)
    }

    /// Makes sure that the store holds what it took: a later backup relies on what an index names.
    pub(crate) fn confirm(&self) -> Result<(), Error> {
        let written = std::mem::take(&mut self.state.lock().written);
        for (key, size) in written {
            if self.objects.size(&key)? != Some(size) {
                let text = format!("{} took {key} but does not hold it", self.objects.name());
                return Err(self.objects.operation.fail(Error::Transient(text)));
            }
        }
        Ok(())
    }
}
