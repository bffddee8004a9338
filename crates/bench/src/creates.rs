//! Durable creates: many clients at once create ConfigMaps as fast as the server acknowledges them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, StatusCode};

use crate::client::Access;

/// Path that objects are created at.
const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// How hard to push.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Connections, as from as many client programs.
    pub connections: usize,
    /// Requests under way on each.
    pub streams: usize,
    /// Bytes of data in each object.
    pub payload: usize,
}

/// What a load achieved.
#[derive(Debug)]
pub struct Achieved {
    /// Acknowledged creates.
    pub count: u64,
    /// How long it took.
    pub time: Duration,
    /// Time from request to acknowledgement of each.
    pub latencies: Vec<Duration>,
}

impl Achieved {
    /// Creates in a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }
}

/// Creates `count` objects named after `series`, which must be new to the server.
///
/// # Errors
/// When a create is not acknowledged with 201.
pub async fn run(access: &Access, load: Load, series: &str, count: u64) -> Result<Achieved> {
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..load.connections {
        let connection = access.connect().await?;
        for _ in 0..load.streams {
            let (mut connection, next) = (connection.clone(), Arc::clone(&next));
            let series = series.to_owned();
            workers.push(tokio::spawn(async move {
                let mut latencies = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return anyhow::Ok(latencies);
                    }
                    let body = config_map(&format!("{series}-{number}"), load.payload);
                    let sent = Instant::now();
                    connection.call(Method::POST, PATH, body, StatusCode::CREATED).await?;
                    latencies.push(sent.elapsed());
                }
            }));
        }
    }
    let outcomes = try_join_all(workers).await?;
    let time = begin.elapsed();
    let mut latencies = Vec::new();
    for outcome in outcomes {
        latencies.extend(outcome?);
    }
    Ok(Achieved { count: latencies.len() as u64, time, latencies })
}

/// A ConfigMap with a label and `payload` bytes of data.
pub fn config_map(name: &str, payload: usize) -> Bytes {
    let data = "x".repeat(payload);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench"}}}},"data":{{"payload":"{data}"}}}}"#
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json() {
        let object: serde_json::Value = serde_json::from_slice(&config_map("one", 3)).unwrap();
        assert_eq!(object["metadata"]["name"], "one");
        assert_eq!(object["data"]["payload"], "xxx");
    }

    #[test]
    fn a_rate_is_per_second() {
        let achieved = Achieved { count: 10, time: Duration::from_millis(500), latencies: Vec::new() };
        assert!((achieved.rate() - 20.0).abs() < 1e-9);
    }
}
