//! How fast an event reaches many watchers: from the moment a write is sent until each watcher has read the event.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use crate::client::Access;
use crate::creates::config_map;

/// Streams that share a connection; below every server's limit.
const STREAMS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens `watchers` watches on ConfigMaps, makes `events` writes one after the other, each when all watchers have seen
/// the one before, and gives the time to every delivery.
///
/// # Errors
/// When a watch ends or an event does not arrive in a minute.
pub async fn run(access: &Access, watchers: usize, events: usize) -> Result<Vec<Duration>> {
    let (arrived, mut arrivals) = mpsc::unbounded_channel::<Instant>();
    let mut connection = access.connect().await?;
    let mut watching = Vec::new();
    for number in 0..watchers {
        if number % STREAMS == 0 {
            connection = access.connect().await?;
        }
        // Streams hold their connection open: the sender must outlive them.
        let mut sender = connection.clone();
        // A label of its own keeps other objects of the server out.
        let path =
            "/api/v1/namespaces/default/configmaps?watch=true&labelSelector=app%3Dwatched&resourceVersion=0";
        let answer = sender.send(Method::GET, path, Bytes::new()).await?;
        if answer.status() != StatusCode::OK {
            bail!("a watch answered {}", answer.status());
        }
        let arrived = arrived.clone();
        watching.push(tokio::spawn(async move {
            let _connection = sender;
            let mut body = answer.into_body();
            while let Some(Ok(frame)) = body.frame().await {
                // Every event is one line.
                let lines =
                    frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
                let now = Instant::now();
                for _ in 0..lines {
                    if arrived.send(now).is_err() {
                        return;
                    }
                }
            }
        }));
    }
    let mut writer = access.connect().await?;
    let mut times = Vec::with_capacity(watchers * events);
    for event in 0..events {
        let name = format!("watched-{event}");
        let text = String::from_utf8(config_map(&name, 100).to_vec())?.replace(r#""bench""#, r#""watched""#);
        let sent = Instant::now();
        let path = "/api/v1/namespaces/default/configmaps";
        writer.call(Method::POST, path, text.into(), StatusCode::CREATED).await?;
        for _ in 0..watchers {
            match tokio::time::timeout(PATIENCE, arrivals.recv()).await {
                Ok(Some(arrival)) => times.push(arrival.duration_since(sent)),
                _ => bail!("event {event} did not reach every watcher"),
            }
        }
    }
    watching.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(times)
}
