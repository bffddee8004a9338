//! A server of the S3 protocol on loopback, with the signatures checked, objects in memory, and faults on demand.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lifeboat_s3::{Content, Credentials, Listed, S3Service};
use s3s::{S3Result, s3_error};

pub(crate) const BUCKET: &str = "backups";
pub(crate) const ACCESS: &str = "access-canary";
pub(crate) const SECRET: &str = "secret-canary";

/// What goes wrong with the next request that matches.
#[allow(dead_code, reason = "not every suite that shares this server needs all of them")]
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Answers with this status and code instead of doing anything.
    Status(u16, &'static str),
    /// Does it, then breaks the connection instead of answering.
    LoseAnswer,
    /// Breaks the connection at once.
    Cut,
    /// Says that it was written, and forgets it.
    LoseWrite,
    /// Never answers.
    Silence,
    /// Does as asked: what comes after it happens to later requests.
    Pass,
    /// Answers with one bit of the content turned over.
    Flip,
    /// Lists the first page and says that this is all.
    ShortList,
    /// Writes as if there were no condition.
    IgnoreCondition,
}

/// A fault for requests of this method whose path holds this text.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) fault: Fault,
    /// How often; others come after it.
    pub(crate) times: usize,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<String, bytes::Bytes>,
    pub(crate) plans: VecDeque<Plan>,
    pub(crate) requests: usize,
    pub(crate) page: usize,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { page: 1000, ..State::default() }));
        let content: Arc<dyn Content> = Arc::new(Memory(state.clone()));
        let credentials = Credentials { access_key: ACCESS.to_owned(), secret_key: SECRET.to_owned() };
        let service = lifeboat_s3::service([(BUCKET.to_owned(), content)].into(), &credentials);
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (service, state) = (service.clone(), shared.clone());
                connections.spawn(async move {
                    let answer = hyper::service::service_fn(move |request| {
                        answer(service.clone(), state.clone(), request)
                    });
                    let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Self { address, state, task }
    }

    /// Plans a fault.
    pub(crate) fn plan(&self, method: &'static str, path: &'static str, fault: Fault, times: usize) {
        self.state.lock().unwrap().plans.push_back(Plan { method, path, fault, times });
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }
}

type Answer = Result<http::Response<s3s::Body>, Box<dyn std::error::Error + Send + Sync>>;

async fn answer(service: S3Service, state: Arc<Mutex<State>>, request: http::Request<Incoming>) -> Answer {
    let fault = {
        let mut state = state.lock().unwrap();
        state.requests += 1;
        let text = request.uri().to_string();
        let found = state
            .plans
            .iter()
            .position(|plan| plan.method == request.method().as_str() && text.contains(plan.path));
        found.map(|index| {
            let plan = &mut state.plans[index];
            plan.times -= 1;
            let fault = plan.fault.clone();
            if plan.times == 0 {
                state.plans.remove(index);
            }
            fault
        })
    };
    let broken = || Err("broken on purpose".into());
    match fault {
        Some(Fault::Cut) => broken(),
        Some(Fault::Silence) => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            broken()
        }
        Some(Fault::Status(status, code)) => {
            // The body is read, so that the connection stays in order.
            let _ = http_body_util::BodyExt::collect(request.into_body()).await;
            let body = format!(
                "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{SECRET}</Message></Error>"
            );
            Ok(http::Response::builder().status(status).body(s3s::Body::from(body)).unwrap())
        }
        Some(Fault::LoseWrite) => {
            let _ = http_body_util::BodyExt::collect(request.into_body()).await;
            Ok(http::Response::builder().status(200).body(s3s::Body::empty()).unwrap())
        }
        Some(Fault::LoseAnswer) => {
            service.call(request.map(s3s::Body::from)).await.map_err(|error| format!("{error:?}"))?;
            broken()
        }
        Some(Fault::Flip) => {
            let (parts, body) = whole(&service, request).await?;
            let mut body = body.to_vec();
            if let Some(last) = body.last_mut() {
                *last ^= 1;
            }
            Ok(http::Response::from_parts(parts, s3s::Body::from(bytes::Bytes::from(body))))
        }
        Some(Fault::ShortList) => {
            let (mut parts, body) = whole(&service, request).await?;
            let text = String::from_utf8_lossy(&body).replace(">true</IsTruncated>", ">false</IsTruncated>");
            let text = match text.split_once("<NextContinuationToken>") {
                Some((before, rest)) => {
                    let after = rest.split_once("</NextContinuationToken>").map_or("", |(_, after)| after);
                    format!("{before}{after}")
                }
                None => text,
            };
            parts.headers.remove(http::header::CONTENT_LENGTH);
            Ok(http::Response::from_parts(parts, s3s::Body::from(text)))
        }
        Some(Fault::IgnoreCondition) => {
            let mut request = request;
            request.headers_mut().remove(http::header::IF_NONE_MATCH);
            Ok(service.call(request.map(s3s::Body::from)).await.map_err(|error| format!("{error:?}"))?)
        }
        Some(Fault::Pass) | None => {
            Ok(service.call(request.map(s3s::Body::from)).await.map_err(|error| format!("{error:?}"))?)
        }
    }
}

/// The answer as it should be, in one piece.
async fn whole(
    service: &S3Service,
    request: http::Request<Incoming>,
) -> Result<(http::response::Parts, bytes::Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let answer = service.call(request.map(s3s::Body::from)).await.map_err(|error| format!("{error:?}"))?;
    let (parts, body) = answer.into_parts();
    let body = http_body_util::BodyExt::collect(body).await.map_err(|error| format!("{error:?}"))?.to_bytes();
    Ok((parts, body))
}

struct Memory(Arc<Mutex<State>>);

#[async_trait::async_trait]
impl Content for Memory {
    async fn get(&self, key: &str) -> S3Result<bytes::Bytes> {
        self.0.lock().unwrap().objects.get(key).cloned().ok_or_else(|| s3_error!(NoSuchKey))
    }

    async fn size(&self, key: &str) -> S3Result<u64> {
        Ok(self.get(key).await?.len() as u64)
    }

    async fn put(&self, key: &str, content: bytes::Bytes, free: bool) -> S3Result<()> {
        let mut state = self.0.lock().unwrap();
        if free && state.objects.contains_key(key) {
            return Err(s3_error!(PreconditionFailed));
        }
        state.objects.insert(key.to_owned(), content);
        Ok(())
    }

    async fn delete(&self, key: &str) -> S3Result<()> {
        self.0.lock().unwrap().objects.remove(key);
        Ok(())
    }

    async fn list(&self, prefix: &str, after: &str, most: usize) -> S3Result<Listed> {
        let state = self.0.lock().unwrap();
        let mut found =
            state.objects.iter().filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
        let page = most.min(state.page);
        let objects = found.by_ref().take(page).map(|(key, content)| (key.clone(), content.len() as u64));
        Ok(Listed { objects: objects.collect(), more: found.next().is_some() })
    }
}
