//! The server over HTTPS, with a certificate authority of its own: a server certificate for this machine, client
//! certificates for people, and a kubeconfig that has all a client needs.

use crate::auth::User;
use crate::service::ApiServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// How long open requests may take when the server stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);
/// How long a client may take over the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// Requests in flight on one connection: watches stay open, and clients put all of theirs on one.
const STREAMS: u32 = 1000;

/// Why HTTPS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A certificate could not be made or read.
    #[error("making or reading certificates")]
    Certificate(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("setting up TLS: {0}")]
    Tls(String),
    /// A file or socket could not be used.
    #[error("{action}")]
    Io {
        /// What was tried.
        action: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

fn io(action: String) -> impl FnOnce(std::io::Error) -> ServeError {
    move |source| ServeError::Io { action, source }
}

/// A certificate authority: signs the certificates of one cluster.
pub struct Authority {
    certificate: String,
    key: String,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Credential {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    pub fn generate() -> Result<Self, ServeError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name("lifeboat", &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
    }

    /// The authority kept in a folder, made on first use.
    pub fn load(folder: &Path) -> Result<Self, ServeError> {
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        if certificate.exists() && key.exists() {
            let read = |path: &Path| {
                std::fs::read_to_string(path).map_err(io(format!("reading {}", path.display())))
            };
            return Ok(Self { certificate: read(&certificate)?, key: read(&key)? });
        }
        let authority = Self::generate()?;
        std::fs::create_dir_all(folder).map_err(io(format!("creating {}", folder.display())))?;
        write_private(&key, authority.key.as_bytes())?;
        write_private(&certificate, authority.certificate.as_bytes())?;
        Ok(authority)
    }

    /// The authority's certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A client certificate for a user.
    pub fn client(&self, user: &User) -> Result<Credential, ServeError> {
        let groups: Vec<&str> =
            user.groups.iter().map(String::as_str).filter(|group| *group != "system:authenticated").collect();
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&user.name, &groups);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn server(&self, addresses: &[IpAddr]) -> Result<Credential, ServeError> {
        let mut names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let known = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        names.extend(known.map(str::to_owned));
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = name("kube-apiserver", &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<Credential, ServeError> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let key = KeyPair::generate()?;
        Ok(Credential { certificate: params.signed_by(&key, &issuer)?.pem(), key: key.serialize_pem() })
    }
}

fn name(common: &str, organizations: &[&str]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    // A certificate carries one organization here; users with more groups come by token.
    for organization in organizations {
        name.push(DnType::OrganizationName, *organization);
    }
    name
}

/// Writes a file that only its owner can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), ServeError> {
    use std::io::Write as _;
    let opened = std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(io(format!("writing {}", path.display())))
}

/// A server that listens.
pub struct Front {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    server: ApiServer,
    address: SocketAddr,
}

impl Front {
    /// Listens on an address; port 0 picks a free one.
    pub async fn listen(
        server: ApiServer,
        authority: &Authority,
        address: SocketAddr,
    ) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await.map_err(io(format!("listening on {address}")))?;
        let address = listener.local_addr().map_err(io(format!("listening on {address}")))?;
        let acceptor =
            TlsAcceptor::from(Arc::new(tls(authority, &[address.ip(), IpAddr::from([127, 0, 0, 1])])?));
        Ok(Self { listener, acceptor, server, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is done; open requests get a moment to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, most likely: taking a breath lets others close theirs.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            // Small answers must not wait for large ones that never come.
            let _ = stream.set_nodelay(true);
            let (acceptor, server, watcher) =
                (self.acceptor.clone(), self.server.clone(), graceful.watcher());
            connections.spawn(async move {
                let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(stream)).await
                else {
                    return;
                };
                let user = tls.get_ref().1.peer_certificates().and_then(<[_]>::first).and_then(user_of);
                let service =
                    hyper_util::service::TowerToHyperService::new(server.service_with_certificate(user));
                let mut builder = auto::Builder::new(TokioExecutor::new());
                builder.http2().max_concurrent_streams(STREAMS);
                let connection =
                    builder.serve_connection_with_upgrades(TokioIo::new(tls), service).into_owned();
                // A client that hangs up is no error of ours.
                let _ = watcher.watch(connection).await;
            });
        }
        let _ = tokio::time::timeout(STOP_WITHIN, graceful.shutdown()).await;
    }
}

fn tls(authority: &Authority, addresses: &[IpAddr]) -> Result<rustls::ServerConfig, ServeError> {
    let failed = |error: &dyn std::fmt::Display| ServeError::Tls(error.to_string());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der(&authority.certificate)?).map_err(|error| failed(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(|error| failed(&error))?;
    let credential = authority.server(addresses)?;
    let key =
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KeyPair::from_pem(&credential.key)?.serialize_der()));
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![der(&credential.certificate)?], key)
        .map_err(|error| failed(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn der(pem: &str) -> Result<CertificateDer<'static>, ServeError> {
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| ServeError::Tls(format!("{error:?}")))
}

/// The user that a verified client certificate names: common name and organizations.
fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> = subject.iter_organization().filter_map(|part| part.as_str().ok()).collect();
    Some(User::new(name, &groups))
}

/// One cluster in a kubeconfig.
pub struct Context<'a> {
    /// Name of the cluster and its context.
    pub name: &'a str,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its authority's certificate.
    pub authority: &'a str,
    /// The user's certificate.
    pub credential: &'a Credential,
}

/// A kubeconfig with a context for each cluster; the first is the current one.
pub fn kubeconfig(contexts: &[Context<'_>]) -> Value {
    let list = |make: &dyn Fn(&Context<'_>) -> Value| contexts.iter().map(make).collect::<Vec<_>>();
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": contexts.first().map(|context| context.name),
        "clusters": list(&|context| json!({
            "name": context.name,
            "cluster": {"server": format!("https://{}", context.address), "certificate-authority-data": STANDARD.encode(context.authority)},
        })),
        "users": list(&|context| json!({
            "name": context.name,
            "user": {
                "client-certificate-data": STANDARD.encode(&context.credential.certificate),
                "client-key-data": STANDARD.encode(&context.credential.key),
            },
        })),
        "contexts": list(&|context| json!({"name": context.name, "context": {"cluster": context.name, "user": context.name}})),
    })
}
