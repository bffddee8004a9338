//! A server with a few objects, and the promises that are checked after every request.

use super::ask::{Ask, DEFINITION, escape};
use http_body_util::BodyExt;
use lifeboat_apiserver::{ApiServer, Body, Config, Service, Sources, User, path};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;
use tower::ServiceExt;

/// So many frames of a watch are read.
const FRAMES: usize = 64;
/// What a watch gets to say something, in virtual time.
const PATIENCE: Duration = Duration::from_secs(90);
/// An answer may be so much larger than what is stored and sent.
const LARGEST: usize = 64 << 20;

/// A server and what is known of it.
pub struct World {
    server: ApiServer,
    service: Service,
    control: tokio::task::JoinHandle<()>,
    /// The key and revision of each object, as seen last.
    seen: BTreeMap<String, u64>,
    /// The objects that the input has changed.
    touched: BTreeSet<String>,
    revision: u64,
}

/// What the server begins with.
fn fixtures() -> &'static [(&'static str, Value)] {
    static FIXTURES: OnceLock<Vec<(&'static str, Value)>> = OnceLock::new();
    FIXTURES.get_or_init(|| {
        let pod = json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]});
        let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
        vec![
            ("/api/v1/namespaces/default/configmaps", json!({"data": {"k": "v"}})),
            ("/api/v1/namespaces/default/pods", json!({"spec": pod})),
            ("/api/v1/namespaces/default/services", json!({"spec": {"ports": [{"port": 80}]}})),
            (
                "/api/v1/namespaces/default/persistentvolumeclaims",
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            ),
            (
                "/apis/apps/v1/namespaces/default/deployments",
                json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}}),
            ),
            (
                "/apis/fuzz.example.com/v1/namespaces/default/things",
                json!({"apiVersion": "fuzz.example.com/v1", "kind": "Thing",
                    "spec": {"s": "x", "list": [{"k": "a"}], "set": ["b"], "free": {"y": 1}}}),
            ),
        ]
    })
}

impl World {
    /// A new server.
    pub async fn new() -> Self {
        static KEY: OnceLock<Vec<u8>> = OnceLock::new();
        let key =
            KEY.get_or_init(|| lifeboat_apiserver::auth::TokenKey::generate().expect("a key can be made"));
        let start = jiff::Timestamp::from_second(1_800_000_000).expect("invariant: a date");
        let config = Config {
            sources: Sources::simulated(start, 7),
            token_key: Some(key.clone()),
            ..Config::default()
        };
        let server = ApiServer::new(config).expect("invariant: a server in memory can be set up");
        server.install(&[&*DEFINITION]).expect("invariant: the definition is sound");
        let control = tokio::spawn(server.control());
        let service = server.service_as(User::admin());
        let mut world =
            Self { server, service, control, seen: BTreeMap::new(), touched: BTreeSet::new(), revision: 0 };
        for (path, object) in fixtures() {
            let mut object = object.clone();
            object["metadata"] = json!({"name": "a", "labels": {"app": "a"}});
            let ask = Ask {
                method: "POST".into(),
                target: (*path).into(),
                headers: vec![("content-type".into(), "application/json".into())],
                body: object.to_string().into_bytes(),
            };
            let code = world.serve(&ask).await;
            assert_eq!(code, Some(201), "{path}");
        }
        world.touched.clear();
        world
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.server.cluster().store.revision()
    }

    /// An object as it is stored.
    pub fn stored(&self, collection: &str, namespace: &str, name: &str) -> Option<Value> {
        self.server.cluster().find(collection, namespace, name)
    }

    /// Serves a request and checks what came of it; gives the status code.
    pub async fn serve(&mut self, ask: &Ask) -> Option<u16> {
        let request = ask.request()?;
        let before = self.revision();
        let reads = matches!(ask.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        let response = self.service.clone().oneshot(request).await;
        let response = response.unwrap_or_else(|_| panic!("no answer to\n{}", ask.to_text()));
        let after = self.revision();
        let code = response.status().as_u16();
        let of =
            response.headers().get("content-type").map_or("", |value| value.to_str().unwrap_or_default());
        let is_json = of.starts_with("application/json");
        let watching = is_json && ask.method == "GET" && ask.target.contains("watch");
        let body = read(response.into_body(), watching, ask).await;
        if std::env::var_os("SOAK_TRACE").is_some() {
            eprintln!("{}\n--> {code} {}\n", ask.to_text(), String::from_utf8_lossy(&body));
        }
        assert!((200..600).contains(&code), "status {code} for\n{}", ask.to_text());
        let told = || format!("{code} {}\nfor\n{}", String::from_utf8_lossy(&body), ask.to_text());
        assert!(code < 500 || is_meant(&body), "{}", told());
        assert!(body.len() <= LARGEST, "{} bytes for\n{}", body.len(), ask.to_text());
        if is_json && !watching && ask.method != "HEAD" && code != 304 {
            let sound = serde_json::from_slice::<Value>(&body);
            assert!(sound.is_ok(), "no JSON: {}", told());
            let status = sound.unwrap_or_default();
            assert!(code < 400 || status["code"] == code, "no Status: {}", told());
        }
        assert!(after >= before, "the revision went from {before} to {after}: {}", told());
        if after != before {
            let whole = ask.method == "DELETE" && is_collection(&ask.target);
            // A collection is deleted one by one: what went before the failure is gone.
            assert!(code < 400 || whole, "a refused request changed something: {}", told());
            assert!(!is_dry(&ask.target), "a dry run changed something: {}", told());
            assert!(!reads, "a read changed something: {}", told());
        }
        self.check_changed(&told());
        // Garbage collection and its kin have their turn between requests.
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!self.control.is_finished(), "the control plane has died: {}", told());
        self.check_changed(&told());
        Some(code)
    }

