//! Finalization.

use super::*;

#[test]
fn finalizing() {
    let gone = |w: &mut World| deleting(w);
    check(
        "has finalizer? no",
        world(),
        |w| {
            gone(w);
            edit(w, |v| v.metadata.finalizers = None);
        },
        "settled",
    );
    check(
        "stop what runs",
        backing_up(),
        |w| {
            gone(w);
            job(w, SnapshotOperation::Backup, None);
            w.mount = Some("/m".into());
        },
        "Stop",
    );
    check(
        "unmount if mounted",
        backing_up(),
        |w| {
            gone(w);
            w.mount = Some("/m".into());
        },
        "Unmount",
    );
    check(
        "list before removing",
        world(),
        |w| {
            gone(w);
            w.disk = Disk::Unlisted;
        },
        "List",
    );
    check(
        "RemoveLV",
        world(),
        |w| {
            gone(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "Remove",
    );
    check("a staging volume goes too", restoring(), gone, "Remove");
    check("not found is success", world(), gone, "Release");
    check(
        "a missing device class never drops the finalizer",
        world(),
        |w| {
            gone(w);
            w.disk = Disk::Unreadable(Error::NoClass("x".into()));
        },
        "wait ClassMissing",
    );
    check(
        "a disk that cannot be read is not an empty one",
        world(),
        |w| {
            gone(w);
            w.disk = Disk::Unreadable(Error::Transient("busy".into()));
        },
        "List",
    );
    check(
        "snapshots that would die with it come first",
        world(),
        |w| {
            gone(w);
            w.disk =
                Disk::Seen { published: on_disk(UID, GIB), staging: None, dependants: vec!["u9".into()] };
        },
        "wait Needed",
    );
}
