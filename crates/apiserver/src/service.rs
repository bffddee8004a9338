//! The server as a `tower::Service`: identity, permission, routing and the waiting that the synchronous core leaves out.

use crate::auth::{self, Attributes, Authenticator, TokenKey, TokenKeyError, User};
use crate::cluster::{Cluster, Sources, index_stored};
use crate::control::Control;
use crate::error::{ApiError, Result};
use crate::fault::{Asked, ConnectionLost, Faults, RequestFault};
use crate::negotiate::{self, Encoding, aggregated_discovery};
use crate::path::{self, Target, Verb};
use crate::query::{Query, WriteOptions};
use crate::registry::Registry;
use crate::resources::{Answer, Call};
use crate::store::{DiskError, Store};
use crate::write::{At, Changed};
use crate::{crd, discovery, openapi};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use lifeboat_kinds::protobuf;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bodies larger than this are refused, as by Kubernetes.
const MAX_BODY: usize = 3 << 20;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, ConnectionLost>;

/// How a server is set up.
pub struct Config {
    /// Where objects are kept; in memory when `None`.
    pub data: Option<PathBuf>,
    /// Time and chance.
    pub sources: Sources,
    /// Fixed bearer tokens and whose they are.
    pub tokens: BTreeMap<String, User>,
    /// The key that signs service account tokens, as PKCS#8; a new one when `None`.
    pub token_key: Option<Vec<u8>>,
    /// The certificate that every namespace is told to trust.
    pub root_ca: String,
    /// The address that discovery reports.
    pub address: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: None,
            sources: Sources::system(),
            tokens: BTreeMap::new(),
            token_key: None,
            root_ca: String::new(),
            address: "127.0.0.1".into(),
        }
    }
}

/// Why a server could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The data folder is unusable.
    #[error("opening the data of the cluster")]
    Disk(#[from] DiskError),
    /// The signing key is unusable.
    #[error(transparent)]
    Key(#[from] TokenKeyError),
}

struct Inner {
    cluster: Arc<Cluster>,
    authenticator: Authenticator,
    root_ca: String,
    address: String,
    documents: Mutex<Documents>,
}

/// OpenAPI documents of one registry; they are large and asked for often.
#[derive(Default)]
struct Documents {
    registry: Option<Arc<Registry>>,
    made: BTreeMap<String, Bytes>,
}

/// One cluster's API server.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

impl ApiServer {
    /// Sets up a server and, in an empty store, what every cluster starts with.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let store = match &config.data {
            None => Store::in_memory(),
            Some(folder) => Store::open(folder, index_stored)?,
        };
        let pkcs8 = match config.token_key {
            Some(bytes) => bytes,
            None => TokenKey::generate()?,
        };
        let cluster = Arc::new(Cluster::new(store, config.sources));
        auth::bootstrap(&cluster);
        Ok(Self(Arc::new(Inner {
            cluster,
            authenticator: Authenticator { tokens: config.tokens, key: TokenKey::from_pkcs8(&pkcs8)? },
            root_ca: config.root_ca,
            address: config.address,
            documents: Mutex::default(),
        })))
    }

    /// What the control plane does by itself. Somebody has to run it; dropping it stops it.
    pub fn control(&self) -> impl Future<Output = ()> + Send + 'static {
        Control::new(self.0.cluster.clone(), self.0.root_ca.clone()).run()
    }

    /// Installs or updates definitions, as an administrator would; what is already as wanted is not written.
    pub fn install<T: serde::Serialize>(&self, definitions: &[T]) -> Result<()> {
        let cluster = &self.0.cluster;
        let registry = cluster.registry();
        let resource = registry.of_collection(crd::COLLECTION).ok_or_else(ApiError::no_such_path)?;
        let options = WriteOptions::internal("lifeboat");
        for definition in definitions {
            let wanted = serde_json::to_value(definition).map_err(ApiError::internal)?;
            let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
            let at = At::object(resource, "", name);
            // What is there already, defaults and all, is not worth a write.
            let mut filled = wanted.clone();
            resource.default(&mut filled);
            let stored = cluster.find(crd::COLLECTION, "", name);
            if stored.is_some_and(|stored| stored["spec"] == filled["spec"]) {
                continue;
            }
            cluster.update(at, &options, |old| {
                let mut new = wanted.clone();
                if let Some(old) = old {
                    new["metadata"] = old["metadata"].clone();
                    new["status"] = old["status"].clone();
                }
                Ok(Changed::plain(new))
            })?;
        }
        Ok(())
    }

    /// The cluster behind the server.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.0.cluster
    }

    /// The server for callers that have to say who they are.
    pub fn service(&self) -> Service {
        Service { server: self.clone(), identity: Identity::Unknown, faults: None }
    }

    /// The server for a caller in this process who is known.
    pub fn service_as(&self, user: User) -> Service {
        Service { server: self.clone(), identity: Identity::Known(user), faults: None }
    }

    /// The server for a caller with a verified client certificate.
    pub(crate) fn service_with_certificate(&self, user: Option<User>) -> Service {
        let identity = user.map_or(Identity::Unknown, Identity::Certificate);
        Service { server: self.clone(), identity, faults: None }
    }
}

