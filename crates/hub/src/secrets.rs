//! Keys that the clusters of an application share: made once on the hub, and carried to both clusters before any replication is set up.
//!
//! A key is text that never leaves the objects made for it: its type prints as dots, and errors of requests that carry it name the request and the
//! answer's code, never the answer's words. How the stores' keys reach a cluster is in [`crate::cluster`].

use crate::words::{Words as _, pairs};
use crate::works;
use base64::Engine as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ObjectMeta, PostParams};
use lifeboat_api::ramen::{DRPlacementControl, GROUP};
use lifeboat_api::work::ManifestWork;
use lifeboat_api::{annotations, labels};
use lifeboat_engine::{Cache, Class, EffectError, ObjectKey, Objects};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

/// Fills a buffer with chance; comes in from outside.
pub type Chance = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// The key of a secret under which the shared key stands.
pub const PSK_KEY: &str = "psk.txt";
/// The identity that the shared key is for.
const IDENTITY: &str = "volsyncramen";
/// Bytes of chance in a shared key.
const BYTES: usize = 64;

/// A shared key; it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Psk(String);

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(••••)")
    }
}

impl Psk {
    /// A new one.
    pub fn generate(chance: &Chance) -> Self {
        let mut bytes = [0u8; BYTES];
        chance(&mut bytes);
        let hex = bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self(format!("{IDENTITY}:{hex}"))
    }

    /// The one in a secret.
    pub fn of(secret: &Secret) -> Option<Self> {
        let bytes = secret.data.as_ref()?.get(PSK_KEY)?.0.clone();
        String::from_utf8(bytes).ok().filter(|text| !text.trim().is_empty()).map(Self)
    }

    fn data(&self) -> BTreeMap<String, k8s_openapi::ByteString> {
        [(PSK_KEY.to_owned(), k8s_openapi::ByteString(self.0.clone().into_bytes()))].into()
    }
}

/// Name of the secret on the hub, in the namespace of the DRPlacementControl.
pub fn hub_name(drpc: &str) -> String {
    format!("{drpc}-vs-secret-hub")
}

/// Name of the secret on the clusters, in the namespace of the group.
pub fn cluster_name(drpc: &str) -> String {
    format!("{drpc}-vs-secret")
}

/// Name of the work that carries the secret to a cluster.
pub fn work_name(drpc: &str, namespace: &str) -> String {
    works::name(drpc, namespace, works::types::MOVER_SECRET)
}

/// How far a work has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Carriage {
    /// There is none.
    Missing,
    /// It is on the hub, and the cluster has not said that it was applied as it is now.
    Sent,
    /// The cluster says that it cannot be applied.
    Refused(String),
    /// The cluster has applied it as it is now.
    Applied,
    /// It is being taken back.
    Going,
}

/// How far a work has come.
pub fn carriage(work: Option<&ManifestWork>) -> Carriage {
    match work {
        None => Carriage::Missing,
        Some(work) if work.is_going() => Carriage::Going,
        Some(work) if works::is_applied(work) => Carriage::Applied,
        Some(work) => works::refusal(work).map_or(Carriage::Sent, Carriage::Refused),
    }
}

/// Identity and version of an object, to tell whether the one that was carried is the one that is there.
pub fn version_of(meta: &ObjectMeta) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}@{}", text(&meta.uid), text(&meta.resource_version))
}

/// How far the key of an application is on its way to a cluster.
pub fn carried(works: &Cache<ManifestWork>, drpc: &str, namespace: &str, cluster: &str) -> Carriage {
    let work = works.get(&ObjectKey::new(cluster, work_name(drpc, namespace)));
    carriage(work.as_deref())
}

/// What it takes to make and carry keys.
#[derive(Clone)]
pub struct Courier {
    /// The hub.
    pub client: kube::Client,
    /// The works on it.
    pub works: Objects<ManifestWork>,
    /// Where new keys come from.
    pub chance: Chance,
}

