//! The words of two mirrors: who does not hold the key learns nothing.

use lifeboat_mirror::talk::{Answer, Ask, MAGIC, Request, Role, Shared, State, TalkError, answer, ask};
use lifeboat_testbed::Task;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

fn key(digit: char) -> Shared {
    Shared::parse(&format!("mirror:{}", digit.to_string().repeat(32))).unwrap()
}

fn question() -> Request {
    Request::Ask(Ask { theirs: "u9".into(), yours: None, from: "10.0.0.1:1".parse().unwrap() })
}

/// Answers every guest that holds one of two keys, with the name of the class that has it.
async fn open() -> (SocketAddr, Task) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let keys = [("one".to_owned(), key('1')), ("two".to_owned(), key('2'))];
    let serving = async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut first = [0; 8];
            socket.read_exact(&mut first).await.unwrap();
            assert_eq!(first, MAGIC);
            // A stranger is none of the story's failures.
            let _ = answer(&mut socket, &keys, |classes, _, request| async move {
                assert_eq!(request, question());
                Answer::Later(classes.join(","))
            })
            .await;
        }
    };
    (address, Task::spawn(serving))
}

#[tokio::test]
async fn who_holds_a_key_is_answered_under_it_and_nobody_else() {
    let (address, _task) = open().await;
    let asked = async |key: Shared| ask(address, &key, &question(), Duration::from_secs(10)).await;
    assert_eq!(asked(key('1')).await, Ok(Answer::Later("one".into())));
    assert_eq!(asked(key('2')).await, Ok(Answer::Later("two".into())));
    assert_eq!(asked(key('3')).await, Err(TalkError::Untrusted(address)));
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_a_stranger() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let answer = ask(address, &key('1'), &question(), Duration::from_secs(10)).await;
    assert!(matches!(answer, Err(TalkError::Link(..))), "{answer:?}");
}

#[test]
fn a_key_prints_as_dots() {
    assert_eq!(format!("{:?}", key('1')), "Shared(••••)");
    let state = State { role: Role::Absent, epoch: 0, newest: None };
    assert!(!format!("{state:?}").contains("1111"));
}