#[derive(Debug, Clone)]
enum Identity {
    Unknown,
    Certificate(User),
    Known(User),
}

/// The server as seen by one client.
#[derive(Clone)]
pub struct Service {
    server: ApiServer,
    identity: Identity,
    faults: Option<Arc<dyn Faults>>,
}

impl Service {
    /// The same client behind a source of faults.
    #[must_use]
    pub fn with_faults(mut self, faults: Arc<dyn Faults>) -> Self {
        self.faults = Some(faults);
        self
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = ConnectionLost;
    type Future = BoxFuture<'static, Result<Response<Body>, ConnectionLost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        async move {
            let (head, body) = request.into_parts();
            let is_head = head.method == Method::HEAD;
            let answer = match Limited::new(body, MAX_BODY).collect().await {
                Ok(body) => service.serve(&head, body.to_bytes()).await?,
                Err(_) => Err(ApiError::too_large(MAX_BODY)),
            };
            let accept =
                head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let response = answer.unwrap_or_else(|error| failure(&error, negotiate::encoding(accept)));
            Ok(if is_head { response.map(|_| full(Bytes::new())) } else { response })
        }
        .boxed()
    }
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn json_response(code: u16, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(full(bytes));
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn failure(error: &ApiError, encoding: Encoding) -> Response<Body> {
    let status = error.to_status();
    let mut response = match encoding {
        Encoding::Json => json_response(error.code, status.to_string().into()),
        Encoding::Protobuf => protobuf_response(error.code, &status)
            .unwrap_or_else(|| json_response(error.code, status.to_string().into())),
    };
    if let Some(seconds) = error.details["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if error.code == 401 {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn text(code: u16, words: &str) -> Response<Body> {
    let mut response = json_response(code, Bytes::copy_from_slice(words.as_bytes()));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn protobuf_response(code: u16, object: &Value) -> Option<Response<Body>> {
    let bytes = protobuf::encode(object).ok()?;
    let mut response = json_response(code, bytes.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(protobuf::CONTENT_TYPE));
    Some(response)
}

type Served = Result<Result<Response<Body>>, ConnectionLost>;

impl Service {
    async fn serve(&self, head: &http::request::Parts, body: Bytes) -> Served {
        let cluster = self.server.cluster();
        let user = match self.user(head) {
            Ok(user) => user,
            Err(error) => return Ok(Err(error)),
        };
        let query = Query::parse(head.uri.query().unwrap_or_default());
        if let Err(error) = query.check_timeout() {
            return Ok(Err(error));
        }
        let served = match path::parse(head.uri.path()) {
            Target::Resource(path) => {
                let Some(verb) = Verb::of(&head.method, &path, query.flag("watch")) else {
                    return Ok(Err(ApiError::method_not_allowed()));
                };
                if !cluster.registry().groups().contains_key(&path.group) {
                    return Ok(Ok(text(404, "404 page not found\n")));
                }
                self.serve_resource(Call { verb, path, query, user, head, body, faults: self.faults.clone() })
                    .await?
            }
            Target::Other(segments) => self.serve_other(head, &user, &segments),
        };
        // Nobody is told of anything that a crash could take back, be it their own write or somebody else's.
        if let Err(why) = cluster.store.settled(cluster.store.revision()).await {
            return Ok(Err(ApiError::internal(why)));
        }
        Ok(served)
    }

    fn user(&self, head: &http::request::Parts) -> Result<User> {
        let cluster = self.server.cluster();
        let user = match &self.identity {
            Identity::Known(user) => user.clone(),
            Identity::Certificate(user) => {
                self.server.0.authenticator.identify(cluster, &head.headers, Some(user))?
            }
            Identity::Unknown => self.server.0.authenticator.identify(cluster, &head.headers, None)?,
        };
        auth::impersonate(cluster, user, &head.headers)
    }

    async fn serve_resource(&self, call: Call<'_>) -> Served {
        let asked = Asked { verb: call.verb, path: &call.path };
        let fault = self.faults.as_ref().map_or(RequestFault::None, |faults| faults.on_request(asked));
        let mut lose_answer = false;
        let mut lag = 0;
        match fault {
            RequestFault::None => {}
            RequestFault::Delay(pause) => tokio::time::sleep(pause).await,
            RequestFault::Refuse(error) => return Ok(Err(*error)),
            RequestFault::DropRequest => return Err(ConnectionLost),
            RequestFault::DropAnswer => lose_answer = true,
            RequestFault::Stale(revisions) => lag = revisions,
        }
        let answer = crate::resources::serve(self.server.cluster(), &self.server.0.authenticator, &call, lag);
        let code = answer.as_ref().map_or_else(|error| error.code, |answer| answer.code);
        if let Some(faults) = &self.faults {
            faults.on_answer(asked, code);
        }
        if lose_answer {
            return Err(ConnectionLost);
        }
        let accept =
            call.head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        Ok(answer.and_then(|answer| into_response(answer, negotiate::encoding(accept))))
    }

    fn serve_other(
        &self,
        head: &http::request::Parts,
        user: &User,
        segments: &[String],
    ) -> Result<Response<Body>> {
        let cluster = self.server.cluster();
        let path = head.uri.path();
        let verb = match head.method {
            Method::GET | Method::HEAD => "get",
            Method::POST => "post",
            Method::PUT => "put",
            Method::DELETE => "delete",
            Method::PATCH => "patch",
            _ => return Err(ApiError::method_not_allowed()),
        };
        auth::authorize(cluster, user, &Attributes { verb, path, ..Default::default() })?;
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let registry = cluster.registry();
        let accept =
            head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let health = matches!(words.first(), Some(&("healthz" | "livez" | "readyz")));
        if verb != "get" && !health {
            return Err(ApiError::method_not_allowed());
        }
        let found: Option<Value> = match words.as_slice() {
            [] => Some(self.paths(&registry)),
            ["version"] => Some(discovery::version()),
            ["healthz" | "livez" | "readyz", ..] => {
                return Ok(match cluster.store.health() {
                    Ok(_) => text(200, "ok"),
                    Err(why) => text(500, &format!("storage has failed: {why}")),
                });
            }
            ["api"] | ["apis"] => {
                let core = words == ["api"];
                if let Some(version) = aggregated_discovery(accept) {
                    let mut response = json_response(
                        200,
                        discovery::aggregated(&registry, core, version).to_string().into(),
                    );
                    let kind = format!(
                        "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                    );
                    if let Ok(kind) = HeaderValue::from_str(&kind) {
                        response.headers_mut().insert(header::CONTENT_TYPE, kind);
                    }
                    return Ok(response);
                }
                Some(if core {
                    discovery::core_versions(&self.server.0.address)
                } else {
                    discovery::group_list(&registry)
                })
            }
            ["api", version] => discovery::resource_list(&registry, "", version),
            ["apis", group] => discovery::one_group(&registry, group),
            ["apis", group, version] => discovery::resource_list(&registry, group, version),
            ["openapi", ..] => return self.serve_openapi(head, &registry, &words[1..]),
            _ => None,
        };
        let found = found.ok_or_else(ApiError::no_such_path)?;
        Ok(json_response(200, found.to_string().into()))
    }

    fn paths(&self, registry: &Registry) -> Value {
        let mut paths = vec!["/api".to_owned(), "/api/v1".into(), "/apis".into()];
        for (group, versions) in registry.groups().iter().filter(|(group, _)| !group.is_empty()) {
            paths.push(format!("/apis/{group}"));
            paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
        }
        paths.extend(
            ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(str::to_owned),
        );
        json!({ "paths": paths })
    }

    fn serve_openapi(
        &self,
        head: &http::request::Parts,
        registry: &Arc<Registry>,
        words: &[&str],
    ) -> Result<Response<Body>> {
        let make = || match words {
            ["v2"] => Some(openapi::v2(registry)),
            ["v3"] => Some(openapi::index(registry, |group, version| {
                fingerprint(openapi::identity(registry, group, version).as_bytes())
            })),
            ["v3", "api", version] => openapi::v3(registry, "", version),
            ["v3", "apis", group, version] => openapi::v3(registry, group, version),
            _ => None,
        };
        let accepts =
            head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let in_protobuf =
            words == ["v2"] && openapi::proto::ACCEPTED.iter().any(|type_| accepts.contains(type_));
        let name = if in_protobuf { "v2 in protobuf".to_owned() } else { words.join("/") };
        let mut documents = self.server.0.documents.lock();
        if !documents.registry.as_ref().is_some_and(|known| Arc::ptr_eq(known, registry)) {
            *documents = Documents { registry: Some(registry.clone()), made: BTreeMap::new() };
        }
        let bytes = match documents.made.get(&name) {
            Some(bytes) => bytes.clone(),
            None => {
                let document = make().ok_or_else(ApiError::no_such_path)?;
                let bytes: Bytes = match in_protobuf {
                    true => openapi::proto::document(&document).into(),
                    false => document.to_string().into(),
                };
                documents.made.insert(name, bytes.clone());
                bytes
            }
        };
        drop(documents);
        let tag = format!("\"{}\"", fingerprint(&bytes));
        let known = head.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let mut response = if known == Some(tag.as_str()) {
            json_response(304, Bytes::new())
        } else {
            json_response(200, bytes)
        };
        if in_protobuf {
            let type_ = HeaderValue::from_static(openapi::proto::CONTENT_TYPE);
            response.headers_mut().insert(header::CONTENT_TYPE, type_);
        }
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        Ok(response)
    }
}

fn fingerprint(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02X}")).collect()
}

fn into_response(answer: Answer, encoding: Encoding) -> Result<Response<Body>> {
    let mut response = match (answer.events, encoding) {
        (None, Encoding::Json) => json_response(answer.code, answer.body),
        (None, Encoding::Protobuf) => {
            let object = crate::object::parse(&answer.body);
            protobuf_response(answer.code, &object).ok_or_else(negotiate::not_acceptable)?
        }
        (Some(events), encoding) => {
            let in_protobuf = encoding == Encoding::Protobuf;
            let frames = events.map(move |lines| if in_protobuf { protobuf_frames(&lines) } else { lines });
            let mut response = json_response(answer.code, Bytes::new());
            *response.body_mut() =
                StreamBody::new(frames.map(|bytes| Ok(http_body::Frame::data(bytes)))).boxed_unsync();
            if in_protobuf {
                let kind = HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
            }
            response
        }
    };
    for warning in &answer.warnings {
        let quoted =
            warning.replace('\\', "\\\\").replace('"', "\\\"").replace(|c: char| c.is_control(), " ");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    if let Some(kind) = answer.content_type {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    Ok(response)
}

/// Lines of a JSON watch as frames of a protobuf one; kinds without a protobuf form were refused before.
fn protobuf_frames(lines: &[u8]) -> Bytes {
    let mut frames = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = crate::object::parse(line);
        if let Ok(object) = protobuf::encode(&event["object"]) {
            frames.extend(protobuf::watch_frame(event["type"].as_str().unwrap_or_default(), &object));
        }
    }
    frames.into()
}
