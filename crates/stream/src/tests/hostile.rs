//! Peers that hold no key, the wrong one, or the right one and lie.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::trees::seen;
use super::{dial, key};
use crate::receive::session::Ends;
use crate::wire::link::Timing;
use crate::wire::record::{Answer, Bytes, From, Hello, Kind, Record, Special, decode, encode};
use crate::{Destination, Destinations, Error, Event, Key, Place, Policy, Receiver, Refusal};

struct Victim {
    address: std::net::SocketAddr,
    events: mpsc::UnboundedReceiver<Event>,
    _destinations: Destinations,
    running: JoinHandle<()>,
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn victim(folder: &Path, handshake: Duration) -> Victim {
    fs::create_dir_all(folder.join("staging")).unwrap();
    let timing = Timing { handshake, ..Timing::default() };
    let (receiver, destinations, events) =
        Receiver::bind("127.0.0.1:0".parse().unwrap(), timing).await.unwrap();
    let destination = Destination {
        id: "vol".into(),
        key: key(),
        epoch: 0,
        place: Place::Tree(folder.join("staging")),
        base: Some("base".into()),
        incarnation: format!("{:?}", std::time::Instant::now()),
        state: folder.join("state"),
        policy: Policy::default(),
        checkpoint: 1,
        terms: Default::default(),
    };
    destinations.register(destination).unwrap();
    let address = receiver.address().unwrap();
    Victim { address, events, _destinations: destinations, running: tokio::spawn(receiver.run()) }
}

fn hello() -> Hello {
    Hello {
        destination: "vol".into(),
        epoch: 1,
        bases: vec!["base".into()],
        full: true,
        compare: false,
        generation: "g".into(),
        cut: (0, 0),
        token: None,
        kind: Kind::Tree,
        secret: [0; 32],
        more: Default::default(),
    }
}

/// The next answer that is not just a sign of life; `None` when the receiver hung up.
fn answer(ends: &mut Ends) -> Option<Answer> {
    let mut frame = Vec::new();
    loop {
        ends.reader.read(&mut frame).ok()?;
        let (answer, _) = decode::<Answer>(&frame).unwrap();
        if answer != Answer::Alive {
            return Some(answer);
        }
    }
}

/// Says hello and then these records, and hands back the last word of the receiver.
async fn say(victim: &Victim, records: Vec<(Record, Vec<u8>)>) -> Option<Answer> {
    let mut ends = dial(victim.address, &key()).await.unwrap();
    tokio::task::spawn_blocking(move || {
        ends.writer.push(1000, |frame| encode(&hello(), frame)).unwrap();
        ends.writer.flush().unwrap();
        assert_eq!(answer(&mut ends), Some(Answer::Start { base: Some("base".into()) }));
        for (record, data) in records {
            ends.writer
                .push(60_000, |frame| {
                    encode(&record, frame)?;
                    frame.extend_from_slice(&data);
                    Ok(())
                })
                .unwrap();
            if ends.writer.flush().is_err() {
                break;
            }
        }
        loop {
            match answer(&mut ends) {
                Some(Answer::Confirmed { .. }) => {}
                last => return last,
            }
        }
    })
    .await
    .unwrap()
}

fn path(text: &str) -> Bytes {
    Bytes(text.as_bytes().to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_outside_of_the_volume() {
    let file = |at: &str| (Record::File { path: path(at), from: From::Nothing, block: 4096 }, Vec::new());
    let zero = |offset, length| (Record::Zero { offset, length }, Vec::new());
    let data = |offset, length, stored: Vec<u8>, packed| {
        (Record::Data { offset, length, stored: stored.len() as u32, packed }, stored)
    };
    let plain = |record| (record, Vec::new());
    let meta = crate::index::Meta { mode: 0o777, uid: 0, gid: 0, modified: (0, 0) };
    let close = || plain(Record::Close { size: 0, meta, attributes: true });
    let cases = vec![
        vec![file("../outside/file")],
        vec![file("/outside")],
        vec![file("dir/../../outside/file")],
        vec![file("way-out/file")],
        vec![file("a\0b")],
        vec![file("")],
        vec![file(".lifeboat-stream-stash/0")],
        vec![plain(Record::File { path: path("file"), from: From::Base, block: 4096 }), file("x/../../y")],
        vec![plain(Record::File { path: path("to-file"), from: From::Base, block: 4096 })],
        vec![plain(Record::File { path: path("missing"), from: From::Base, block: 4096 })],
        vec![plain(Record::File { path: path("file"), from: From::Nothing, block: 0 })],
        vec![plain(Record::File { path: path("file"), from: From::Nothing, block: 1 << 30 })],
        vec![plain(Record::Make { path: path("way-out/dir") })],
        vec![plain(Record::Delete { path: path("way-out/precious") })],
        vec![plain(Record::Delete { path: path("..") })],
        vec![plain(Record::Delete { path: path("") })],
        vec![plain(Record::Stash { path: path("way-out/precious"), slot: 1 })],
        vec![plain(Record::Stash { path: path("to-file"), slot: 1 })],
        vec![plain(Record::Link { path: path("stolen"), to: path("way-out/precious") })],
        vec![plain(Record::Link { path: path("stolen"), to: path("to-file") })],
        vec![plain(Record::Link { path: path("way-out/planted"), to: path("file") })],
        vec![plain(Record::Symlink { path: path("way-out/planted"), target: path("x") })],
        vec![
            plain(Record::Symlink { path: path("dir/new"), target: path("../../outside") }),
            close(),
            file("dir/new/planted"),
        ],
        vec![plain(Record::Folder { path: path("way-out") }), close()],
        vec![plain(Record::Folder { path: path("to-file") }), close()],
        vec![close()],
        vec![data(0, 4, b"data".to_vec(), false)],
        vec![file("new"), data(0, 5, b"data".to_vec(), false)],
        vec![file("new"), data(1, 4, b"data".to_vec(), false)],
        vec![file("new"), data(0, u32::MAX, b"data".to_vec(), true)],
        vec![file("new"), data(0, 4, b"data".to_vec(), true)],
        vec![file("new"), data(u64::MAX - 4095, 4096, vec![1; 4096], false)],
        vec![
            file("new"),
            (Record::Data { offset: 0, length: 9, stored: 1 << 30, packed: false }, Vec::new()),
        ],
        vec![file("new"), zero(u64::MAX, 2)],
        vec![plain(Record::Attribute {
            name: path("trusted.overlay.redirect"),
            piece: path("x"),
            last: true,
        })],
        vec![plain(Record::Attribute { name: path("user.a\0b"), piece: path("x"), last: true })],
        (0..9)
            .map(|_| {
                plain(Record::Attribute {
                    name: path("user.a"),
                    piece: Bytes(vec![0; 16 << 10]),
                    last: false,
                })
            })
            .collect(),
        vec![plain(Record::Device { block: 4096 })],
        vec![plain(Record::End { digest: [0xee; 32], entries: 5, content: None })],
    ];
    for case in cases {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), b"data").unwrap();
        let staging = folder.path().join("staging");
        fs::create_dir_all(staging.join("dir")).unwrap();
        fs::write(staging.join("file"), b"base").unwrap();
        symlink("../outside", staging.join("way-out")).unwrap();
        symlink("../outside/precious", staging.join("to-file")).unwrap();
        let before = seen(&outside);
        let mut victim = victim(folder.path(), Duration::from_secs(10)).await;
        let what = format!("{case:?}");
        let what = &what[..what.len().min(200)];
        let last = say(&victim, case).await;
        assert!(matches!(last, Some(Answer::Refused(_))), "{last:?} for {what}");
        assert_eq!(seen(&outside), before, "{what}");
        while let Ok(event) = victim.events.try_recv() {
            assert!(!matches!(event, Event::Completed(_)), "{what}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn device_nodes_are_not_made_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let victim = victim(folder.path(), Duration::from_secs(10)).await;
    let special = Special::Character(rustix::fs::makedev(1, 3));
    let meta = crate::index::Meta { mode: 0o666, uid: 0, gid: 0, modified: (0, 0) };
    let steps = [
        Record::Special { path: path("null"), special },
        Record::Close { size: 0, meta, attributes: true },
        Record::End { digest: [0; 32], entries: 2, content: None },
    ];
    say(&victim, steps.into_iter().map(|record| (record, Vec::new())).collect()).await;
    assert!(!folder.path().join("staging/null").exists());
}

/// Everything that the receiver says to somebody who sends these bytes.
async fn poke(address: std::net::SocketAddr, bytes: &[u8], hang_up: bool) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let _ = socket.write_all(bytes).await;
    if hang_up {
        socket.shutdown().await.unwrap();
    }
    let mut heard = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), socket.read_to_end(&mut heard)).await.unwrap();
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_no_key_hears_nothing_and_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = victim(folder.path(), Duration::from_millis(300)).await;
    // Each ends by itself: the receiver hangs up, even if the stranger does not.
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 31], &[0; 32], &[0xff; 100], &[7; 1 << 20]] {
        assert_eq!(poke(victim.address, bytes, false).await, b"", "{} bytes", bytes.len());
    }
    let wrong = Key::parse("tests:ffffffffffffffffffffffffffffffff").unwrap();
    let error = dial(victim.address, &wrong).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::Untrusted(_)), "{error}");
    // The owner hears once that somebody showed a key that is none of its own, however many did.
    assert!(matches!(victim.events.recv().await, Some(Event::Stranger { .. })));
    assert!(victim.events.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_handshake_is_of_no_use() {
    let folder = tempfile::tempdir().unwrap();
    let mut victim = victim(folder.path(), Duration::from_secs(10)).await;
    // Records what a true sender says, hello included.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (tapped, real) = (listener.local_addr().unwrap(), victim.address);
    let tap = tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(real).await.unwrap();
        let ((mut near_read, mut near_write), (mut far_read, mut far_write)) =
            (near.into_split(), far.into_split());
        let back = tokio::spawn(async move { tokio::io::copy(&mut far_read, &mut near_write).await });
        let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = near_read.read(&mut buffer).await {
            said.extend_from_slice(&buffer[..read]);
            far_write.write_all(&buffer[..read]).await.unwrap();
        }
        back.abort();
        said
    });
    let mut ends = dial(tapped, &key()).await.unwrap();
    tokio::task::spawn_blocking(move || {
        ends.writer.push(1000, |frame| encode(&hello(), frame)).unwrap();
        ends.writer.flush().unwrap();
        assert!(matches!(answer(&mut ends), Some(Answer::Start { .. })));
        ends.shared.stop();
    })
    .await
    .unwrap();
    let said = tap.await.unwrap();
    assert!(!said.windows(3).any(|window| window == b"vol"), "the name of the volume is in the clear");
    while !matches!(victim.events.recv().await.unwrap(), Event::Failed { .. }) {}
    let heard = poke(victim.address, &said, true).await;
    // One sealed answer to the handshake, which says nothing to who cannot open it; then it is over.
    assert!(heard.len() <= 53, "{} bytes", heard.len());
    assert!(victim.events.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_its_own_destinations_only() {
    let folder = tempfile::tempdir().unwrap();
    let victim = victim(folder.path(), Duration::from_secs(10)).await;
    for (destination, key) in [("other", key()), ("vo", key()), ("vol ", key())] {
        let mut ends = dial(victim.address, &key).await.unwrap();
        let hello = Hello { destination: destination.into(), ..hello() };
        let last = tokio::task::spawn_blocking(move || {
            ends.writer.push(1000, |frame| encode(&hello, frame)).unwrap();
            ends.writer.flush().unwrap();
            answer(&mut ends)
        });
        assert_eq!(last.await.unwrap(), Some(Answer::Refused(Refusal::UnknownDestination)));
    }
}
