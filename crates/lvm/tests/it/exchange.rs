//! Two LVM volumes change names: whoever looks sees both all the time, and a crash at any step is finished by the next start.

use crate::fake::{Fault, Lv};
use crate::lvm2::both;
use crate::suite::{SMALL, find, tags, volume};
use lifeboat_lvm::{Error, Lvm};

/// What a crash leaves: after the first step or after the second, or somebody has removed the other by hand.
const LEFT: [(&[&str], &str, &str); 3] = [
    (&["lb.swap.1.a.b", "b"], "first", "second"),
    (&["lb.swap.1.a.b", "a"], "second", "first"),
    (&["lb.swap.1.a.b"], "first", ""),
];

/// The volume that was called `a` has the tag `first`, and the other `second`.
fn place(fake: &crate::fake::FakeLvm, names: &[&str]) {
    let mut state = fake.state.lock();
    state.volumes.clear();
    for name in names {
        let tag = if name.starts_with("lb.swap.") { "first" } else { "second" };
        let lv = Lv {
            size: SMALL,
            tags: tags(&["lifeboat.volume", tag]),
            pool: Some("pool".to_owned()),
            ..Lv::default()
        };
        state.volumes.insert((*name).to_owned(), lv);
    }
}

#[tokio::test]
async fn a_crash_between_two_steps_is_seen_by_nobody_and_finished() {
    for (names, a, b) in LEFT {
        let (fake, lvm) = both();
        place(&fake, names);
        let told = async |name: &str| {
            let found = find(&*lvm, "thin", name).await;
            found.map(|found| found.tags.into_iter().next().unwrap()).unwrap_or_default()
        };
        assert_eq!((told("a").await.as_str(), told("b").await.as_str()), (a, b), "{names:?}");
        lvm.recover().await;
        // It was to be exchanged, so it is; what has no other half stays what it was.
        let expected = if b.is_empty() { ("first", "") } else { ("second", "first") };
        assert_eq!((told("a").await.as_str(), told("b").await.as_str()), expected, "{names:?}");
        assert!(!fake.state.lock().volumes.keys().any(|name| name.starts_with("lb.")), "{names:?}");
    }
}

#[tokio::test]
async fn a_step_that_fails_changes_nothing_and_one_in_use_is_left_alone() {
    let (fake, lvm) = both();
    lvm.create(volume("thin", "a", SMALL)).await.unwrap();
    lvm.create(volume("thin", "b", 2 * SMALL)).await.unwrap();
    fake.state.lock().volumes.get_mut("b").unwrap().open = true;
    let busy = lvm.exchange("thin", "a", "b").await;
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    fake.state.lock().volumes.get_mut("b").unwrap().open = false;
    let long = ["n".repeat(70), "m".repeat(70)];
    for name in &long {
        lvm.create(volume("thin", name, SMALL)).await.unwrap();
    }
    let refused = lvm.exchange("thin", &long[0], &long[1]).await;
    assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
    let sizes = async |name: &str| find(&*lvm, "thin", name).await.unwrap().size;
    // The second step fails: the first is taken back.
    fake.go();
    fake.fault("lvrename", Fault::Waits);
    fake.fault("lvrename", Fault::Fails(5, "not today"));
    let failed = lvm.exchange("thin", "a", "b").await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!((sizes("a").await, sizes("b").await), (SMALL, 2 * SMALL));
    assert!(fake.state.lock().volumes.contains_key("a"));
    // It fails after it has worked, and nobody can tell: what has begun is finished later.
    fake.fault("lvrename", Fault::HalfDone);
    let failed = lvm.exchange("thin", "a", "b").await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!((sizes("a").await, sizes("b").await), (SMALL, 2 * SMALL), "not begun, for whoever looks");
    lvm.recover().await;
    assert_eq!((sizes("a").await, sizes("b").await), (2 * SMALL, SMALL));
}
