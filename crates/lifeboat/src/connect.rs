//! One connection to an API server, with many requests under way on it. The client's own way takes a connection for each request under way
//! and each watch: seventy for a busy controller, each with its buffers on both sides and its own calls into the kernel.

use anyhow::{Context as _, bail};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use std::time::Duration;
use tower::ServiceBuilder;

/// A connection that is silent for this long is asked whether it lives.
const ASK_AFTER: Duration = Duration::from_secs(15);
/// How soon it must answer; a peer that vanished without a word is noticed by that.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// Bytes of a stream and of the connection that may come unread: a list is longer than the protocol's own 64 kB.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// A client that tries nothing again by itself, as a controller wants it: the engine has its own pauses, and must hear what a server says. One that was
/// restored from a copy says that it has not come to the version that a watch asks for, and no patience changes that.
pub fn plain(mut config: Config) -> kube::Result<kube::Client> {
    config.default_retry = false;
    kube::Client::try_from(config)
}

/// A client over one connection, where the server speaks HTTP/2; others are spoken to as ever.
pub fn connect(config: Config) -> anyhow::Result<kube::Client> {
    if config.proxy_url.is_some() {
        return plain(config).context("making a client of the cluster");
    }
    let tls = config.rustls_client_config().context("reading the certificates of the cluster")?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(ASK_AFTER));
    tcp.set_connect_timeout(config.connect_timeout);
    let mut tls = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let Ok(name) = name.clone().try_into() else {
            bail!("the kubeconfig's tls-server-name {name} is not a name of a server");
        };
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = tls.enable_http1().enable_http2().wrap_connector(tcp);
    let client: Client<_, Body> = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(ASK_AFTER)
        .http2_keep_alive_timeout(ANSWER_WITHIN)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().context("reading the credentials for the cluster")?)
        .layer(config.extra_headers_layer().context("reading who to act as")?)
        .map_err(tower::BoxError::from)
        .service(client);
    Ok(kube::Client::new(service, config.default_namespace))
}
