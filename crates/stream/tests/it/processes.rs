//! East and west as processes of their own, with nothing in common but a link, and killed without warning.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lifeboat_stream::Event;
use tempfile::tempdir;

use super::link::{Faults, Link};
use super::pair::{Peer, job, sync, tree};
use super::trees::{copy, corpus, noise, same};

const ROLE: &str = "LIFEBOAT_STREAM_TEST_ROLE";
const FOLDER: &str = "LIFEBOAT_STREAM_TEST_FOLDER";
const PEER: &str = "LIFEBOAT_STREAM_TEST_PEER";

/// What the other process does. By itself, as a test among others, it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    if role == "west" {
        let mut peer = Peer::without_destination(&folder).await;
        std::fs::create_dir_all(peer.staging()).unwrap();
        let base = folder.join("base").exists().then_some("g1");
        peer.expect(base, |destination| destination.checkpoint = 300_000);
        say(&format!("listening {}", peer.address));
        while let Some(event) = peer.events.recv().await {
            if let Event::Completed(completed) = event {
                say(&format!("completed {}", completed.generation));
            }
        }
    } else {
        let peer: SocketAddr = std::env::var(PEER).unwrap().parse().unwrap();
        let mut job = job(&folder, &role);
        // Slow enough to be killed in the middle.
        job.limits.bytes_per_second = Some(2 << 20);
        let outcome = sync(tree(&folder.join("source")), peer, job).await;
        say(&format!("sent {}", outcome.map_or_else(|error| error.to_string(), |_| "true".to_owned())));
    }
}

/// A line that the harness does not capture.
fn say(line: &str) {
    std::fs::write("/dev/stdout", format!("\nline {line}\n")).unwrap();
}

struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Other {
    fn start(role: &str, folder: &Path, peer: Option<SocketAddr>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::the_other_process", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(FOLDER, folder).stdout(Stdio::piped());
        if let Some(peer) = peer {
            command.env(PEER, peer.to_string());
        }
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for a line of its own that begins so, and hands back the rest.
    fn heard(&mut self, word: &str) -> String {
        let wanted = format!("line {word}");
        loop {
            let line = self.lines.next().expect("it said no more").unwrap();
            if let Some(rest) = line.strip_prefix(&wanted) {
                return rest.trim().to_owned();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn east_and_west_are_killed_in_turn_and_the_copy_is_whole_in_the_end() {
    let (east, west) = (tempdir().unwrap(), tempdir().unwrap());
    let source = east.path().join("source");
    std::fs::create_dir(&source).unwrap();
    corpus(&source);
    for n in 0..8 {
        std::fs::write(source.join(format!("file-{n}")), noise(n, 256 << 10)).unwrap();
    }
    let listen = || {
        let mut other = Other::start("west", west.path(), None);
        let address: SocketAddr = other.heard("listening").parse().unwrap();
        (other, address)
    };
    for round in 0..6 {
        let (mut receiver, address) = listen();
        let link = Link::new(address, Faults::default()).await;
        let mut sender = Other::start("g1", east.path(), Some(link.address));
        // Whoever it is, it is in the middle of it; or the rounds before got so far that it is done.
        while link.bytes() < 200_000 * (round + 1) && sender.child.try_wait().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let killed = if round % 2 == 0 { &mut sender } else { &mut receiver };
        killed.child.kill().unwrap();
    }
    let (mut receiver, address) = listen();
    let mut sender = Other::start("g1", east.path(), Some(address));
    assert_eq!(sender.heard("sent"), "true");
    assert_eq!(receiver.heard("completed"), "g1");
    same(&source, &west.path().join("staging-0"));

    // And a change of one percent, over a link that is measured.
    drop((sender, receiver));
    std::fs::rename(west.path().join("staging-0"), west.path().join("base")).unwrap();
    copy(&west.path().join("base"), &west.path().join("staging-0"));
    std::fs::remove_file(west.path().join("state/journal")).unwrap();
    let mut changed = 0;
    for n in 0..8 {
        let file = std::fs::OpenOptions::new().write(true).open(source.join(format!("file-{n}"))).unwrap();
        file.write_all_at(&noise(50 + n, 4096), 4096 * n).unwrap();
        changed += 4096;
    }
    let (mut receiver, address) = listen();
    let link = Link::new(address, Faults::default()).await;
    let mut sender = Other::start("g2", east.path(), Some(link.address));
    assert_eq!(sender.heard("sent"), "true");
    assert_eq!(receiver.heard("completed"), "g2");
    same(&source, &west.path().join("staging-0"));
    assert!(link.bytes() <= 2 * changed, "{} on the wire for {changed}", link.bytes());
}
