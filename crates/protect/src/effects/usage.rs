//! Who uses a claim, as the server itself says: asked once for all the claims that a turn demotes or deletes, so that a group of many claims does
//! not read every pod of its namespace once for each of them.

use super::stale;
use crate::triggers::{is_using, uses};
use crate::view::{Groups, claims_of, is_mover};
use crate::words::{ClaimWords as _, Words as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, ListParams};
use lifeboat_engine::{Class, EffectError, ObjectKey};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// How long an answer counts within a turn: what is done later than that asks again.
const COUNTS_FOR: SignedDuration = SignedDuration::from_secs(2);
/// How many objects are asked for at a time.
const PAGE: u32 = 500;

/// What the server said about a namespace.
struct Usage {
    asked: Timestamp,
    claims: BTreeMap<String, PersistentVolumeClaim>,
    /// Pods that have not ended, by the claims that they mount.
    pods: BTreeMap<ObjectKey, Vec<Arc<Pod>>>,
    /// Nodes by the volumes that are attached to them.
    nodes: BTreeMap<String, String>,
}

/// What the server said, for each group and only for the turn that is under way.
#[derive(Default)]
pub(crate) struct Usages(Mutex<BTreeMap<ObjectKey, Arc<OnceCell<Usage>>>>);

impl Usages {
    /// Another turn begins, which must not act on what was true for an earlier one.
    pub(crate) fn forget(&self, group: &ObjectKey) {
        self.0.lock().remove(group);
    }

    fn of(&self, group: &ObjectKey, now: Timestamp) -> Arc<OnceCell<Usage>> {
        let mut all = self.0.lock();
        let cell = all.entry(group.clone()).or_default();
        if cell.get().is_some_and(|usage| now.duration_since(usage.asked) >= COUNTS_FOR) {
            *cell = Arc::default();
        }
        cell.clone()
    }
}

/// Takes every object of a list, page by page.
async fn each<K>(objects: &Api<K>, mut take: impl FnMut(K)) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = objects.list(&params).await?;
        page.items.into_iter().for_each(&mut take);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

impl Usage {
    /// Asks for claims first: a pod without a node does not use a claim that is being deleted, which is true only of pods that are seen later.
    async fn ask(client: &kube::Client, namespace: &str, asked: Timestamp) -> Result<Self, kube::Error> {
        let (claims, pods, nodes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut usage = Self { asked, claims, pods, nodes };
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), namespace);
        each(&claims, |claim| drop(usage.claims.insert(claim.name().to_owned(), claim))).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        each(&pods, |pod| {
            let pod = Arc::new(pod);
            for claim in claims_of(&pod).into_iter().filter(|_| is_using(&pod)) {
                usage.pods.entry(claim).or_default().push(pod.clone());
            }
        })
        .await?;
        let attachments: Api<VolumeAttachment> = Api::all(client.clone());
        each(&attachments, |one| {
            if let Some(volume) = one.spec.source.persistent_volume_name {
                usage.nodes.insert(volume, one.spec.node_name);
            }
        })
        .await?;
        Ok(usage)
    }

    /// Who uses a claim. A mover's pod does not, and its volume is attached for it.
    fn user(&self, key: &ObjectKey, claim: &PersistentVolumeClaim) -> Option<String> {
        let using = self.pods.get(key).into_iter().flatten().filter(|pod| uses(pod, claim));
        let (movers, users): (Vec<_>, Vec<_>) = using.partition(|pod| is_mover(pod));
        let pod = users.first().map(|pod| format!("pod {} does", pod.name()));
        let node = claim.volume_name().and_then(|volume| self.nodes.get(volume));
        let node = node.filter(|_| movers.is_empty());
        pod.or(node.map(|node| format!("its volume is attached to node {node}")))
    }
}

impl Groups {
    /// Looks at the server itself whether anybody uses a claim; what cannot be read counts as use.
    pub(super) async fn still_unused(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        let tried = || format!("making sure that nobody uses the claim {name}");
        let key = ObjectKey::new(group.namespace.clone(), name);
        let now = self.clock.steady();
        let cell = self.usages.of(group, now);
        let asked = cell.get_or_try_init(|| Usage::ask(&self.client, &group.namespace, now)).await;
        let usage = asked.map_err(|error| EffectError::api(tried(), error))?;
        let Some(claim) = usage.claims.get(name) else {
            // The cache learns of it too, or the next turn would decide the same.
            self.watched.claims.read(&key).await?;
            return Err(stale(format!("the claim {key} is gone")));
        };
        match usage.user(&key, claim) {
            Some(user) => Err(EffectError::new(Class::Transient, format!("{}: {user}", tried()))),
            None => Ok(()),
        }
    }
}
