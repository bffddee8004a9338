//! The key that the movers of a group share. It is looked for once; where it is missing, one narrow watch waits for the secret of that name and
//! wakes the group when it comes. Only that it is there is learnt, never what it says.

use crate::world::key_secret;
use futures::stream::FuturesUnordered;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, WatchEvent, WatchParams};
use lifeboat_engine::{EffectError, ObjectKey};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What is known about the key that the movers of a group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoverKey {
    /// Nobody has looked.
    Unknown,
    /// It was not there, and it is waited for.
    Missing,
    /// It is there.
    There,
}

/// How long the server keeps a watch that has nothing to say.
const ONE_WATCH: u32 = 290;
/// How soon a watch that was refused or broke is tried again; the key is looked for then, too.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// What is known about keys; clones see the same.
#[derive(Clone)]
pub struct Keys {
    client: kube::Client,
    known: Arc<Mutex<BTreeMap<ObjectKey, MoverKey>>>,
    missing: mpsc::UnboundedSender<ObjectKey>,
}

/// Waits for keys that are missing.
pub struct KeyWatch {
    keys: Keys,
    missing: mpsc::UnboundedReceiver<ObjectKey>,
}

impl Keys {
    /// Nothing is known yet.
    pub fn new(client: kube::Client) -> (Self, KeyWatch) {
        let (missing, asked) = mpsc::unbounded_channel();
        let keys = Self { client, known: Arc::default(), missing };
        (keys.clone(), KeyWatch { keys, missing: asked })
    }

    /// What is known about the key of a group.
    pub fn of(&self, group: &ObjectKey) -> MoverKey {
        self.known.lock().get(group).copied().unwrap_or(MoverKey::Unknown)
    }

    /// The group is gone.
    pub fn forget(&self, group: &ObjectKey) {
        self.known.lock().remove(group);
    }

    /// Looks for the key of a group; one that is missing is waited for from now on.
    pub(crate) async fn find(&self, group: &ObjectKey) -> Result<(), EffectError> {
        let there = self.look(group).await.map_err(|error| {
            EffectError::api(format!("looking for the secret {}", key_secret(&group.name)), error)
        })?;
        let known = if there { MoverKey::There } else { MoverKey::Missing };
        self.known.lock().insert(group.clone(), known);
        if !there {
            // Nobody listens only where the protector is being taken down.
            let _ = self.missing.send(group.clone());
        }
        Ok(())
    }

    async fn look(&self, group: &ObjectKey) -> Result<bool, kube::Error> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &group.namespace);
        Ok(secrets.get_metadata_opt(&key_secret(&group.name)).await?.is_some())
    }

    /// Waits for one key: through a watch, and by a look where watching is not allowed.
    async fn comes(&self, group: ObjectKey) -> ObjectKey {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &group.namespace);
        let named = format!("metadata.name={}", key_secret(&group.name));
        let params = WatchParams::default().fields(&named).timeout(ONE_WATCH);
        while self.of(&group) == MoverKey::Missing {
            // Version 0 begins with what is there already, so nothing falls between the look and the watch.
            let came = async {
                let mut events = secrets.watch_metadata(&params, "0").await?.boxed();
                while let Some(event) = events.try_next().await? {
                    match event {
                        WatchEvent::Added(_) | WatchEvent::Modified(_) => return Ok(true),
                        WatchEvent::Error(error) => return Err(kube::Error::Api(error)),
                        WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                    }
                }
                Ok(false)
            };
            match came.await {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(group = %group, %error, "the movers' key cannot be watched for");
                    tokio::time::sleep(TRY_AGAIN).await;
                    if self.look(&group).await.unwrap_or(false) {
                        break;
                    }
                }
            }
        }
        group
    }
}

impl KeyWatch {
    /// Waits for all keys that are missing, and tells of each that comes.
    pub async fn run(mut self, came: impl Fn(ObjectKey)) {
        let mut waited: BTreeSet<ObjectKey> = BTreeSet::new();
        let mut watches = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(group) = self.missing.recv() => {
                    if waited.insert(group.clone()) {
                        let keys = self.keys.clone();
                        watches.push(async move { keys.comes(group).await });
                    }
                }
                Some(group) = watches.next() => {
                    waited.remove(&group);
                    let mut known = self.keys.known.lock();
                    // A group that is gone meanwhile is not remembered again.
                    if let Some(state) = known.get_mut(&group) {
                        *state = MoverKey::There;
                    }
                    drop(known);
                    came(group);
                }
                else => return,
            }
        }
    }
}
