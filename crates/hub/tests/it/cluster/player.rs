//! Plays a managed cluster for the controllers of DRCluster and DRPolicy: an agent that carries works and answers views, an operator that makes a survey,
//! and a storage that fences and enters maintenance. What it holds is not on the hub.

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::finalizers;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::Clock;
use lifeboat_hub::words::Words as _;
use lifeboat_hub::works;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Kind, namespace and name.
pub type Place = (String, String, String);

/// What a played cluster is like.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// It does nothing.
    pub dead: bool,
    /// Its objects.
    pub objects: BTreeMap<Place, Value>,
    /// What its survey finds.
    pub survey: Value,
    /// What its storage answers to a fence; nothing where it does not answer.
    pub fences: Option<String>,
    /// Whether its storage enters maintenance when asked.
    pub maintains: bool,
}

#[derive(Clone)]
pub struct Player {
    pub name: String,
    client: kube::Client,
    clock: Clock,
    pub state: Arc<Mutex<State>>,
    patient: bool,
}

const STEP: Duration = Duration::from_millis(300);

fn place(kind: &str, namespace: &str, name: &str) -> Place {
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

fn place_of(manifest: &Value) -> Place {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    place(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

impl Player {
    pub fn new(name: &str, client: kube::Client, clock: Clock, state: Arc<Mutex<State>>) -> Self {
        Self { name: name.to_owned(), client, clock, state, patient: false }
    }

    pub fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    pub fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.state.lock().objects.get(&place(kind, namespace, name)).cloned()
    }

    pub fn put(&self, object: Value) {
        self.state.lock().objects.insert(place_of(&object), object);
    }

    pub async fn run(self) {
        let mut idle = 0;
        loop {
            let mut busy = false;
            if !self.state.lock().dead {
                busy |= self.carry().await;
                self.live();
                busy |= self.answer().await;
            }
            // In virtual time looking less often costs nobody anything, and looking costs the test.
            idle = if busy || !self.patient { 0 } else { (idle + 1).min(4) };
            tokio::time::sleep(STEP * (1 << idle)).await;
        }
    }

    /// The same, looking less often while nothing happens.
    pub fn patient(mut self) -> Self {
        self.patient = true;
        self
    }

    /// Carries works; says whether there was anything to do.
    async fn carry(&self) -> bool {
        let api: Api<ManifestWork> = Api::namespaced(self.client.clone(), &self.name);
        let Ok(all) = api.list(&ListParams::default()).await else { return true };
        let mut busy = false;
        for work in all.items {
            let held = work.has_finalizer(finalizers::MANIFEST_WORK);
            if work.is_going() || !held {
                let mut names = work.metadata.finalizers.clone().unwrap_or_default();
                names.retain(|name| name != finalizers::MANIFEST_WORK);
                if work.is_going() {
                    let kept = |kind: &str| kind == "Namespace";
                    let gone = works::manifests(&work).map(place_of).filter(|place| !kept(&place.0));
                    self.with(|state| gone.for_each(|place| drop(state.objects.remove(&place))));
                } else {
                    names.push(finalizers::MANIFEST_WORK.to_owned());
                }
                let mut metadata = work.guard();
                metadata["finalizers"] = json!(names);
                let patch = Patch::Merge(json!({ "metadata": metadata }));
                busy = true;
                let _ = api.patch(work.name(), &PatchParams::default(), &patch).await;
                continue;
            }
            works::manifests(&work).for_each(|manifest| self.apply(manifest));
            if !works::is_applied(&work) {
                let said = json!([{
                    "type": "Applied", "status": "True", "reason": "AppliedManifestWorkComplete", "message": "",
                    "observedGeneration": work.metadata.generation, "lastTransitionTime": "2030-01-01T00:00:00Z",
                }]);
                let patch = Patch::Merge(json!({ "status": { "conditions": said } }));
                busy = true;
                let _ = api.patch_status(work.name(), &PatchParams::default(), &patch).await;
            }
        }
        busy
    }

    fn apply(&self, manifest: &Value) {
        let mut state = self.state.lock();
        let known = state.objects.entry(place_of(manifest)).or_insert_with(|| {
            let mut made = manifest.clone();
            made["metadata"]["generation"] = json!(1);
            made
        });
        if known.get("spec") != manifest.get("spec") {
            known["spec"] = manifest["spec"].clone();
            let generation = known["metadata"]["generation"].as_i64().unwrap_or(0);
            known["metadata"]["generation"] = json!(generation + 1);
        }
        if let Some(data) = manifest.get("data") {
            known["data"] = data.clone();
        }
    }

    /// The operator and the storage of the cluster.
    fn live(&self) {
        let mut state = self.state.lock();
        let State { survey, fences, maintains, .. } = state.clone();
        for ((kind, ..), object) in &mut state.objects {
            let generation = object["metadata"]["generation"].clone();
            let said = |type_: &str| {
                json!([{
                    "type": type_, "status": "True", "reason": "Succeeded", "message": "",
                    "observedGeneration": generation, "lastTransitionTime": "2030-01-01T00:00:00Z",
                }])
            };
            match kind.as_str() {
                "DRClusterConfig" => {
                    object["status"] = survey.clone();
                    object["status"]["conditions"] = said("Processed");
                }
                "NetworkFence" => match &fences {
                    Some(result) => {
                        object["status"] = json!({ "result": result, "message": "says the storage" });
                        object["status"]["conditions"] = said("Fenced");
                    }
                    None => drop(object.as_object_mut().unwrap().remove("status")),
                },
                "MaintenanceMode" if maintains => {
                    object["status"] = json!({ "state": "Completed", "observedGeneration": generation });
                    object["status"]["conditions"] = said("FailoverActivated");
                }
                _ => {}
            }
        }
    }

    /// Answers views; says whether there was anything new.
    async fn answer(&self) -> bool {
        let api: Api<ManagedClusterView> = Api::namespaced(self.client.clone(), &self.name);
        let Ok(all) = api.list(&ListParams::default()).await else { return true };
        let mut busy = false;
        for view in all.items {
            let scope = view.spec.scope.clone().unwrap_or_default();
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let name = text(&scope.name);
            let result = self.object(&text(&scope.kind), &text(&scope.namespace), &name);
            let shown = view.status.clone().unwrap_or_default();
            if shown.result.as_ref().map(|one| &one.0) == result.as_ref() && !shown.conditions.is_empty() {
                continue;
            }
            let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.clock.now());
            let said = |type_: &str, holds: bool, reason: &str, message: String| {
                json!({
                    "type": type_, "status": if holds { "True" } else { "False" }, "reason": reason, "message": message,
                    "lastTransitionTime": now,
                })
            };
            let processing = match &result {
                Some(_) => said(
                    "Processing",
                    true,
                    "GetResourceProcessing",
                    "Watching resources successfully".into(),
                ),
                None => {
                    said("Processing", false, "GetResourceFailed", format!("failed: \"{name}\" not found"))
                }
            };
            busy = true;
            let seen = said("Observed", true, "Seen", String::new());
            let mut told = view.clone();
            told.status =
                serde_json::from_value(json!({ "conditions": [processing, seen], "result": result }))
                    .unwrap();
            match api.replace_status(view.name(), &PostParams::default(), &told).await {
                Err(kube::Error::Api(refused)) if refused.code == 422 => panic!("{refused:?}"),
                // Changed or gone meanwhile: the next round sees it.
                _ => {}
            }
        }
        busy
    }
}
