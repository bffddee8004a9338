//! Binding: pairs of a free volume and a claim that fits it, who binds them, and how quickly the claims say that they are bound.

use crate::client::Access;
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
/// What a binder looks at; whoever holds these watches makes the server send what a binder makes it send.
const WATCHED: [&str; 4] =
    [VOLUMES, "/api/v1/persistentvolumeclaims", "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/pods"];
/// Requests under way while pairs are made.
const MAKING: usize = 64;
/// No bind for so long means that none will come any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pairs to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// How many.
    pub count: usize,
    /// Of how many sizes.
    pub sizes: usize,
}

impl Pairs {
    fn size(self, number: usize) -> String {
        format!("{}Gi", 1 + number % self.sizes)
    }

    fn volume(self, number: usize) -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("volume-{number}")},
            "spec": {
                "capacity": {"storage": self.size(number)}, "accessModes": ["ReadWriteOnce"], "storageClassName": "static",
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": "bench.example.io", "volumeHandle": format!("volume-{number}")},
            },
        })
    }

    fn claim(self, number: usize) -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": format!("claim-{number}"), "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "static",
                "resources": {"requests": {"storage": self.size(number)}},
            },
        })
    }

    /// Makes all volumes and claims.
    ///
    /// # Errors
    /// When the server refuses one.
    pub async fn make(self, access: &Access) -> Result<()> {
        for (path, object) in [(VOLUMES, Self::volume as fn(Self, usize) -> Value), (CLAIMS, Self::claim)] {
            let connection = access.connect().await?;
            let made = futures::stream::iter(0..self.count).map(|number| {
                let (mut connection, body) = (connection.clone(), object(self, number).to_string());
                async move {
                    connection.call(Method::POST, path, body.into(), StatusCode::CREATED).await.map(drop)
                }
            });
            made.buffer_unordered(MAKING)
                .collect::<Vec<_>>()
                .await
                .into_iter()
                .collect::<Result<Vec<()>>>()?;
        }
        Ok(())
    }
}

/// When the first and the last of the claims said that they are bound.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Claims.
    pub count: usize,
    /// From the first to the last.
    pub time: Duration,
}

impl Bound {
    /// Binds in a second.
    pub fn rate(&self) -> f64 {
        self.count.saturating_sub(1) as f64 / self.time.as_secs_f64()
    }
}

/// Watches claims become bound.
pub struct Watch {
    bound: mpsc::UnboundedReceiver<(String, Instant)>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    /// Begins to watch; what is bound already is not seen.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn begin(access: &Access) -> Result<Self> {
        let version = version_of(access, CLAIMS).await?;
        Self::from(access, &version).await
    }

    /// Begins to watch while a binder is at work, and counts how many claims are bound already.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn join(access: &Access) -> Result<(Self, usize)> {
        let answer = access.connect().await?.call(Method::GET, CLAIMS, Bytes::new(), StatusCode::OK).await?;
        let list: Value = serde_json::from_slice(&answer)?;
        let bound = |claim: &&Value| claim["status"]["phase"] == "Bound";
        let already = list["items"].as_array().context("a list without items")?.iter().filter(bound).count();
        let version = list["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
        Ok((Self::from(access, version).await?, already))
    }

    async fn from(access: &Access, version: &str) -> Result<Self> {
        let mut connection = access.connect().await?;
        let path = format!("{CLAIMS}?watch=true&resourceVersion={version}");
        let answer = connection.send(Method::GET, &path, Bytes::new()).await?;
        let (seen, bound) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let _connection = connection;
            let mut body = answer.into_body();
            let mut rest = Vec::new();
            while let Some(Ok(frame)) = body.frame().await {
                let now = Instant::now();
                rest.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line);
                    // Reading it as JSON would cost as much as a binder's own work.
                    let name = line.split(r#""name":""#).nth(1).and_then(|rest| rest.split('"').next());
                    if let Some(name) = name.filter(|_| line.contains(r#""phase":"Bound""#))
                        && seen.send((name.to_owned(), now)).is_err()
                    {
                        return;
                    }
                }
            }
        });
        Ok(Self { bound, task })
    }

    /// Waits until so many claims are bound, or until no more come though nearly all are: whoever gave a small claim a large volume has none
    /// left for a large one.
    ///
    /// # Errors
    /// When no bind is seen for a minute.
    pub async fn wait(&mut self, count: usize) -> Result<Bound> {
        let mut names = BTreeSet::new();
        let (mut first, mut last) = (None, None);
        while names.len() < count {
            let next = tokio::time::timeout(PATIENCE, self.bound.recv()).await;
            let Ok(Some((name, at))) = next else {
                if names.len() * 100 >= count * 95 {
                    break;
                }
                bail!("{} of {count} claims are bound, and no more come", names.len());
            };
            if names.insert(name) {
                first.get_or_insert(at);
                last = Some(at);
            }
        }
        let time = last.zip(first).map(|(last, first)| last.duration_since(first));
        Ok(Bound { count: names.len(), time: time.context("nothing was to be bound")? })
    }
}

async fn version_of(access: &Access, path: &str) -> Result<String> {
    let answer = access
        .connect()
        .await?
        .call(Method::GET, &format!("{path}?limit=1"), Bytes::new(), StatusCode::OK)
        .await?;
    let list: Value = serde_json::from_slice(&answer)?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned())
}

