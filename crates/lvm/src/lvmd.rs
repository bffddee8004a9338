//! lvmd: node storage over gRPC on a unix socket. TopoLVM's services for its clients, one of our own for what those lack, and a health check that checks.
//!
//! Anybody who can open the socket can remove volumes, so only its owner can.

mod convert;
mod health;
mod own;
mod remote;
mod stream;
mod topolvm;

/// Generated from `proto/` by `tools/lvmd/codegen`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    reason = "generated code"
)]
pub mod pb {
    /// TopoLVM's messages and services, package `proto`.
    pub mod topolvm {
        include!("lvmd/pb/proto.rs.in");
    }
    /// Our own, package `lifeboat.lvm.v1`.
    pub mod own {
        include!("lvmd/pb/lifeboat.lvm.v1.rs.in");
    }
}

use crate::{Lvm, Storage};
pub use remote::Remote;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;

/// How often the classes are looked after.
const TEND_EVERY: Duration = Duration::from_secs(30);

/// Why lvmd does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket cannot be made.
    #[error("the socket {path} cannot be served: {source}")]
    Socket {
        /// Where it should be.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// Serving stopped.
    #[error("serving on the socket stopped")]
    Transport(#[from] tonic::transport::Error),
}

/// A socket that is ready for clients.
pub struct Listening {
    listener: UnixListener,
    path: PathBuf,
}

impl Listening {
    /// Takes the socket over from a process that is gone; refuses while another one answers there.
    pub async fn on(path: &Path) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Socket { path: path.to_owned(), source };
        if UnixStream::connect(path).await.is_ok() {
            return Err(failed(io::Error::other("another process serves it; stop that one first")));
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Serves until `stop` is done; requests under way are answered first.
    pub async fn serve(self, lvm: Arc<dyn Lvm>, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        // Watchers are sent off first: otherwise the stop would wait for them.
        let stopping = CancellationToken::new();
        let stop = async {
            stop.await;
            stopping.cancel();
        };
        let served = tonic::transport::Server::builder()
            .add_service(pb::topolvm::lv_service_server::LvServiceServer::new(topolvm::Volumes(lvm.clone())))
            .add_service(pb::topolvm::vg_service_server::VgServiceServer::new(topolvm::Groups(
                lvm.clone(),
                stopping.clone(),
            )))
            .add_service(pb::own::storage_server::StorageServer::new(own::Own(lvm.clone(), stopping.clone())))
            .add_service(tonic_health::pb::health_server::HealthServer::new(health::Checked(
                lvm,
                stopping.clone(),
            )))
            .serve_with_incoming_shutdown(UnixListenerStream::new(self.listener), stop)
            .await;
        let _ = std::fs::remove_file(&self.path);
        Ok(served?)
    }
}

/// Serves the storage of a configuration and looks after it, until `stop` is done.
pub async fn serve(
    storage: Arc<Storage>,
    socket: &Path,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let listening = Listening::on(socket).await?;
    let tended = async {
        let mut ticks = tokio::time::interval(TEND_EVERY);
        loop {
            ticks.tick().await;
            storage.tend().await;
        }
    };
    tokio::select! {
        served = listening.serve(storage.clone(), stop) => served,
        never = tended => never,
    }
}
