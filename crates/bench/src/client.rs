//! One lean HTTPS client for both sides: HTTP/2 over rustls, as Kubernetes clients do, with as little work per request
//! as possible, because client and server share the machine.

use std::sync::Arc;

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::kubeconfig;

/// Where a server is and how its administrator proves himself.
#[derive(Clone)]
pub struct Access {
    authority: String,
    token: Option<String>,
    tls: TlsConnector,
}

/// One connection; clones share it.
#[derive(Clone)]
pub struct Connection {
    access: Access,
    sender: SendRequest<Full<Bytes>>,
}

impl Access {
    /// Reads the current context of a kubeconfig.
    ///
    /// # Errors
    /// When it cannot be read, or has no CA or no credentials that this client knows.
    pub fn read(path: &std::path::Path) -> Result<Self> {
        let credentials = kubeconfig::read(path)?;
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&credentials.ca) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut tls = match &credentials.identity {
            Some((chain, key)) => {
                let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>()?;
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key)?)?
            }
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let tls = TlsConnector::from(Arc::new(tls));
        Ok(Self { authority: credentials.authority, token: credentials.token, tls })
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When the server does not answer or does not speak HTTP/2.
    pub async fn connect(&self) -> Result<Connection> {
        let socket = TcpStream::connect(&self.authority).await?;
        socket.set_nodelay(true)?;
        let name = ServerName::from(socket.peer_addr()?.ip());
        let stream = self.tls.connect(name, socket).await?;
        let (sender, driver) =
            http2::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await?;
        // It ends with the connection; whoever uses the connection then sees an error.
        tokio::spawn(driver);
        Ok(Connection { access: self.clone(), sender })
    }
}

impl Connection {
    /// Sends a request and gives the answer's head; the body is still to come.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.access.authority))
            .header("accept", "application/json")
            .header("content-type", "application/json");
        if let Some(token) = &self.access.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(body))?).await?)
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When the connection breaks, or the status is another than expected.
    pub async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        expected: StatusCode,
    ) -> Result<Bytes> {
        let answer = self.send(method, path, body).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if status != expected {
            bail!("{path} answered {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}
