//! Serves what is counted to Prometheus, and whether the process lives to whoever asks.

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How long a client may take to ask.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// `/metrics` and `/healthz` on an address.
pub struct Page {
    listener: TcpListener,
    registry: Arc<Registry>,
}

impl Page {
    /// Listens.
    pub async fn listen(address: SocketAddr, registry: Registry) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address);
        let listener = listener.await.with_context(|| format!("listening on {address} to serve metrics"))?;
        Ok(Self { listener, registry: Arc::new(registry) })
    }

    /// Where it listens.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("asking where metrics are served")
    }

    /// Answers until dropped.
    pub async fn serve(self) {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of file descriptors, most likely: others need the processor to give some back.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let registry = self.registry.clone();
            let answer = service_fn(move |request| {
                let answer = answer(&request, &registry);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(ASKS_WITHIN)
                .serve_connection(TokioIo::new(stream), answer);
            // What goes wrong with one connection is its client's business.
            connections.spawn(async move { drop(connection.await) });
        }
    }
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<Full<Bytes>> {
    let (code, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, TEXT, lifeboat_engine::expose(registry)),
        (&Method::GET, "/healthz") => (StatusCode::OK, "text/plain", "ok".to_owned()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "here are /metrics and /healthz\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}
