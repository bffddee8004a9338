//! Our own service: every operation of [`Lvm`], with its errors.

use super::convert::{class_out, mode, status, volume_out};
use super::pb::own as pb;
use super::stream::{Streamed, fed};
use crate::{Consistency, Create, Lvm, Snapshot};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// `lifeboat.lvm.v1.Storage`.
pub(super) struct Own(pub(super) Arc<dyn Lvm>, pub(super) CancellationToken);

type Answer<T> = Result<Response<T>, Status>;

fn answer<T>(result: Result<T, crate::Error>) -> Answer<T> {
    result.map(Response::new).map_err(|error| status(&error))
}

#[tonic::async_trait]
impl pb::storage_server::Storage for Own {
    async fn classes(&self, _: Request<pb::Nothing>) -> Answer<pb::ClassList> {
        let classes = self.0.classes().await;
        answer(classes.map(|classes| pb::ClassList { classes: classes.into_iter().map(class_out).collect() }))
    }

    async fn volumes(&self, request: Request<pb::ClassName>) -> Answer<pb::VolumeList> {
        let volumes = self.0.volumes(&request.into_inner().class).await;
        answer(
            volumes.map(|volumes| pb::VolumeList { volumes: volumes.into_iter().map(volume_out).collect() }),
        )
    }

    async fn get_capacity(&self, request: Request<pb::ClassName>) -> Answer<pb::Capacity> {
        let capacity = self.0.capacity(&request.into_inner().class).await;
        answer(capacity.map(|capacity| pb::Capacity {
            size: capacity.size,
            free: capacity.free,
            pool: capacity.pool.map(|pool| pb::ThinPool {
                data_percent: pool.data_percent,
                metadata_percent: pool.metadata_percent,
                overprovision: pool.overprovision,
                size: pool.size,
            }),
        }))
    }

    async fn create(&self, request: Request<pb::CreateRequest>) -> Answer<pb::Volume> {
        let asked = request.into_inner();
        let wanted = Create {
            name: asked.name,
            class: asked.class,
            size: asked.size,
            tags: asked.tags.into_iter().collect(),
            options: asked.options,
        };
        answer(self.0.create(wanted).await.map(volume_out))
    }

    async fn snapshot(&self, request: Request<pb::SnapshotRequest>) -> Answer<pb::SnapshotResponse> {
        let asked = request.into_inner();
        let wanted = Snapshot {
            name: asked.name,
            class: asked.class,
            source: asked.source,
            mode: mode(asked.read_only),
            size: asked.size,
            tags: asked.tags.into_iter().collect(),
            short_lived: asked.short_lived,
        };
        answer(self.0.snapshot(wanted).await.map(|taken| pb::SnapshotResponse {
            volume: Some(volume_out(taken.volume)),
            crash_consistent: taken.consistency == Consistency::Crash,
        }))
    }

    async fn resize(&self, request: Request<pb::ResizeRequest>) -> Answer<pb::ResizeResponse> {
        let asked = request.into_inner();
        let resized = self.0.resize(&asked.class, &asked.name, asked.size).await;
        answer(resized.map(|size| pb::ResizeResponse { size }))
    }

    async fn rename(&self, request: Request<pb::RenameRequest>) -> Answer<pb::Nothing> {
        let asked = request.into_inner();
        answer(self.0.rename(&asked.class, &asked.from, &asked.to).await.map(|()| pb::Nothing {}))
    }

    async fn exchange(&self, request: Request<pb::ExchangeRequest>) -> Answer<pb::Nothing> {
        let asked = request.into_inner();
        answer(self.0.exchange(&asked.class, &asked.one, &asked.other).await.map(|()| pb::Nothing {}))
    }

    async fn retag(&self, request: Request<pb::RetagRequest>) -> Answer<pb::Nothing> {
        let asked = request.into_inner();
        let (add, remove) = (asked.add.into_iter().collect(), asked.remove.into_iter().collect());
        answer(self.0.retag(&asked.class, &asked.name, &add, &remove).await.map(|()| pb::Nothing {}))
    }

    async fn remove(&self, request: Request<pb::RemoveRequest>) -> Answer<pb::Nothing> {
        let asked = request.into_inner();
        answer(self.0.remove(&asked.class, &asked.name).await.map(|()| pb::Nothing {}))
    }

    async fn health(&self, _: Request<pb::Nothing>) -> Answer<pb::TroubleList> {
        let told = self.0.health().await.into_iter().map(|trouble| pb::Trouble {
            class: trouble.class,
            kind: format!("{:?}", trouble.kind),
            message: trouble.message,
        });
        Ok(Response::new(pb::TroubleList { troubles: told.collect() }))
    }

    type WatchStream = Streamed<pb::Changed>;

    async fn watch(&self, _: Request<pb::Nothing>) -> Answer<Self::WatchStream> {
        let mut changes = self.0.changes();
        let feed = |sender: mpsc::Sender<_>| async move {
            loop {
                let change = *changes.borrow_and_update();
                if sender.send(Ok(pb::Changed { change })).await.is_err() || changes.changed().await.is_err()
                {
                    return;
                }
            }
        };
        Ok(Response::new(fed(&self.1, feed)))
    }
}
