//! One request: read from text, or made of choices with what the server has in mind.

use super::world::World;
use crate::make::Source;
use crate::protobuf;
use http::{Method, Request};
use http_body_util::Full;
use lifeboat_kinds::openapi::v3_schemas;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A request before it is one: its parts may make no sense.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Where objects of a kind are, and what they look like.
struct Place {
    group: String,
    version: String,
    plural: String,
    kind: String,
    namespaced: bool,
    subresources: Vec<String>,
    schema: String,
}

static PLACES: LazyLock<Vec<Place>> = LazyLock::new(|| {
    let mut places: Vec<Place> = lifeboat_kinds::all()
        .iter()
        .map(|kind| Place {
            group: kind.group.into(),
            version: kind.version.into(),
            plural: kind.plural.into(),
            kind: kind.kind.into(),
            namespaced: kind.namespaced,
            subresources: kind.subresources.iter().map(ToString::to_string).collect(),
            schema: lifeboat_kinds::openapi::schema_name(&kind.api_version(), kind.kind).unwrap_or("").into(),
        })
        .collect();
    for version in ["v1", "v2"] {
        places.push(Place {
            group: "fuzz.example.com".into(),
            version: version.into(),
            plural: "things".into(),
            kind: "Thing".into(),
            namespaced: true,
            subresources: vec!["status".into(), "scale".into()],
            schema: String::new(),
        });
    }
    places
});

/// The schemas of a group and version; dear to make, so made once.
fn schemas(group: &str, version: &str) -> &'static Map<String, Value> {
    static KNOWN: Mutex<BTreeMap<String, &'static Map<String, Value>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known
        .entry(format!("{group}/{version}"))
        .or_insert_with(|| Box::leak(Box::new(v3_schemas(group, version))))
}

/// The definition that is installed.
pub static DEFINITION: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("definition.json")).expect("invariant: the definition is JSON")
});

impl Place {
    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn collection(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn object(&self, source: &mut Source<'_>, namespace: &str, name: &str) -> Value {
        let mut object = if self.schema.is_empty() {
            source.shaped(&DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &Map::new(), 8)
        } else if self.plural == "customresourcedefinitions" && !source.one_in(4) {
            DEFINITION.clone()
        } else {
            let schemas = schemas(&self.group, &self.version);
            source.shaped(schemas.get(&self.schema).unwrap_or(&Value::Null), schemas, 12)
        };
        if object.is_object() && !source.one_in(16) {
            object["apiVersion"] = self.api_version().into();
            object["kind"] = self.kind.as_str().into();
            if !object["metadata"].is_object() || source.one_in(2) {
                object["metadata"] = json!({});
            }
            if source.one_in(8) {
                object["metadata"]["generateName"] = source.word().into();
            } else {
                object["metadata"]["name"] = name.into();
            }
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = namespace.into();
            }
        }
        object
    }
}

impl Ask {
    /// Reads `METHOD TARGET`, headers, an empty line and the body.
    pub fn read(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let (method, target) = lines.next()?.split_once(' ')?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        Some(Self {
            method: method.into(),
            target: target.into(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).collect(),
            body: body.trim_end_matches('\n').into(),
        })
    }

    /// As text, for whoever looks into a failure.
    pub fn to_text(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        let body = String::from_utf8_lossy(&self.body);
        format!("{} {}\n{headers}\n{body}", self.method, self.target)
    }

    /// The request, if HTTP allows it at all.
    pub fn request(&self) -> Option<Request<Full<bytes::Bytes>>> {
        let mut builder = Request::builder().method(Method::from_bytes(self.method.as_bytes()).ok()?);
        builder = builder.uri(self.target.as_str());
        for (name, value) in &self.headers {
            builder = builder.header(name.as_str(), value.as_bytes());
        }
        builder.body(Full::new(self.body.clone().into())).ok()
    }

