//! A server of the S3 protocol on loopback, with the signatures checked, objects in memory, and faults on demand.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::auth::SimpleAuth;
use s3s::dto::*;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

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
        let mut builder = S3ServiceBuilder::new(Memory(state.clone()));
        builder.set_auth(SimpleAuth::from_single(ACCESS, SECRET));
        let service = builder.build();
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

impl Memory {
    fn bucket(name: &str) -> S3Result<()> {
        if name == BUCKET { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
    }

    fn object(&self, bucket: &str, key: &str) -> S3Result<bytes::Bytes> {
        Self::bucket(bucket)?;
        self.0.lock().unwrap().objects.get(key).cloned().ok_or_else(|| s3_error!(NoSuchKey))
    }
}

fn length(bytes: &bytes::Bytes) -> Option<i64> {
    Some(bytes.len() as i64)
}

#[async_trait::async_trait]
impl S3 for Memory {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let mut object = self.object(&request.input.bucket, &request.input.key)?;
        let whole = object.len() as u64;
        let mut content_range = None;
        if let Some(range) = &request.input.range {
            let range = range.check(whole)?;
            content_range = Some(format!("bytes {}-{}/{whole}", range.start, range.end - 1));
            object = object.slice(range.start as usize..range.end as usize);
        }
        let body = s3s::Body::from(object.clone());
        Ok(S3Response::new(GetObjectOutput {
            content_length: length(&object),
            content_range,
            body: Some(body.into()),
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let object = self.object(&request.input.bucket, &request.input.key)?;
        Ok(S3Response::new(HeadObjectOutput { content_length: length(&object), ..Default::default() }))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        use futures::StreamExt as _;
        Self::bucket(&request.input.bucket)?;
        let mut content = bytes::BytesMut::new();
        if let Some(mut body) = request.input.body {
            while let Some(part) = body.next().await {
                content.extend_from_slice(&part.map_err(|_| s3_error!(IncompleteBody))?);
            }
        }
        let mut state = self.0.lock().unwrap();
        if request.input.if_none_match.is_some() && state.objects.contains_key(&request.input.key) {
            return Err(s3_error!(PreconditionFailed));
        }
        state.objects.insert(request.input.key, content.freeze());
        Ok(S3Response::new(PutObjectOutput::default()))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        Self::bucket(&request.input.bucket)?;
        self.0.lock().unwrap().objects.remove(&request.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        Self::bucket(&request.input.bucket)?;
        for object in request.input.delete.objects {
            self.0.lock().unwrap().objects.remove(&object.key);
        }
        Ok(S3Response::new(DeleteObjectsOutput::default()))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        Self::bucket(&request.input.bucket)?;
        let state = self.0.lock().unwrap();
        let prefix = request.input.prefix.unwrap_or_default();
        let after = request.input.continuation_token.unwrap_or_default();
        let mut found =
            state.objects.iter().filter(|(key, _)| key.starts_with(&prefix) && key.as_str() > after.as_str());
        let contents: Vec<_> = found
            .by_ref()
            .take(state.page)
            .map(|(key, content)| Object {
                key: Some(key.clone()),
                size: length(content),
                ..Default::default()
            })
            .collect();
        let truncated = found.next().is_some();
        let next = contents.last().and_then(|object| object.key.clone()).filter(|_| truncated);
        Ok(S3Response::new(ListObjectsV2Output {
            key_count: Some(contents.len() as i32),
            contents: Some(contents),
            is_truncated: Some(truncated),
            next_continuation_token: next,
            prefix: Some(prefix),
            ..Default::default()
        }))
    }
}
