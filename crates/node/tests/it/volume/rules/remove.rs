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

#[test]
fn finalizing_what_was_made_in_other_storage() {
    let abandon = |w: &mut World| note(w, annotations::ABANDON_VOLUME, "true");
    let unserved = |w: &mut World| {
        made(w);
        deleting(w);
        w.home = Home::Unserved("g/pool".into());
    };
    check("nobody can see whether it is there", world(), unserved, "wait Unserved");
    check(
        "it is given up where it is",
        world(),
        |w| {
            unserved(w);
            abandon(w);
        },
        "Release",
    );
    check(
        "what is found is removed, whatever was asked",
        world(),
        |w| {
            unserved(w);
            abandon(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "Remove",
    );
    check(
        "what was never made is nowhere",
        world(),
        |w| {
            unserved(w);
            edit(w, |v| v.status = None);
        },
        "Release",
    );
    check(
        "a local snapshot that was removed after its backup is nowhere",
        backing_up(),
        |w| {
            unserved(w);
            succeeded(w);
            status(w, |s| {
                s.conditions = vec![Condition {
                    type_: "LVMSnapshotCleaned".into(),
                    status: "True".into(),
                    reason: "SuccessfullyCleanedLVMSnapshot".into(),
                    message: String::new(),
                    observed_generation: None,
                    last_transition_time: ago(10),
                }];
            });
            w.disk = seen(None, None);
        },
        "Release",
    );
    check(
        "its storage is named: it is gone",
        world(),
        |w| {
            unserved(w);
            w.home = Home::Served;
        },
        "Release",
    );
    let class_gone = |w: &mut World| {
        made(w);
        deleting(w);
        w.disk = Disk::Unreadable(Error::NoClass("x".into()));
    };
    check(
        "another class names what its class did: it is looked for there",
        world(),
        |w| {
            class_gone(w);
            w.home = Home::Served;
        },
        "Release",
    );
    check(
        "neither its class nor its storage is named",
        world(),
        |w| {
            class_gone(w);
            w.home = Home::Unserved("g".into());
        },
        "wait ClassMissing",
    );
    check(
        "nor ever will be",
        world(),
        |w| {
            class_gone(w);
            abandon(w);
        },
        "Release",
    );
}
