//! `grpc.health.v1.Health`, answered by looking: LVM answers, every group and pool is there, no change hangs.
//!
//! The whole (`""`) serves if every class does; `class/<name>` tells of one alone, so that a bad disk need not take a node's other
//! classes out of service; `process` is for liveness probes, since a restart mends none of this.

use super::stream::{Streamed, fed};
use crate::{Lvm, Trouble};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// How often a watcher's answer is looked at again.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Health by looking.
pub(super) struct Checked(pub(super) Arc<dyn Lvm>, pub(super) CancellationToken);

async fn look(lvm: &dyn Lvm, service: &str) -> ServingStatus {
    let class = match service {
        "process" => return ServingStatus::Serving,
        "" | "proto.LVService" | "proto.VGService" | "lifeboat.lvm.v1.Storage" => None,
        other => match other.strip_prefix("class/") {
            Some(class) => Some(class),
            None => return ServingStatus::ServiceUnknown,
        },
    };
    let Ok(classes) = lvm.classes().await else { return ServingStatus::NotServing };
    if class.is_some_and(|class| !classes.iter().any(|known| known.name == class)) {
        return ServingStatus::ServiceUnknown;
    }
    let stops =
        |trouble: &Trouble| trouble.kind.stops_service() && class.is_none_or(|class| trouble.class == class);
    if lvm.health().await.iter().any(stops) { ServingStatus::NotServing } else { ServingStatus::Serving }
}

#[tonic::async_trait]
impl Health for Checked {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match look(&*self.0, &request.into_inner().service).await {
            ServingStatus::ServiceUnknown => Err(Status::not_found("no such service or device class")),
            status => Ok(Response::new(HealthCheckResponse { status: status.into() })),
        }
    }

    type WatchStream = Streamed<HealthCheckResponse>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let service = request.into_inner().service;
        let lvm = self.0.clone();
        let feed = |sender: mpsc::Sender<_>| async move {
            let mut told = None;
            loop {
                let status = look(&*lvm, &service).await;
                if told != Some(status) {
                    if sender.send(Ok(HealthCheckResponse { status: status.into() })).await.is_err() {
                        return;
                    }
                    told = Some(status);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        Ok(Response::new(fed(&self.1, feed)))
    }
}
