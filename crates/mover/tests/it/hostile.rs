//! A repository that somebody made to harm whoever restores from it.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use lifeboat_mover::{Mover, Restore, Rustic};
use rustic_core::repofile::{Metadata, Node, NodeType, SnapshotFile};
use rustic_core::{
    BackupOptions, BytesList, Credentials, FileType, Id, ReadBackend, ReadSource, ReadSourceEntry,
    RepositoryBackends, RepositoryOptions, RusticResult, WriteBackend,
};

use crate::local::{files, into, repository, unwatched};

/// Plain access to a repository, for the one who makes it.
#[derive(Debug)]
struct Plain(PathBuf);

impl Plain {
    fn path(&self, kind: FileType, id: &Id) -> PathBuf {
        let id = id.to_hex();
        match kind {
            FileType::Config => self.0.join("config"),
            FileType::Pack => self.0.join("data").join(&id.as_str()[..2]).join(id.as_str()),
            kind => self.0.join(kind.dirname()).join(id.as_str()),
        }
    }
}

impl ReadBackend for Plain {
    fn location(&self) -> String {
        "plain".into()
    }
    fn list_with_size(&self, kind: FileType) -> RusticResult<Vec<(Id, u32)>> {
        if kind == FileType::Config {
            return Ok(vec![(Id::default(), 1)]);
        }
        let entries = fs::read_dir(self.0.join(kind.dirname())).unwrap();
        Ok(entries.map(|entry| (entry.unwrap().file_name().to_str().unwrap().parse().unwrap(), 1)).collect())
    }
    fn read_full(&self, kind: FileType, id: &Id) -> RusticResult<Bytes> {
        Ok(fs::read(self.path(kind, id)).unwrap().into())
    }
    fn read_partial(
        &self,
        kind: FileType,
        id: &Id,
        _: bool,
        offset: u32,
        length: u32,
    ) -> RusticResult<Bytes> {
        let content = fs::read(self.path(kind, id)).unwrap();
        Ok(Bytes::from(content).slice(offset as usize..(offset + length) as usize))
    }
    fn warmup_path(&self, _: FileType, _: &Id) -> String {
        String::new()
    }
}

impl WriteBackend for Plain {
    fn write_bytes(&self, kind: FileType, id: &Id, _: bool, content: BytesList) -> RusticResult<()> {
        let path = self.path(kind, id);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.slice().concat()).unwrap();
        Ok(())
    }
    fn remove(&self, kind: FileType, id: &Id, _: bool) -> RusticResult<()> {
        fs::remove_file(self.path(kind, id)).unwrap();
        Ok(())
    }
}

