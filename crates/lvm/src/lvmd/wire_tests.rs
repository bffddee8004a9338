//! The bytes that TopoLVM's clients send and expect, written by hand from the field numbers.

use super::*;
use prost::Message;

/// A field that is a number.
fn number(field: u8, value: u8) -> Vec<u8> {
    assert!(value < 128);
    vec![field << 3, value]
}

/// A field that is a text or a message.
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2, u8::try_from(value.len()).unwrap()];
    out.extend_from_slice(value);
    out
}

fn double(field: u8, value: f64) -> Vec<u8> {
    let mut out = vec![field << 3 | 1];
    out.extend_from_slice(&value.to_le_bytes());
    out
}

fn check<M: Message + Default + PartialEq + std::fmt::Debug>(message: M, fields: &[Vec<u8>]) {
    let wire = fields.concat();
    assert_eq!(message.encode_to_vec(), wire, "{message:?}");
    assert_eq!(M::decode(wire.as_slice()).unwrap(), message);
}

fn text(value: &str) -> String {
    value.to_owned()
}

#[test]
fn messages_have_topolvms_field_numbers() {
    let volume = pb::LogicalVolume {
        name: text("n"),
        dev_major: 1,
        dev_minor: 2,
        tags: vec![text("t"), text("u")],
        size_bytes: 3,
        path: text("p"),
        attr: text("a"),
    };
    let volume_bytes = [
        bytes(1, b"n"),
        number(3, 1),
        number(4, 2),
        bytes(5, b"t"),
        bytes(5, b"u"),
        number(6, 3),
        bytes(7, b"p"),
        bytes(8, b"a"),
    ];
    check(volume.clone(), &volume_bytes);
    let volume_bytes = volume_bytes.concat();

    check(
        pb::CreateLvRequest {
            name: text("n"),
            tags: vec![text("t")],
            device_class: text("d"),
            lvcreate_option_class: text("o"),
            size_bytes: 7,
        },
        &[bytes(1, b"n"), bytes(3, b"t"), bytes(4, b"d"), bytes(5, b"o"), number(6, 7)],
    );
    check(pb::CreateLvResponse { volume: Some(volume.clone()) }, &[bytes(1, &volume_bytes)]);
    check(
        pb::RemoveLvRequest { name: text("n"), device_class: text("d") },
        &[bytes(1, b"n"), bytes(2, b"d")],
    );
    check(
        pb::CreateLvSnapshotRequest {
            name: text("n"),
            tags: vec![text("t")],
            device_class: text("d"),
            source_volume: text("s"),
            access_type: text("ro"),
            size_bytes: 7,
        },
        &[bytes(1, b"n"), bytes(2, b"t"), bytes(3, b"d"), bytes(4, b"s"), bytes(6, b"ro"), number(7, 7)],
    );
    check(pb::CreateLvSnapshotResponse { snapshot: Some(volume.clone()) }, &[bytes(1, &volume_bytes)]);
    check(
        pb::ResizeLvRequest { name: text("n"), device_class: text("d"), size_bytes: 7 },
        &[bytes(1, b"n"), bytes(3, b"d"), number(7, 7)],
    );
    check(pb::ResizeLvResponse { size_bytes: 7 }, &[number(1, 7)]);
    check(pb::GetLvListRequest { device_class: text("d") }, &[bytes(1, b"d")]);
    check(
        pb::GetLvListResponse { volumes: vec![volume.clone(), volume] },
        &[bytes(1, &volume_bytes), bytes(1, &volume_bytes)],
    );
    check(pb::GetFreeBytesRequest { device_class: text("d") }, &[bytes(1, b"d")]);
    check(pb::GetFreeBytesResponse { free_bytes: 7 }, &[number(1, 7)]);
    let pool =
        pb::ThinPoolItem { data_percent: 1.5, metadata_percent: 2.5, overprovision_bytes: 3, size_bytes: 4 };
    let pool_bytes = [double(1, 1.5), double(2, 2.5), number(3, 3), number(4, 4)];
    check(pool, &pool_bytes);
    let item = pb::WatchItem { free_bytes: 1, device_class: text("d"), size_bytes: 3, thin_pool: Some(pool) };
    let item_bytes = [number(1, 1), bytes(2, b"d"), number(3, 3), bytes(4, &pool_bytes.concat())];
    check(item.clone(), &item_bytes);
    check(
        pb::WatchResponse { free_bytes: 1, items: vec![item] },
        &[number(1, 1), bytes(2, &item_bytes.concat())],
    );
    check(pb::Empty {}, &[]);
}

#[test]
fn services_have_topolvms_names() {
    use tonic::server::NamedService;
    type Lv = pb::lv_service_server::LvServiceServer<Volumes>;
    type Vg = pb::vg_service_server::VgServiceServer<Groups>;
    assert_eq!((Lv::NAME, Vg::NAME), ("proto.LVService", "proto.VGService"));
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    assert_eq!(positive(1).unwrap(), 1);
    assert_eq!(positive(0).unwrap_err().code(), tonic::Code::InvalidArgument);
    assert_eq!(unsigned(-1).unwrap_err().code(), tonic::Code::InvalidArgument);
}
