//! Whose it is, and how it is made, copied and grown.

use super::*;

#[test]
fn whose_it_is() {
    check("belongs to this node?", world(), |w| w.node = "n2".into(), "settled");
    check(
        "pending deletion?",
        world(),
        |w| note(w, annotations::PENDING_DELETION, "true"),
        "wait PendingDeletion",
    );
    check(
        "pending deletion comes before deletion: whoever said so removes it",
        world(),
        |w| {
            note(w, annotations::PENDING_DELETION, "true");
            deleting(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "wait PendingDeletion",
    );
    check(
        "add finalizer",
        world(),
        |w| edit(w, |v| v.metadata.finalizers = None),
        r#"Claim { finalizers: ["topolvm.io/logicalvolume"], barrier: None, stored_in: None }"#,
    );
    check(
        "add label (created-by)",
        world(),
        |w| edit(w, |v| v.metadata.labels = None),
        "Claim { finalizers: [], barrier: None, stored_in: None }",
    );
    check(
        "finalizers of others are none of ours",
        world(),
        |w| edit(w, |v| v.metadata.finalizers = Some(vec!["other".into()])),
        r#"Claim { finalizers: ["topolvm.io/logicalvolume"], barrier: None, stored_in: None }"#,
    );
}

#[test]
fn what_has_the_volume_is_written_down() {
    let note =
        |storage: &str| format!(r#"Claim {{ finalizers: [], barrier: None, stored_in: Some("{storage}") }}"#);
    let kept = |w: &mut World, class: &str| {
        w.class_storage = Some(class.into());
        super::note(w, annotations::STORED_IN, "g");
    };
    check("before it is made", world(), |w| w.class_storage = Some("g".into()), &note("g"));
    check("once is enough", world(), |w| kept(w, "g"), "Create { size: 1073741824 }");
    check("its class names another before it is made", world(), |w| kept(w, "h"), &note("h"));
    check(
        "made by an earlier version",
        world(),
        |w| {
            made(w);
            w.disk = seen(on_disk(UID, GIB), None);
            w.class_storage = Some("g".into());
        },
        &note("g"),
    );
    check(
        "its group was renamed, and its class names it so",
        world(),
        |w| {
            made(w);
            kept(w, "h");
            w.disk = seen(on_disk(UID, GIB), None);
        },
        &note("h"),
    );
    check(
        "its class names another that has not got it: where it was stays known",
        world(),
        |w| {
            made(w);
            kept(w, "h");
            w.home = Home::Unserved("g".into());
        },
        "wait Unserved",
    );
    check(
        "a backup does not fail because its snapshot cannot be seen",
        backing_up(),
        |w| {
            kept(w, "h");
            w.disk = seen(None, None);
            w.home = Home::Unserved("g".into());
        },
        "wait Unserved",
    );
}

#[test]
fn a_mirrors_secondary_is_left_to_the_mirror() {
    let secondary = |w: &mut World| note(w, annotations::MIRROR_ROLE, annotations::MIRROR_SECONDARY);
    check("no empty volume in place of the peer's bytes", world(), secondary, "wait Mirrored");
    check(
        "nor is a demoted one lost",
        world(),
        |w| {
            made(w);
            secondary(w);
        },
        "wait Mirrored",
    );
    check(
        "it is held like any other",
        world(),
        |w| {
            secondary(w);
            edit(w, |v| v.metadata.finalizers = None);
        },
        r#"Claim { finalizers: ["topolvm.io/logicalvolume"], barrier: None, stored_in: None }"#,
    );
    check(
        "and goes when it is deleted",
        world(),
        |w| {
            secondary(w);
            deleting(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "Remove",
    );
    check(
        "made primary it is a volume like any other",
        world(),
        |w| {
            note(w, annotations::MIRROR_PEER, "u9");
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "settled | made",
    );
}

#[test]
fn creating() {
    check("list first", world(), |w| w.disk = Disk::Unlisted, "List");
    check("CreateLV", world(), |_| {}, "Create { size: 1073741824 }");
    check(
        "volume exists already: adopt it",
        world(),
        |w| w.disk = seen(on_disk(UID, GIB), None),
        "settled | made",
    );
    check(
        "a half-made volume is not adopted",
        world(),
        |w| w.disk = seen(None, on_disk("staging-u1", GIB)),
        "DropStaging",
    );
    let no_room = Error::NoRoom { class: String::new(), wanted: 2, free: 1 };
    check(
        "no room: the maker looks elsewhere",
        world(),
        |w| w.refused = Some(no_room.clone()),
        "wait Refused | code 8, Refused=True",
    );
    check(
        "unknown device class",
        world(),
        |w| w.disk = Disk::Unreadable(Error::NoClass("x".into())),
        "wait Refused | code 5, Refused=True",
    );
    check(
        "a failed listing is retried and sets no code",
        world(),
        |w| w.disk = Disk::Unreadable(Error::Transient("busy".into())),
        "List",
    );
    check(
        "a transient failure sets no code",
        world(),
        |w| {
            let since = now();
            w.trouble = Some(Trouble {
                effect: "Create".into(),
                class: Class::Transient,
                message: "lvm is busy".into(),
                since,
            });
        },
        "Create { size: 1073741824 }",
    );
    check(
        "a peer's failure is left to its maker",
        world(),
        |w| status(w, |s| s.code = Some(13)),
        "wait Refused",
    );
    let refused_earlier = |w: &mut World, generation: i64| {
        status(w, |s| {
            s.code = Some(8);
            s.message = Some("no room".into());
            s.conditions = vec![Condition {
                type_: "Refused".into(),
                status: "True".into(),
                reason: "RefusedByNode".into(),
                message: "no room".into(),
                observed_generation: Some(generation),
                last_transition_time: ago(10),
            }];
        });
    };
    check("refused as it is", world(), |w| refused_earlier(w, 1), "wait Refused");
    check(
        "refused as it was before an edit: tried again",
        world(),
        |w| {
            refused_earlier(w, 1);
            edit(w, |volume| volume.metadata.generation = Some(2));
        },
        "Create { size: 1073741824 }",
    );
    check(
        "a negative size is no size",
        world(),
        |w| edit(w, |volume| volume.spec.size.0 = "-1Gi".into()),
        "wait Refused | code 3, Refused=True",
    );
    check(
        "nor is what cannot be read",
        world(),
        |w| edit(w, |volume| volume.spec.size.0 = "much".into()),
        "wait Refused | code 3, Refused=True",
    );
    check(
        "a volume that exists outlives a size that is none",
        world(),
        |w| {
            made(w);
            edit(w, |volume| volume.spec.size.0 = "-1Gi".into());
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "settled",
    );
    check("what was made and is gone is not made anew", world(), made, "wait Failed");
    check(
        "a refusal never reaches a volume that exists",
        world(),
        |w| {
            made(w);
            w.disk = seen(on_disk(UID, GIB), None);
            w.refused = Some(no_room);
        },
        "settled",
    );
}

#[test]
fn copying() {
    let taken = |w: &mut World| copies(w, "ro", source(None, None, false));
    check(
        "CreateLVSnapshot",
        world(),
        taken,
        r#"Copy { source: "u0", size: 1073741824, read_only: true, short_lived: false }"#,
    );
    check(
        "clone",
        world(),
        |w| copies(w, "rw", source(None, None, false)),
        r#"Copy { source: "u0", size: 1073741824, read_only: false, short_lived: false }"#,
    );
    check(
        "source missing: never a plain create",
        world(),
        |w| copies(w, "rw", Source::Missing("src".into())),
        "wait SourceMissing",
    );
    check(
        "once made, the source may go",
        world(),
        |w| {
            copies(w, "rw", Source::Missing("src".into()));
            made(w);
            w.disk = seen(on_disk(UID, GIB), None);
        },
        "settled",
    );
    check(
        "access type is ro or rw",
        world(),
        |w| copies(w, "x", source(None, None, false)),
        "wait Refused | code 3, Refused=True",
    );
    check(
        "source without a volume",
        world(),
        |w| {
            taken(w);
            if let Source::Found { volume, .. } = &mut w.source {
                Arc::make_mut(volume).status = None;
            }
        },
        "wait SourceNotMade",
    );
    check(
        "source on another node",
        world(),
        |w| {
            taken(w);
            if let Source::Found { volume, .. } = &mut w.source {
                Arc::make_mut(volume).spec.node_name = "n2".into();
            }
        },
        "wait Refused | code 3, Refused=True",
    );
    check(
        "source in another device class",
        world(),
        |w| {
            taken(w);
            edit(w, |v| v.spec.device_class = Some("ssd".into()));
        },
        "wait Refused | code 3, Refused=True",
    );
    let thick = Error::Unsupported("thick".into());
    check(
        "CreateLVSnapshot on a thick class",
        world(),
        |w| {
            taken(w);
            w.refused = Some(thick);
        },
        "wait Refused | code 12, Refused=True",
    );
    check(
        "a backup of a thick volume uses a short-lived snapshot",
        backing_up(),
        |w| {
            edit(w, |v| v.status = None);
            w.disk = seen(None, None);
        },
        r#"Copy { source: "u0", size: 1073741824, read_only: true, short_lived: true }"#,
    );
}

#[test]
fn expanding() {
    let grown = |w: &mut World| {
        made(w);
        w.disk = seen(on_disk(UID, GIB), None);
        edit(w, |v| v.spec.size = Quantity("2Gi".into()));
    };
    check("ResizeLV", world(), grown, "Grow { size: 2147483648 }");
    check(
        "never shrinks",
        world(),
        |w| {
            grown(w);
            edit(w, |v| v.spec.size = Quantity("1Mi".into()));
        },
        "settled",
    );
    check(
        "a failed expand sets no code",
        world(),
        |w| {
            grown(w);
            w.trouble = Some(Trouble {
                effect: "Grow".into(),
                class: Class::Transient,
                message: "no room".into(),
                since: now(),
            });
        },
        "Grow { size: 2147483648 }",
    );
}