/// Entries just as they are to be stored, each with the directory it is put into.
struct Crafted(Vec<(&'static str, Node)>);

impl ReadSource for Crafted {
    type Open = Cursor<&'static [u8]>;
    type Iter = std::vec::IntoIter<RusticResult<ReadSourceEntry<Self::Open>>>;

    fn size(&self) -> RusticResult<Option<u64>> {
        Ok(None)
    }

    fn entries(&self) -> Self::Iter {
        let entries = self.0.iter().map(|(path, node)| {
            Ok(ReadSourceEntry {
                path: path.into(),
                node: node.clone(),
                open: Some(Cursor::new(&b"harm"[..])),
            })
        });
        entries.collect::<Vec<_>>().into_iter()
    }
}

fn node(name: &str, node_type: NodeType) -> Node {
    let mode = if node_type == NodeType::Dir { 0o755 | (1 << 31) } else { 0o644 };
    // The name is stored as it is, without the escapes that an honest writer would add.
    Node {
        name: name.into(),
        node_type,
        meta: Metadata { mode: Some(mode), ..Metadata::default() },
        ..Node::default()
    }
}

fn link(name: &str, to: &Path) -> Node {
    node(name, NodeType::from_link(to))
}

fn linked(name: &str, inode: u64) -> Node {
    let mut node = node(name, NodeType::File);
    (node.meta.inode, node.meta.device_id, node.meta.links) = (inode, 1, 2);
    node
}

/// Stores crafted entries as a snapshot of `/v` and gives its id.
fn craft(place: &Path, entries: Vec<(&'static str, Node)>) -> String {
    let backends = RepositoryBackends::new(Arc::new(Plain(place.to_owned())), None);
    let options = RepositoryOptions::default().no_cache(true);
    let repository = rustic_core::Repository::new(&options, &backends)
        .unwrap()
        .open(&Credentials::password("p4ssw0rd-canary"))
        .unwrap()
        .to_indexed_ids()
        .unwrap();
    let snapshot = SnapshotFile::default();
    let made =
        repository.archive(&BackupOptions::default(), &Crafted(entries), snapshot, &["/v".into()]).unwrap();
    made.id.to_hex().as_str().to_owned()
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (outside, target, place) = (at("outside"), at("deep/er/target"), at("repository"));
    for folder in [&outside, &target, &at("honest")] {
        fs::create_dir_all(folder).unwrap();
    }
    for name in ["kept", "kept-2", "kept-3"] {
        fs::write(outside.join(name), "untouched").unwrap();
    }
    let (mover, repository) = (Rustic::new(), repository(&place));
    mover.backup(&repository, files(&at("honest")), unwatched()).await.unwrap();

    // What somebody has put into the target beforehand.
    symlink(&outside, target.join("planted-folder")).unwrap();
    symlink(outside.join("kept"), target.join("planted-file")).unwrap();
    symlink(outside.join("new"), target.join("planted-new")).unwrap();
    fs::hard_link(outside.join("kept-2"), target.join("planted-hard")).unwrap();

    let file = || NodeType::File;
    let id = craft(
        &place,
        vec![
            ("/v", node("v", NodeType::Dir)),
            ("/v/01", node("../escaped", file())),
            ("/v/02", node("..", file())),
            ("/v/03", node(".", file())),
            ("/v/04", node("", file())),
            ("/v/05", node("/etc/lifeboat-escaped", file())),
            ("/v/06", node("sub/escaped", file())),
            // The same in the escapes of the format.
            ("/v/07", node("\\x2e\\x2e\\x2fescaped", file())),
            ("/v/08", node("\\u002e\\u002e", NodeType::Dir)),
            ("/v/08/in", node("escaped", file())),
            ("/v/09", node("nul\\x00byte", file())),
            // A link first, then something that would go through it.
            ("/v/10", link("trap", &outside)),
            ("/v/11", node("trap", NodeType::Dir)),
            ("/v/11/in", node("escaped", file())),
            ("/v/12", link("trap-file", &outside.join("kept"))),
            ("/v/13", node("trap-file", file())),
            // Two names of one file, with the first swapped for a link in between.
            ("/v/14", linked("hard-1", 7)),
            ("/v/15", link("hard-1", &outside.join("kept-3"))),
            ("/v/16", linked("hard-2", 7)),
            ("/v/17", node("pipe", NodeType::Fifo)),
            ("/v/18", node("device", NodeType::Chardev { device: 0x0103 })),
            // Over what was planted.
            ("/v/19", node("planted-folder", NodeType::Dir)),
            ("/v/19/in", node("escaped", file())),
            ("/v/20", node("planted-file", file())),
            ("/v/21", node("planted-new", file())),
            ("/v/22", node("planted-hard", file())),
            ("/v/23", node("good", file())),
        ],
    );
    let restore = Restore { special_files: false, ..into(&id, &target) };
    let restored = mover.restore(&repository, restore, unwatched()).await.unwrap();
    // Ten bad names, of which one is a directory with an entry that is never looked at; a pipe and a device.
    assert_eq!(restored.left_out, 11);
    assert_eq!(fs::read(target.join("good")).unwrap(), b"harm");

    let mut kept: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    kept.sort();
    assert_eq!(kept, ["kept", "kept-2", "kept-3"]);
    for name in kept {
        assert_eq!(fs::read(outside.join(&name)).unwrap(), b"untouched", "{name:?}");
    }
    let above: Vec<_> =
        fs::read_dir(at("deep/er")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(above, ["target"]);
    assert!(!Path::new("/etc/lifeboat-escaped").exists());
    for name in ["planted-file", "planted-new", "planted-hard", "trap/escaped", "planted-folder/escaped"] {
        let metadata = fs::symlink_metadata(target.join(name)).unwrap();
        assert!(metadata.is_file() && fs::read(target.join(name)).unwrap() == b"harm", "{name}");
    }
    assert!(!target.join("pipe").exists() && !target.join("device").exists());
}

#[tokio::test]
async fn a_directory_is_not_replaced_by_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (target, place) = (at("target"), at("repository"));
    fs::create_dir_all(target.join("data")).unwrap();
    fs::create_dir(at("honest")).unwrap();
    fs::write(target.join("data/precious"), "kept").unwrap();
    let (mover, repository) = (Rustic::new(), repository(&place));
    mover.backup(&repository, files(&at("honest")), unwatched()).await.unwrap();
    for bad in [node("data", NodeType::File), link("data", Path::new("/tmp")), node("data", NodeType::Fifo)] {
        let id = craft(&place, vec![("/v", node("v", NodeType::Dir)), ("/v/01", bad)]);
        mover.restore(&repository, into(&id, &target), unwatched()).await.unwrap_err();
        assert_eq!(fs::read(target.join("data/precious")).unwrap(), b"kept");
    }
}
