//! TopoLVM's services, so that its clients work unchanged.
//!
//! Three answers differ on purpose: a create keeps the spare room that reports keep; removing from a class that is not
//! configured is `FailedPrecondition`, since TopoLVM's controller takes `NotFound` for "removed" and would forget a volume that is still
//! there; a name that is taken is `AlreadyExists`, not `Internal`.

use super::convert::status;
use super::pb::topolvm as pb;
use super::stream::{Streamed, fed};
use crate::{Access, AccessMode, Capacity, Create, Error, Lvm, Snapshot, Volume};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// Watchers are told anew after this long even if nothing changed.
const TELL_AGAIN: Duration = Duration::from_secs(600);

/// `LVService`.
pub(super) struct Volumes(pub(super) Arc<dyn Lvm>);

/// `VGService`.
pub(super) struct Groups(pub(super) Arc<dyn Lvm>, pub(super) CancellationToken);

#[tonic::async_trait]
impl pb::lv_service_server::LvService for Volumes {
    async fn create_lv(
        &self,
        request: Request<pb::CreateLvRequest>,
    ) -> Result<Response<pb::CreateLvResponse>, Status> {
        let asked = request.into_inner();
        let wanted = Create {
            name: asked.name,
            class: asked.device_class,
            size: positive(asked.size_bytes)?,
            tags: asked.tags.into_iter().filter(|tag| !tag.is_empty()).collect(),
            options: asked.lvcreate_option_class,
        };
        let made = self.0.create(wanted).await.map_err(|error| status(&error))?;
        Ok(Response::new(pb::CreateLvResponse { volume: Some(shown(made)) }))
    }

    async fn remove_lv(&self, request: Request<pb::RemoveLvRequest>) -> Result<Response<pb::Empty>, Status> {
        let asked = request.into_inner();
        match self.0.remove(&asked.device_class, &asked.name).await {
            Ok(()) => Ok(Response::new(pb::Empty {})),
            Err(error @ Error::NoClass(_)) => Err(Status::failed_precondition(error.to_string())),
            Err(error) => Err(status(&error)),
        }
    }

    async fn resize_lv(
        &self,
        request: Request<pb::ResizeLvRequest>,
    ) -> Result<Response<pb::ResizeLvResponse>, Status> {
        let asked = request.into_inner();
        let size = positive(asked.size_bytes)?;
        let size =
            self.0.resize(&asked.device_class, &asked.name, size).await.map_err(|error| status(&error))?;
        Ok(Response::new(pb::ResizeLvResponse { size_bytes: signed(size) }))
    }

    async fn create_lv_snapshot(
        &self,
        request: Request<pb::CreateLvSnapshotRequest>,
    ) -> Result<Response<pb::CreateLvSnapshotResponse>, Status> {
        let asked = request.into_inner();
        let mode = match asked.access_type.as_str() {
            "ro" => AccessMode::ReadOnly,
            "rw" => AccessMode::ReadWrite,
            other => {
                return Err(Status::invalid_argument(format!(
                    "access_type is {other:?}; it must be ro or rw"
                )));
            }
        };
        let size = unsigned(asked.size_bytes)?;
        let volumes = self.0.volumes(&asked.device_class).await.map_err(|error| status(&error))?;
        let source = volumes.iter().find(|volume| volume.name == asked.source_volume);
        if let Some(source) = source.filter(|source| size != 0 && size < source.size) {
            let text = format!("the snapshot would have {size} bytes, its source has {}", source.size);
            return Err(Status::out_of_range(text));
        }
        let wanted = Snapshot {
            name: asked.name,
            class: asked.device_class,
            source: asked.source_volume,
            mode,
            size,
            tags: asked.tags.into_iter().filter(|tag| !tag.is_empty()).collect(),
            short_lived: None,
        };
        let taken = self.0.snapshot(wanted).await.map_err(|error| status(&error))?;
        Ok(Response::new(pb::CreateLvSnapshotResponse { snapshot: Some(shown(taken.volume)) }))
    }
}

#[tonic::async_trait]
impl pb::vg_service_server::VgService for Groups {
    async fn get_lv_list(
        &self,
        request: Request<pb::GetLvListRequest>,
    ) -> Result<Response<pb::GetLvListResponse>, Status> {
        let volumes =
            self.0.volumes(&request.into_inner().device_class).await.map_err(|error| status(&error))?;
        Ok(Response::new(pb::GetLvListResponse { volumes: volumes.into_iter().map(shown).collect() }))
    }

    async fn get_free_bytes(
        &self,
        request: Request<pb::GetFreeBytesRequest>,
    ) -> Result<Response<pb::GetFreeBytesResponse>, Status> {
        let capacity =
            self.0.capacity(&request.into_inner().device_class).await.map_err(|error| status(&error))?;
        Ok(Response::new(pb::GetFreeBytesResponse { free_bytes: capacity.free }))
    }

    type WatchStream = Streamed<pb::WatchResponse>;

    async fn watch(&self, _: Request<pb::Empty>) -> Result<Response<Self::WatchStream>, Status> {
        let lvm = self.0.clone();
        let mut changes = lvm.changes();
        let feed = |sender: mpsc::Sender<_>| async move {
            loop {
                changes.mark_unchanged();
                if sender.send(room(&*lvm).await).await.is_err() {
                    return;
                }
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep(TELL_AGAIN) => {}
                }
            }
        };
        Ok(Response::new(fed(&self.1, feed)))
    }
}

/// The room of all classes. One that cannot be asked is left out, and does not hide the others.
async fn room(lvm: &dyn Lvm) -> Result<pb::WatchResponse, Status> {
    let mut response = pb::WatchResponse::default();
    for class in lvm.classes().await.map_err(|error| status(&error))? {
        match lvm.capacity(&class.name).await {
            Ok(capacity) => {
                if class.default {
                    response.free_bytes = capacity.free;
                }
                response.items.push(item(class.name, &capacity));
            }
            Err(error) => {
                tracing::warn!(class = class.name, %error, "watchers are not told of this device class");
            }
        }
    }
    Ok(response)
}

fn item(class: String, capacity: &Capacity) -> pb::WatchItem {
    pb::WatchItem {
        free_bytes: capacity.free,
        device_class: class,
        size_bytes: capacity.size,
        thin_pool: capacity.pool.map(|pool| pb::ThinPoolItem {
            data_percent: pool.data_percent,
            metadata_percent: pool.metadata_percent,
            overprovision_bytes: pool.overprovision,
            size_bytes: pool.size,
        }),
    }
}

fn shown(volume: Volume) -> pb::LogicalVolume {
    let (Access::Device(path) | Access::Directory(path)) = volume.access;
    pb::LogicalVolume {
        name: volume.name,
        dev_major: volume.device.0,
        dev_minor: volume.device.1,
        tags: volume.tags.into_iter().collect(),
        size_bytes: signed(volume.size),
        path: path.to_string_lossy().into_owned(),
        attr: volume.attr,
    }
}

fn positive(size: i64) -> Result<u64, Status> {
    match unsigned(size)? {
        0 => Err(Status::invalid_argument("size_bytes is 0; say how many bytes are wanted")),
        size => Ok(size),
    }
}

fn unsigned(size: i64) -> Result<u64, Status> {
    u64::try_from(size)
        .map_err(|_| Status::invalid_argument(format!("size_bytes is {size}, which is negative")))
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
