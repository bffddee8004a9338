//! A small S3 server for fleets that live on one machine: buckets that are folders, one pair of credentials, no TLS.
//!
//! Objects are put and read whole or in ranges, listed by prefix and removed; a put on condition that the key is free is
//! decided by the disk. Several uploads of one object, versions and access lists are not served. What is kept is left to [`Content`].

mod content;
mod protocol;

pub use content::{Content, Listed};
pub use s3s::service::S3Service;

use hyper_util::rt::{TokioExecutor, TokioIo};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::TcpListener;

/// How long nobody is let in after a connection failed while it was made.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Who may come in.
#[derive(Clone)]
pub struct Credentials {
    /// The name.
    pub access_key: String,
    /// The secret that requests are signed with.
    pub secret_key: String,
}

/// The protocol over buckets; every request must be signed with the credentials.
#[must_use]
pub fn service(buckets: BTreeMap<String, Arc<dyn Content>>, credentials: &Credentials) -> S3Service {
    let mut builder = S3ServiceBuilder::new(protocol::Buckets(buckets));
    builder
        .set_auth(SimpleAuth::from_single(credentials.access_key.as_str(), credentials.secret_key.as_str()));
    builder.build()
}

/// Answers until it is dropped; connections end with it.
pub async fn serve(listener: TcpListener, service: S3Service) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // The client's affair, or too many files are open, which takes a moment to pass.
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let service = service.clone();
                connections.spawn(async move {
                    let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // The client sees how its connection ended, and nobody else cares.
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