    /// A request made of choices.
    pub fn choose(source: &mut Source<'_>, world: &World) -> Self {
        if source.one_in(24) {
            return other(source);
        }
        // The last ones are our own, and worth more tries than any other.
        let at = source.below(PLACES.len() + 12).min(PLACES.len() - 1);
        let place = &PLACES[at];
        let namespace = match place.namespaced {
            true => source.pick(&["default", "default", "default", "kube-system", "nowhere", "gone"]),
            false => "",
        };
        let name = source.pick(&[
            "a",
            "a",
            "b",
            "c.fuzz.example.com",
            "things.fuzz.example.com",
            "default",
            "UPPER",
        ]);
        let verb = source.pick(&[
            "create",
            "update",
            "patch",
            "patch",
            "get",
            "list",
            "delete",
            "watch",
            "deletecollection",
        ]);
        let subresource = match source.below(4) {
            3 if !place.subresources.is_empty() => {
                place.subresources[source.below(place.subresources.len())].as_str()
            }
            _ => "",
        };
        let root = if place.group.is_empty() { "/api".into() } else { format!("/apis/{}", place.group) };
        let mut path = format!("{root}/{}", place.version);
        if !namespace.is_empty() {
            path = format!("{path}/namespaces/{namespace}");
        }
        path = format!("{path}/{}", place.plural);
        if !matches!(verb, "create" | "list" | "deletecollection") || !subresource.is_empty() {
            path = format!("{path}/{name}");
        }
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        let stored = world.stored(&place.collection(), namespace, name);
        let mut ask = Self { target: path, ..Self::default() };
        ask.fill(source, place, verb, (namespace, name), stored);
        ask.add_query(source, verb, world);
        ask.add_headers(source);
        ask
    }

    fn fill(
        &mut self,
        source: &mut Source<'_>,
        place: &Place,
        verb: &str,
        (namespace, name): (&str, &str),
        stored: Option<Value>,
    ) {
        let (method, content_type, body) = match verb {
            "create" | "update" => {
                let method = if verb == "create" { "POST" } else { "PUT" };
                let mut object = match stored {
                    Some(stored) if verb == "update" && !source.one_in(4) => stored,
                    _ => place.object(source, namespace, name),
                };
                for _ in 0..source.below(4) {
                    source.edit(&mut object);
                }
                match source.below(12) {
                    11 => (method, "application/vnd.kubernetes.protobuf", protobuf::message(source)),
                    10 => (method, "application/yaml", object.to_string().into_bytes()),
                    9 => (method, "application/yaml", source.bytes(64)),
                    8 => {
                        let mut bytes = object.to_string().into_bytes();
                        let at = source.below(bytes.len());
                        bytes[at] = source.bits() as u8;
                        (method, "application/json", bytes)
                    }
                    _ => (method, "application/json", object.to_string().into_bytes()),
                }
            }
            "patch" => {
                let stored = stored.unwrap_or_else(|| place.object(source, namespace, name));
                match source.below(6) {
                    0 => {
                        let patch = source.json_patch(&stored);
                        ("PATCH", "application/json-patch+json", patch.to_string().into_bytes())
                    }
                    1 | 2 => {
                        let mut object = place.object(source, namespace, name);
                        if source.one_in(3) {
                            source.edit(&mut object);
                        }
                        ("PATCH", "application/apply-patch+yaml", object.to_string().into_bytes())
                    }
                    kind => {
                        let mut patch =
                            if source.one_in(2) { stored } else { place.object(source, namespace, name) };
                        for _ in 0..1 + source.below(4) {
                            source.edit(&mut patch);
                        }
                        let of = match kind {
                            3 => "application/strategic-merge-patch+json",
                            _ => "application/merge-patch+json",
                        };
                        ("PATCH", of, patch.to_string().into_bytes())
                    }
                }
            }
            "delete" | "deletecollection" => {
                let body = match source.below(3) {
                    0 => Vec::new(),
                    1 => source.json(3).to_string().into_bytes(),
                    _ => json!({
                        "propagationPolicy": source.pick(&["Foreground", "Background", "Orphan", "Nonsense"]),
                        "gracePeriodSeconds": source.number(),
                        "preconditions": source.json(2),
                    })
                    .to_string()
                    .into_bytes(),
                };
                ("DELETE", "application/json", body)
            }
            _ => (if source.one_in(10) { "HEAD" } else { "GET" }, "", Vec::new()),
        };
        let of = match source.below(24) {
            23 => source.pick(&[
                "text/plain",
                "application/json;charset=x",
                ";",
                "application/merge-patch+json",
            ]),
            _ => content_type,
        };
        self.method = method.into();
        self.body = body;
        if !of.is_empty() {
            self.headers.push(("content-type".into(), of.into()));
        }
    }

