//! The agents of nodes, played: what the central half sees of them is what they write to the server.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, Patch, PatchParams};
use lifeboat_api::finalizers::LOGICAL_VOLUME;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_node::provision::words::{bytes, volume_id};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How the nodes behave.
#[derive(Default, Clone)]
pub struct Behaviour {
    /// Do nothing: the node is dead.
    pub dead: bool,
    /// Refuse whatever is asked: gRPC code and message.
    pub refuses: Option<(i32, String)>,
    /// Make volumes without writing what is left.
    pub reports_nothing: bool,
}

/// Plays every node whose name begins with a mark.
#[derive(Clone)]
pub struct Player {
    client: kube::Client,
    mark: String,
    sizes: Arc<Mutex<BTreeMap<String, u64>>>,
    pub behaviour: Arc<Mutex<Behaviour>>,
}

impl Player {
    pub fn new(client: kube::Client, mark: &str) -> Self {
        Self { client, mark: mark.to_owned(), sizes: Arc::default(), behaviour: Arc::default() }
    }

    pub fn has(&self, node: &str, bytes: u64) {
        self.sizes.lock().insert(node.to_owned(), bytes);
    }

    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock());
    }

    pub async fn run(self) {
        let mut pause = FIRST_PAUSE;
        let mut last = String::new();
        loop {
            let behaviour = self.behaviour.lock().clone();
            let seen = if behaviour.dead { String::new() } else { self.turn(&behaviour).await };
            // Where nothing happens it looks less often: virtual hours cost real seconds.
            pause = if seen == last { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
            last = seen;
            tokio::time::sleep(pause).await;
        }
    }

    /// Looks once, and says which version it saw of everything.
    async fn turn(&self, behaviour: &Behaviour) -> String {
        let all: Api<LogicalVolume> = Api::all(self.client.clone());
        let Ok(found) = all.list(&ListParams::default()).await else { return String::new() };
        let ours: Vec<LogicalVolume> =
            found.items.into_iter().filter(|volume| volume.spec.node_name.starts_with(&self.mark)).collect();
        for volume in &ours {
            self.look_after(&all, volume, behaviour).await;
        }
        if !behaviour.reports_nothing {
            self.report(&ours).await;
        }
        ours.iter()
            .filter_map(|volume| volume.metadata.resource_version.clone())
            .collect::<Vec<_>>()
            .join(",")
    }

    async fn look_after(&self, all: &Api<LogicalVolume>, volume: &LogicalVolume, behaviour: &Behaviour) {
        let meta = &volume.metadata;
        let name = meta.name.as_deref().unwrap();
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        let ours = finalizers.iter().any(|finalizer| finalizer == LOGICAL_VOLUME);
        let patch = async |patch: Value| {
            let params = PatchParams::default();
            // A conflict is the next turn's business.
            let _ = all.patch(name, &params, &Patch::Merge(patch)).await;
        };
        let guarded = |metadata: Value| {
            let mut patch = json!({ "metadata": metadata });
            patch["metadata"]["resourceVersion"] = json!(meta.resource_version);
            patch
        };
        if meta.deletion_timestamp.is_some() {
            if ours {
                finalizers.retain(|finalizer| finalizer != LOGICAL_VOLUME);
                patch(guarded(json!({ "finalizers": finalizers }))).await;
            }
            return;
        }
        if !ours {
            finalizers.push(LOGICAL_VOLUME.to_owned());
            patch(guarded(json!({ "finalizers": finalizers }))).await;
            return;
        }
        let current = volume.status.as_ref().and_then(|status| status.current_size.clone());
        let status = match (&behaviour.refuses, volume_id(volume)) {
            (Some((code, message)), None) => json!({ "code": code, "message": message }),
            (_, None) => json!({ "volumeID": meta.uid, "currentSize": volume.spec.size, "code": 0 }),
            (None, Some(_)) if current.as_ref().map(bytes) < Some(bytes(&volume.spec.size)) => {
                json!({ "currentSize": volume.spec.size })
            }
            _ => return,
        };
        let status = Patch::Merge(json!({ "status": status }));
        let _ = all.patch_status(name, &PatchParams::default(), &status).await;
    }

    async fn report(&self, ours: &[LogicalVolume]) {
        let sizes = self.sizes.lock().clone();
        let nodes: Api<Node> = Api::all(self.client.clone());
        for (node, size) in sizes {
            let here =
                ours.iter().filter(|volume| volume.spec.node_name == node && volume_id(volume).is_some());
            let used: u64 = here.clone().map(|volume| bytes(&volume.spec.size)).sum();
            let named: Vec<&str> = here.filter_map(|volume| volume.metadata.uid.as_deref()).collect();
            let notes = json!({
                format!("capacity.topolvm.io/{}", self.mark): size.saturating_sub(used).to_string(),
                "topolvm.io/capacity-counted": named.join(","),
            });
            let patch = Patch::Merge(json!({ "metadata": { "annotations": notes } }));
            let _ = nodes.patch(&node, &PatchParams::default(), &patch).await;
        }
    }
}