/// Sees to it that an application has a shared key on the hub and that a work carries it to each of these clusters. Done twice, it does nothing
/// the second time; [`carried`] says when it has arrived.
///
/// # Errors
/// The hub refuses, or the secret is there without a key in it.
pub async fn psk(
    courier: &Courier,
    drpc: &DRPlacementControl,
    namespace: &str,
    clusters: &[String],
) -> Result<(), EffectError> {
    let (secret, key) = on_hub(courier, drpc).await?;
    for cluster in clusters {
        let work = work(drpc, namespace, cluster, &secret, &key);
        let sent = works::put(&courier.works, &work).await;
        sent.map_err(|error| {
            hidden(error, &format!("sending the key of {} to {cluster}", ObjectKey::of(drpc)))
        })?;
    }
    Ok(())
}

/// The same failure without what the server said, which may quote what it was sent.
pub(crate) fn hidden(error: EffectError, tried: &str) -> EffectError {
    EffectError::new(error.class, format!("{tried} failed ({:?}); the hub's own log says more", error.class))
}

async fn on_hub(courier: &Courier, drpc: &DRPlacementControl) -> Result<(Secret, Psk), EffectError> {
    let key = ObjectKey::of(drpc);
    let name = hub_name(&key.name);
    let secrets: Api<Secret> = Api::namespaced(courier.client.clone(), &key.namespace);
    let tried = |what: &str| format!("{what} the secret {}/{name}", key.namespace);
    let found = secrets.get_opt(&name).await.map_err(|error| EffectError::api(tried("reading"), error))?;
    let secret = match found {
        Some(secret) => secret,
        None => {
            let made = hub_secret(drpc, &Psk::generate(&courier.chance));
            let answer = secrets.create(&PostParams::default(), &made).await;
            // Somebody was faster: look again and take theirs.
            answer.map_err(|error| hidden(EffectError::api(String::new(), error), &tried("creating")))?
        }
    };
    match Psk::of(&secret) {
        Some(psk) => Ok((secret, psk)),
        None => Err(EffectError::new(
            Class::BadInput,
            format!("the secret {}/{name} has no {PSK_KEY}: delete it, and a new one is made", key.namespace),
        )),
    }
}

fn hub_secret(drpc: &DRPlacementControl, key: &Psk) -> Secret {
    let meta = &drpc.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: format!("{GROUP}/v1alpha1"),
        kind: "DRPlacementControl".to_owned(),
        name: name.clone(),
        uid: meta.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let marks = pairs([
        (labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE),
        (labels::OCM_BACKUP, labels::OCM_BACKUP_VALUE),
    ]);
    Secret {
        metadata: ObjectMeta {
            name: Some(hub_name(&name)),
            namespace: meta.namespace.clone(),
            labels: Some(marks),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(key.data()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

fn work(
    drpc: &DRPlacementControl,
    namespace: &str,
    cluster: &str,
    secret: &Secret,
    key: &Psk,
) -> ManifestWork {
    let of = ObjectKey::of(drpc);
    let text = base64::engine::general_purpose::STANDARD.encode(&key.0);
    let manifest = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": cluster_name(&of.name), "namespace": namespace,
            "labels": { labels::CREATED_BY_RAMEN: labels::CREATED_BY_RAMEN_VALUE },
        },
        "data": { PSK_KEY: text },
    });
    let notes = pairs([
        (annotations::DRPC_NAME, &of.name),
        (annotations::DRPC_NAMESPACE, &of.namespace),
        (annotations::CARRIED_VERSIONS, &version_of(&secret.metadata)),
    ]);
    works::work(cluster, work_name(&of.name, namespace), notes, [manifest])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_as_peers_expect_it_and_prints_as_dots() {
        let chance: Chance = Arc::new(|bytes| bytes.fill(0xab));
        let key = Psk::generate(&chance);
        assert_eq!(key.0, format!("volsyncramen:{}", "ab".repeat(64)));
        assert_eq!(format!("{key:?}"), "Psk(••••)");
        let secret = hub_secret(&DRPlacementControl::default(), &key);
        assert_eq!(Psk::of(&secret), Some(key));
        assert_eq!(Psk::of(&Secret::default()), None);
    }

    #[test]
    fn names_are_those_of_peers() {
        assert_eq!(hub_name("web"), "web-vs-secret-hub");
        assert_eq!(cluster_name("web"), "web-vs-secret");
    }

    #[test]
    fn an_error_does_not_repeat_what_was_said() {
        let said = EffectError::new(Class::BadInput, "Invalid value: \"volsyncramen:abc\"");
        assert!(!hidden(said, "sending").sentence().contains("volsyncramen"));
    }
}
