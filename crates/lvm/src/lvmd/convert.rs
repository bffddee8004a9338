//! Between our words and those on the wire.

use super::pb::own;
use crate::{Access, AccessMode, ClassKind, DeviceClass, Error, Volume};
use std::path::PathBuf;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// Carries the typed error, so that a client of ours gets back what the back end said.
const ERROR_KEY: &str = "lifeboat-error-bin";

/// The status of an error, with TopoLVM's codes.
pub(super) fn status(error: &Error) -> Status {
    let code = match error {
        Error::NoClass(_) | Error::NoVolume { .. } => Code::NotFound,
        Error::Exists { .. } => Code::AlreadyExists,
        Error::NoRoom { .. } => Code::ResourceExhausted,
        Error::Unsupported(_) => Code::Unimplemented,
        Error::Invalid(_) => Code::InvalidArgument,
        Error::Busy { .. } => Code::FailedPrecondition,
        Error::Transient(_) => Code::Internal,
    };
    with_error(Status::new(code, error.to_string()), error)
}

fn with_error(mut status: Status, error: &Error) -> Status {
    // Long texts of LVM would not fit into a header; then the code alone has to do.
    let text = serde_json::to_vec(error).unwrap_or_default();
    if text.len() < 6000 {
        status.metadata_mut().insert_bin(ERROR_KEY, MetadataValue::from_bytes(&text));
    }
    status
}

/// The error that a server of ours meant.
pub(super) fn error(status: &Status) -> Error {
    let carried = status.metadata().get_bin(ERROR_KEY).and_then(|value| value.to_bytes().ok());
    let typed = carried.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    typed.unwrap_or_else(|| {
        Error::Transient(format!(
            "lvmd did not answer as expected ({:?}): {}",
            status.code(),
            status.message()
        ))
    })
}

pub(super) fn volume_out(volume: Volume) -> own::Volume {
    let access = match volume.access {
        Access::Device(path) => own::volume::Access::Device(path.to_string_lossy().into_owned()),
        Access::Directory(path) => own::volume::Access::Directory(path.to_string_lossy().into_owned()),
    };
    own::Volume {
        name: volume.name,
        size: volume.size,
        tags: volume.tags.into_iter().collect(),
        access: Some(access),
        origin: volume.origin,
        read_only: volume.mode == AccessMode::ReadOnly,
        attr: volume.attr,
        major: volume.device.0,
        minor: volume.device.1,
    }
}

pub(super) fn volume_in(volume: own::Volume) -> Result<Volume, Error> {
    let access = match volume.access {
        Some(own::volume::Access::Device(path)) => Access::Device(PathBuf::from(path)),
        Some(own::volume::Access::Directory(path)) => Access::Directory(PathBuf::from(path)),
        None => return Err(incomplete("a volume without its place")),
    };
    Ok(Volume {
        name: volume.name,
        size: volume.size,
        tags: volume.tags.into_iter().collect(),
        access,
        origin: volume.origin,
        mode: mode(volume.read_only),
        attr: volume.attr,
        device: (volume.major, volume.minor),
    })
}

pub(super) fn mode(read_only: bool) -> AccessMode {
    if read_only { AccessMode::ReadOnly } else { AccessMode::ReadWrite }
}

pub(super) fn class_out(class: DeviceClass) -> own::DeviceClass {
    let kind = match class.kind {
        ClassKind::Thick => own::ClassKind::Thick,
        ClassKind::Thin => own::ClassKind::Thin,
        ClassKind::Directory => own::ClassKind::Directory,
    };
    own::DeviceClass { name: class.name, default: class.default, kind: kind.into(), storage: class.storage }
}

pub(super) fn class_in(class: own::DeviceClass) -> Result<DeviceClass, Error> {
    let kind = match class.kind() {
        own::ClassKind::Thick => ClassKind::Thick,
        own::ClassKind::Thin => ClassKind::Thin,
        own::ClassKind::Directory => ClassKind::Directory,
        own::ClassKind::Unspecified => return Err(incomplete("a device class of an unknown kind")),
    };
    Ok(DeviceClass { name: class.name, default: class.default, kind, storage: class.storage })
}

pub(super) fn incomplete(what: &str) -> Error {
    Error::Transient(format!("lvmd told of {what}: is it of another version?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_topolvms_codes_and_come_back_whole() {
        let name = || "n".to_owned();
        let check = |given: Error, code: Code| {
            let status = status(&given);
            assert_eq!(status.code(), code, "{given}");
            assert_eq!(error(&status), given);
        };
        check(Error::NoClass(name()), Code::NotFound);
        check(Error::NoVolume { class: name(), name: name() }, Code::NotFound);
        check(Error::Exists { class: name(), name: name() }, Code::AlreadyExists);
        check(Error::NoRoom { class: name(), wanted: 2, free: 1 }, Code::ResourceExhausted);
        check(Error::Unsupported(name()), Code::Unimplemented);
        check(Error::Invalid(name()), Code::InvalidArgument);
        check(Error::Busy { name: name(), detail: name() }, Code::FailedPrecondition);
        check(Error::Transient(name()), Code::Internal);
        let long = status(&Error::Transient("x".repeat(10_000)));
        assert!(matches!(error(&long), Error::Transient(_)));
        assert!(matches!(error(&Status::unavailable("gone")), Error::Transient(_)));
    }
}