/// Reads what a binder would be sent, and throws it away.
async fn hold_watches(access: &Access) -> Result<Vec<tokio::task::JoinHandle<()>>> {
    let mut held = Vec::new();
    for path in WATCHED {
        let version = version_of(access, path).await?;
        let mut connection = access.connect().await?;
        let path = format!("{path}?watch=true&resourceVersion={version}");
        let answer = connection.send(Method::GET, &path, Bytes::new()).await?;
        held.push(tokio::spawn(async move {
            let _connection = connection;
            let mut body = answer.into_body();
            while let Some(Ok(_)) = body.frame().await {}
        }));
    }
    Ok(held)
}

/// How often the server was asked to read or write something, watches and lists aside, by whoever; `None` where it does not count.
///
/// # Errors
/// When the server does not answer.
pub async fn requests(access: &Access) -> Result<Option<f64>> {
    let mut connection = access.connect().await?;
    let answer = connection.send(Method::GET, "/metrics", Bytes::new()).await?;
    if answer.status() != StatusCode::OK {
        return Ok(None);
    }
    let page = answer.into_body().collect().await?.to_bytes();
    let page = String::from_utf8_lossy(&page);
    let about = |line: &&str| {
        ["persistentvolumes", "persistentvolumeclaims", "events"]
            .iter()
            .any(|resource| line.contains(&format!("resource=\"{resource}\"")))
            && ["GET", "POST", "PUT", "PATCH"].iter().any(|verb| line.contains(&format!("verb=\"{verb}\"")))
    };
    let counted = page.lines().filter(|line| line.starts_with("apiserver_request_total{")).filter(about);
    let counts = counted.map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(counts.sum())
}

async fn all(access: &Access, path: &str) -> Result<Vec<Value>> {
    let answer = access.connect().await?.call(Method::GET, path, Bytes::new(), StatusCode::OK).await?;
    let mut list: Value = serde_json::from_slice(&answer)?;
    let items = list["items"].take();
    serde_json::from_value(items).context("reading a list")
}

/// Sends nothing but the four writes of each binding, `at_once` bindings at a time, with no thought in between: what the server
/// itself can do. Pairs are volume-N with claim-N, for N in `numbers`.
///
/// # Errors
/// When the server refuses a write.
pub async fn bare_writes(
    access: &Access,
    numbers: std::ops::Range<usize>,
    at_once: usize,
) -> Result<Duration> {
    let watches = hold_watches(access).await?;
    let named = |items: Vec<Value>| -> std::collections::BTreeMap<String, Value> {
        items
            .into_iter()
            .map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item))
            .collect()
    };
    let (mut volumes, mut claims) = (named(all(access, VOLUMES).await?), named(all(access, CLAIMS).await?));
    let mut connections = Vec::new();
    for _ in 0..4 {
        connections.push(access.connect().await?);
    }
    let mut pairs = Vec::new();
    for number in numbers {
        let volume = volumes.remove(&format!("volume-{number}")).context("a volume is missing")?;
        let claim = claims.remove(&format!("claim-{number}")).context("a claim is missing")?;
        pairs.push((number, volume, claim));
    }
    let begin = Instant::now();
    let bound = futures::stream::iter(pairs).map(|(number, volume, claim)| {
        let connection = connections[number % connections.len()].clone();
        async move { bind(connection, volume, claim).await }
    });
    bound.buffer_unordered(at_once).collect::<Vec<_>>().await.into_iter().collect::<Result<Vec<()>>>()?;
    let time = begin.elapsed();
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(time)
}

async fn bind(mut connection: crate::client::Connection, mut volume: Value, mut claim: Value) -> Result<()> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let (at_volume, at_claim) =
        (format!("{VOLUMES}/{}", name(&volume)), format!("{CLAIMS}/{}", name(&claim)));
    volume["spec"]["claimRef"] = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": name(&claim),
        "uid": claim["metadata"]["uid"], "resourceVersion": claim["metadata"]["resourceVersion"],
    });
    volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] = json!("yes");
    let mut put = async |path: &str, object: &Value| -> Result<Value> {
        let answer = connection.call(Method::PUT, path, object.to_string().into(), StatusCode::OK).await?;
        Ok(serde_json::from_slice(&answer)?)
    };
    volume = put(&at_volume, &volume).await?;
    volume["status"]["phase"] = json!("Bound");
    put(&format!("{at_volume}/status"), &volume).await?;
    claim["spec"]["volumeName"] = json!(name(&volume));
    claim["metadata"]["annotations"] =
        json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
    claim = put(&at_claim, &claim).await?;
    claim["status"] =
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": volume["spec"]["capacity"]});
    put(&format!("{at_claim}/status"), &claim).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_repeat() {
        let pairs = Pairs { count: 100, sizes: 50 };
        assert_eq!(pairs.size(0), "1Gi");
        assert_eq!(pairs.size(49), "50Gi");
        assert_eq!(pairs.size(50), "1Gi");
        assert_eq!(
            pairs.volume(3)["spec"]["capacity"]["storage"],
            pairs.claim(3)["spec"]["resources"]["requests"]["storage"]
        );
    }

    #[test]
    fn a_rate_is_from_the_first_to_the_last() {
        let bound = Bound { count: 11, time: Duration::from_secs(2) };
        assert!((bound.rate() - 5.0).abs() < 1e-9);
    }
}
