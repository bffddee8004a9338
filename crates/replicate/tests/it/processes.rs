//! East and west as processes of their own, with disks of their own and nothing in common but a link that is slow and is cut.

#![expect(clippy::disallowed_methods, reason = "the other process is started by the test itself")]

use crate::link::{Fixed, Link};
use crate::site::*;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use lifeboat_api::volsync::ReplicationDestination;
use serde_json::json;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const ROLE: &str = "LIFEBOAT_REPLICATE_TEST_ROLE";

fn digest(folder: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    tree(folder).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A line that the harness does not capture.
fn say(line: &str) {
    fs::write("/dev/stdout", format!("\nline {line}\n")).unwrap();
}

/// What the other process does. By itself, as a test among others, it does nothing.
#[test]
fn the_other_process() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    crate::tell(false, async {
        let mut west = Site::bare().await;
        west.start(Arc::new(Fixed(loopback()))).await;
        create(west.destinations.clone(), receiver_json("data")).await;
        west.listens("data").await;
        say(&format!("listening {}", west.address.unwrap()));
        let mut known = None;
        for name in ["one", "two"] {
            let is = |receiver: Option<&ReplicationDestination>| {
                let image = receiver.and_then(|receiver| receiver.status.as_ref()?.latest_image.as_ref());
                image.is_some_and(|image| known.as_ref() != Some(&image.name))
            };
            let receiver = west.cluster.until(&west.destinations, "data", is).await.unwrap();
            let image = receiver.status.unwrap().latest_image.unwrap().name;
            let mut claim = claim_json(name);
            claim["spec"]["dataSource"] =
                json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": image});
            create::<PersistentVolumeClaim>(west.claims.clone(), claim).await;
            say(&format!("restored {}", digest(&west.files(name).await)));
            known = Some(image);
        }
    });
}

struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Other {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::the_other_process", "--nocapture", "--test-threads=1"]);
        let mut child = command.env(ROLE, "west").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for a line of its own that begins so, and hands back the rest.
    async fn heard(mut self, word: &'static str) -> (Self, String) {
        let hearing = move || {
            let wanted = format!("line {word} ");
            loop {
                let line = self.lines.next().expect("it said no more").unwrap();
                if let Some(rest) = line.strip_prefix(&wanted) {
                    let rest = rest.to_owned();
                    return (self, rest);
                }
            }
        };
        tokio::task::spawn_blocking(hearing).await.unwrap()
    }
}

#[test]
fn two_processes_two_disks_and_a_bad_link() {
    crate::tell(false, async {
        let (west, address) = Other::start().heard("listening").await;
        let (link, there) = Link::lay(address.parse().unwrap(), 3_000_000, Duration::from_millis(1)).await;
        let mut east = Site::bare().await;
        east.start(Arc::new(Fixed(there))).await;
        let files = east.claim("data").await;
        for number in 0..100_u64 {
            fs::write(files.join(format!("f{number}")), noise(number + 1, 100_000)).unwrap();
        }
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        east.served("data", "first").await;
        assert!(link.connections.load(Ordering::Relaxed) >= 2, "the link was cut");
        let (west, restored) = west.heard("restored").await;
        assert_eq!(restored, digest(&files));
        // One hundredth changes: at most twice as much crosses the link.
        let before = link.crossed.load(Ordering::Relaxed);
        fs::write(files.join("f7"), noise(1000, 100_000)).unwrap();
        let source = east.copy("data", "second").await;
        let crossed = link.crossed.load(Ordering::Relaxed) - before;
        assert!(crossed <= 200_000, "{crossed} bytes crossed the link for 100000 changed");
        let told: u64 = external(&source, "bytesOnWire").parse().unwrap();
        assert!(told >= crossed && told <= 200_000, "{told} told, {crossed} crossed");
        let (_west, restored) = west.heard("restored").await;
        assert_eq!(restored, digest(&files));
    });
}
