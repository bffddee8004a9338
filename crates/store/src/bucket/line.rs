//! The line to a server: connections, tries, deadlines and the share of bandwidth.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue, Method, Request as HttpRequest, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::answer::{self, Verdict, judge};
use super::{Header, Patience, tls};
use crate::{Error, S3Store, Throttle};

type Body = StreamBody<Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>>;

/// Requests in flight where nobody said otherwise.
const CONNECTIONS: usize = 8;
/// Bytes that are handed over at once, so that a bound on the rate is smooth.
const PIECE: usize = 64 << 10;
/// The slowest upload that is waited for, in bytes a second.
const SLOWEST: u64 = 32 << 10;

/// A line to one server.
#[derive(Clone)]
pub(super) struct Line {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    places: Arc<Semaphore>,
    patience: Patience,
    store: String,
    pub(super) throttle: Option<Arc<Throttle>>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A request, apart from its address: that is signed anew for every try.
pub(super) struct Request {
    doing: &'static str,
    key: String,
    method: Method,
    headers: Vec<Header>,
    parts: Vec<Bytes>,
}

impl Request {
    pub(super) fn new(doing: &'static str, key: &str, method: Method) -> Self {
        Self { doing, key: key.to_owned(), method, headers: Vec::new(), parts: Vec::new() }
    }

    pub(super) fn with(mut self, name: HeaderName, value: String) -> Self {
        if let Ok(value) = HeaderValue::try_from(value) {
            self.headers.push((name, value));
        }
        self
    }

    pub(super) fn carrying(mut self, parts: &[Bytes]) -> Self {
        self.parts = parts.to_vec();
        self
    }

    fn length(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }
}

/// A successful answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) length: Option<u64>,
    pub(super) body: Bytes,
}

impl Line {
    pub(super) fn open(store: &S3Store, name: &str, patience: Patience) -> Result<Self, Error> {
        let config = tls::config(store).map_err(|what| Error::Invalid(format!("{name}: {what}")))?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(patience.connect));
        http.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let places = if store.max_connections == 0 { CONNECTIONS } else { store.max_connections };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(places)
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        Ok(Self {
            client,
            places: Arc::new(Semaphore::new(places)),
            patience,
            store: name.to_owned(),
            throttle: None,
        })
    }

    /// Sends a request, again and again while that may help, and reads the answer of at most `longest` bytes.
    pub(super) async fn send<U: ToString>(
        &self,
        request: &Request,
        sign: &(dyn Fn() -> U + Send + Sync),
        longest: u64,
    ) -> Result<Answer, Error> {
        let mut pause = self.patience.first_pause;
        let mut attempt = 1;
        loop {
            let verdict = {
                // The place is given back while we pause.
                let _place =
                    self.places.acquire().await.map_err(|_| self.unreachable(request, "it is closed"))?;
                match self.once(request, &sign().to_string(), longest).await {
                    Ok(answer) => return Ok(answer),
                    Err(verdict) => verdict,
                }
            };
            match verdict {
                Verdict::Again(_) if attempt < self.patience.attempts => {
                    sleep(pause).await;
                    pause = (pause * 2).min(self.patience.longest_pause);
                    attempt += 1;
                }
                Verdict::Again(error) | Verdict::Final(error) => return Err(error),
            }
        }
    }

    async fn once(&self, request: &Request, address: &str, longest: u64) -> Result<Answer, Verdict> {
        let length = request.length();
        let mut builder = HttpRequest::builder()
            .method(request.method.clone())
            .uri(address)
            .header(header::CONTENT_LENGTH, length)
            .header(header::USER_AGENT, concat!("lifeboat/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let body = StreamBody::new(self.body(request));
        let message = builder
            .body(body)
            .map_err(|_| Verdict::Final(Error::Invalid(format!("{} is no address", self.store))))?;
        let slowest =
            self.throttle.as_ref().map_or(SLOWEST, |throttle| throttle.bytes_per_second().min(SLOWEST));
        let deadline = self.patience.silence + Duration::from_secs(length / slowest.max(1));
        let answer = match timeout(deadline, self.client.request(message)).await {
            Err(_) => return Err(Verdict::Again(self.slow(request, "no answer in time"))),
            // The text of hyper's error may hold the address; its kind does not.
            Ok(Err(error)) => {
                let what =
                    if error.is_connect() { connect(&error) } else { "the connection broke".to_owned() };
                return Err(Verdict::Again(self.unreachable(request, &what)));
            }
            Ok(Ok(answer)) => answer,
        };
        let status = answer.status();
        let said =
            answer.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let limit = if status.is_success() { longest } else { 1 << 20 };
        let body = self.read(request, answer.into_body(), said, limit).await?;
        if status.is_success() {
            return Ok(Answer { status, length: said, body });
        }
        Err(judge(&self.store, request.doing, &request.key, status, &answer::code(&body)))
    }

    /// The body in small pieces, each waiting for its share of the line.
    fn body(
        &self,
        request: &Request,
    ) -> Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>> {
        let parts = stream::iter(request.parts.clone());
        let Some(throttle) = self.throttle.clone() else {
            return Box::pin(parts.map(|part| Ok(Frame::data(part))));
        };
        let pieces = parts.flat_map(|part| {
            stream::iter(
                (0..part.len()).step_by(PIECE).map(move |at| part.slice(at..part.len().min(at + PIECE))),
            )
        });
        Box::pin(pieces.then(move |piece| {
            let throttle = throttle.clone();
            async move {
                sleep(throttle.reserve(piece.len(), Instant::now())).await;
                Ok(Frame::data(piece))
            }
        }))
    }

    async fn read(
        &self,
        request: &Request,
        mut body: Incoming,
        said: Option<u64>,
        longest: u64,
    ) -> Result<Bytes, Verdict> {
        let head = request.method == Method::HEAD;
        let expected = said.filter(|_| !head);
        let too_long =
            || Verdict::Final(Error::TooLong { store: self.store.clone(), key: request.key.clone() });
        if expected.is_some_and(|expected| expected > longest) {
            return Err(too_long());
        }
        let room = usize::try_from(expected.unwrap_or_default()).unwrap_or_default();
        let mut read = BytesMut::with_capacity(room);
        loop {
            let frame = match timeout(self.patience.silence, body.frame()).await {
                Err(_) => return Err(Verdict::Again(self.slow(request, "the answer stopped half-way"))),
                Ok(None) => break,
                Ok(Some(Err(_))) => {
                    return Err(Verdict::Again(self.unreachable(request, "the connection broke")));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Some(data) = frame.data_ref() else { continue };
            if (read.len() + data.len()) as u64 > longest {
                return Err(too_long());
            }
            if let Some(throttle) = &self.throttle {
                sleep(throttle.reserve(data.len(), Instant::now())).await;
            }
            read.extend_from_slice(data);
        }
        if expected.is_some_and(|expected| expected != read.len() as u64) {
            return Err(Verdict::Again(self.unreachable(request, "the answer ended half-way")));
        }
        Ok(read.freeze())
    }

    fn unreachable(&self, request: &Request, what: &str) -> Error {
        Error::Unreachable {
            store: self.store.clone(),
            detail: format!("{} {}: {what}", request.doing, request.key),
        }
    }

    fn slow(&self, request: &Request, what: &str) -> Error {
        Error::Slow {
            store: self.store.clone(),
            detail: format!("{} {}: {what}", request.doing, request.key),
        }
    }
}

/// Why there is no connection: the innermost reason says it best, and knows no address but the host's.
fn connect(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    format!("no connection: {innermost}")
}
