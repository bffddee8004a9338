//! Waits for what the fleet does, by watching, and shows meanwhile what it is at.

use super::narrate::Narrator;
use anyhow::bail;
use futures::StreamExt as _;
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::Instant;

/// Waits until an object is as wanted; `look` says what it is instead.
pub async fn until<K, T>(
    narrator: &mut Narrator,
    api: &Api<K>,
    name: &str,
    within: Duration,
    look: impl Fn(&K) -> Result<T, String>,
) -> anyhow::Result<T>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let began = Instant::now();
    let mut said = format!("{name} is not there");
    let mut seen = std::pin::pin!(watch_object(api.clone(), name));
    loop {
        let left = within.saturating_sub(began.elapsed());
        let Ok(event) = tokio::time::timeout(left, seen.next()).await else {
            bail!("it did not come within {} s: {said}", within.as_secs());
        };
        said = match event {
            Some(Ok(Some(object))) => match look(&object) {
                Ok(found) => return Ok(found),
                Err(why) => why,
            },
            Some(Ok(None)) => format!("{name} is not there"),
            // The watch goes on by itself.
            Some(Err(error)) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                error.to_string()
            }
            None => bail!("the watch has ended: {said}"),
        };
        narrator.now(&said);
    }
}

/// Waits for something that no API server tells of.
pub async fn looking<T>(
    narrator: &mut Narrator,
    within: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(why) if began.elapsed() >= within => {
                bail!("it did not come within {} s: {why}", within.as_secs())
            }
            Err(why) => narrator.now(&why),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