    fn add_query(&mut self, source: &mut Source<'_>, verb: &str, world: &World) {
        let mut query = Vec::new();
        if verb == "watch" {
            query.push("watch=true".to_owned());
        }
        if verb == "patch" && !source.one_in(8) {
            query.push(format!("fieldManager={}", source.pick(&["one", "two", "kubectl"])));
        }
        for _ in 0..source.below(4) {
            let version =
                world.revision().saturating_sub(source.below(30) as u64).wrapping_add(source.below(2) as u64);
            query.push(match source.below(14) {
                0 => format!("resourceVersion={version}"),
                1 => "resourceVersion=0".into(),
                2 => format!("resourceVersionMatch={}", source.pick(&["Exact", "NotOlderThan", "x"])),
                3 => format!("limit={}", source.pick(&["0", "1", "2", "-1", "18446744073709551615"])),
                4 => format!(
                    "labelSelector={}",
                    escape(source.pick(&["a=b", "a in (b,c)", "!a", "a>1", "(", "a!=b,c"]))
                ),
                5 => format!(
                    "fieldSelector={}",
                    escape(source.pick(&["metadata.name=a", "spec.s=x", "status.phase!=X", "a\\"]))
                ),
                6 => "dryRun=All".into(),
                7 => format!("fieldValidation={}", source.pick(&["Strict", "Warn", "Ignore", "x"])),
                8 => "force=true".into(),
                9 => format!("timeoutSeconds={}", source.pick(&["0", "1", "18446744073709551615", "x"])),
                10 => {
                    "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan".into()
                }
                11 => format!("continue={}", escape(&source.word())),
                12 => format!("includeObject={}", source.pick(&["None", "Metadata", "Object", "x"])),
                _ => format!(
                    "{}={}",
                    source.pick(&["pretty", "timeout", "watch", "propagationPolicy", "gracePeriodSeconds"]),
                    escape(&source.word())
                ),
            });
        }
        if !query.is_empty() {
            self.target = format!("{}?{}", self.target, query.join("&"));
        }
    }

    fn add_headers(&mut self, source: &mut Source<'_>) {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
        match source.below(8) {
            7 => self.headers.push(("accept".into(), table.into())),
            6 => self.headers.push(("accept".into(), metadata.into())),
            5 if source.one_in(4) => {
                let accept = source.pick(&["text/html", "", "*/*", ";;", "application/json;as=Nonsense"]);
                self.headers.push(("accept".into(), accept.into()));
            }
            4 if source.one_in(4) => {
                let user =
                    source.pick(&["nobody", "system:serviceaccount:default:default", "", "system:anonymous"]);
                self.headers.push(("impersonate-user".into(), user.into()));
            }
            _ => {}
        }
    }
}

/// A request for something that is no resource.
fn other(source: &mut Source<'_>) -> Ask {
    let path = source.pick(&[
        "/",
        "/version",
        "/healthz",
        "/api",
        "/apis",
        "/api/v1",
        "/apis/fuzz.example.com",
        "/apis/fuzz.example.com/v1",
        "/openapi/v3",
        "/openapi/v3/apis/fuzz.example.com/v1",
        "/apis//",
        "//",
        "/api/v1/namespaces/%ff/pods/%00",
        "/apis/fuzz.example.com/v3/things",
        "/api/v1/namespaces/default/pods/a/b/c/d",
        "/openapi/v3/api/v1",
    ]);
    let method = source.pick(&["GET", "HEAD", "POST", "OPTIONS", "BREW", "DELETE"]);
    let mut ask = Ask { method: method.into(), target: path.into(), ..Ask::default() };
    if source.one_in(2) {
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        ask.headers.push(("accept".into(), accept.into()));
    }
    ask.body = source.bytes(8);
    ask
}

/// A text with every byte escaped, as a path or a query takes it.
pub fn escape(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