    /// Every object that is new since the last look is sound and never older than it was.
    fn check_changed(&mut self, told: &str) {
        let store = &self.server.cluster().store;
        let (since, now) = (self.revision, store.revision());
        if since == now {
            return;
        }
        for collection in store.collections() {
            let page = store.page(&collection, None, None, None, |entry| entry.revision > since, usize::MAX);
            for entry in page.map(|page| page.entries).unwrap_or_default() {
                let key = &entry.key;
                let place = format!("{}/{}/{}", key.collection, key.namespace, key.name);
                let object = lifeboat_schema::json::decode_strict(&entry.json)
                    .unwrap_or_else(|why| panic!("{place} can not be read: {why}; after {told}"));
                assert_eq!(object.duplicates, Vec::<String>::new(), "{place} after {told}");
                let meta = &object.value["metadata"];
                assert_eq!(meta["name"], *key.name, "{place} after {told}");
                assert_eq!(
                    meta["namespace"].as_str().unwrap_or_default(),
                    &*key.namespace,
                    "{place} after {told}"
                );
                assert_eq!(meta["resourceVersion"], entry.revision.to_string(), "{place} after {told}");
                assert!(meta["uid"].as_str().is_some_and(|uid| !uid.is_empty()), "{place} after {told}");
                assert!(
                    object.value["kind"].is_string() && object.value["apiVersion"].is_string(),
                    "{place} after {told}"
                );
                self.touched.insert(place.clone());
                let last = self.seen.insert(place.clone(), entry.revision);
                assert!(last.is_none_or(|last| last < entry.revision), "{place} went back; after {told}");
            }
        }
        self.revision = now;
    }

    /// What was changed can be listed in every form, and given back as it was.
    pub async fn end(&mut self) {
        for place in std::mem::take(&mut self.touched) {
            for ask in self.last_looks(&place).into_iter().flatten().filter(|ask| ask.method == "GET") {
                self.serve(&ask).await;
            }
            if !self.give_back(&place).await {
                assert!(self.give_back(&place).await, "given back twice and still no peace: {place}");
            }
        }
        self.control.abort();
    }

    /// Writes an object as it is stored; whether that left it alone.
    async fn give_back(&mut self, place: &str) -> bool {
        let Some([_, _, ask]) = self.last_looks(place) else { return true };
        let before = self.revision();
        let code = self.serve(&ask).await;
        let of_one_version = of_one_version(&ask.body);
        let taken = matches!(code, Some(200 | 404)) || !of_one_version;
        assert!(taken, "{code:?} for what was stored\n{}", ask.to_text());
        before == self.revision() || !of_one_version
    }

    fn last_looks(&self, place: &str) -> Option<[Ask; 3]> {
        let mut parts = place.splitn(3, '/');
        let (collection, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let object = self.stored(collection, namespace, name)?;
        let (plural, group) = collection.split_once('.').unwrap_or((collection, ""));
        let version = object["apiVersion"].as_str()?.rsplit('/').next()?.to_owned();
        let root = if group.is_empty() { "/api".into() } else { format!("/apis/{group}") };
        let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let list = format!("{root}/{version}{within}/{plural}");
        let name = escape(name);
        let ask = |method: &str, target: String, header: (&str, &str), body: String| Ask {
            method: method.into(),
            target,
            headers: vec![(header.0.into(), header.1.into())],
            body: body.into_bytes(),
        };
        let table = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let metadata = ("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        let put =
            ask("PUT", format!("{list}/{name}"), ("content-type", "application/json"), object.to_string());
        Some([
            ask("GET", list.clone(), table, String::new()),
            ask("GET", format!("{list}?limit=1"), metadata, String::new()),
            put,
        ])
    }
}

/// The whole body, or the first events of a watch.
async fn read(mut body: Body, watching: bool, ask: &Ask) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..if watching { FRAMES } else { usize::MAX } {
        let Ok(frame) = tokio::time::timeout(PATIENCE, body.frame()).await else { break };
        let Some(frame) = frame else { break };
        let frame = frame.unwrap_or_else(|_| panic!("the answer breaks off:\n{}", ask.to_text()));
        if let Ok(data) = frame.into_data() {
            if watching {
                for event in serde_json::Deserializer::from_slice(&data).into_iter::<Value>() {
                    assert!(event.is_ok(), "no JSON in a watch: {}", String::from_utf8_lossy(&data));
                }
            }
            all.extend_from_slice(&data);
        }
    }
    all
}

/// Whether all who wrote an object did so in the version it has: another one may have other rules.
fn of_one_version(body: &[u8]) -> bool {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    let entries = object["metadata"]["managedFields"].as_array();
    entries.is_some_and(|entries| entries.iter().all(|entry| entry["apiVersion"] == object["apiVersion"]))
}

fn is_collection(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    matches!(path::parse(path), path::Target::Resource(found) if found.name.is_empty())
}

fn is_dry(target: &str) -> bool {
    target.split_once('?').is_some_and(|(_, query)| query.split('&').any(|pair| pair == "dryRun=All"))
}

/// The failures of a server that are meant: a version from the future, and what Kubernetes itself answers with 500.
fn is_meant(body: &[u8]) -> bool {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default();
    let meant = [
        "Too large resource version",
        "failed to create typed patch object",
        "failed to decode managed fields",
        "resourceVersion should not be set on objects to be created",
    ];
    meant.iter().any(|words| message.starts_with(words))
}
