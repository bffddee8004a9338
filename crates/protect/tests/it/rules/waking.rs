//! Which changes of a claim or a pod wake its groups, what is said of pods, and how intervals become schedules.

use super::{claim, group, seen};
use k8s_openapi::api::core::v1::Pod;
use lifeboat_api::Interval;
use lifeboat_engine::Change;
use lifeboat_engine::conditions::Holds;
use lifeboat_protect::status::pods_ready;
use lifeboat_protect::triggers::{self, claim_update};
use lifeboat_protect::world::{Claim, UsingPod};
use serde_json::{Value, json};
use std::sync::Arc;

const VR: &str = "volumereplicationgroups.ramendr.openshift.io/pvc-vr-protection";
const PROTECTED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-protected";
const ARCHIVED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-archived";

fn check(rule: &str, before: fn(&mut Value), after: fn(&mut Value), wakes: bool) {
    let both = |claim: &mut Value| {
        before(claim);
        after(claim);
    };
    assert_eq!(claim_update(&claim(before), &claim(both)), wakes, "{rule}");
}

#[test]
fn updates_of_a_claim() {
    let same: fn(&mut Value) = |_| {};
    check("our finalizer comes", same, |c| c["metadata"]["finalizers"] = json!([VR]), false);
    check(
        "our finalizer goes",
        |c| c["metadata"]["finalizers"] = json!([VR]),
        |c| c["metadata"]["finalizers"] = json!([]),
        false,
    );
    check(
        "it is marked as protected",
        same,
        |c| c["metadata"]["annotations"][PROTECTED] = json!("protected"),
        false,
    );
    check("it is marked as recorded", same, |c| c["metadata"]["annotations"][ARCHIVED] = json!("x"), false);
    check(
        "the mark of its record changes",
        |c| c["metadata"]["annotations"][ARCHIVED] = json!("x"),
        |c| c["metadata"]["annotations"][ARCHIVED] = json!("y"),
        true,
    );
    check("labels change", same, |c| c["metadata"]["labels"]["app"] = json!("other"), true);
    check(
        "D24: labels change together with our finalizer",
        same,
        |c| {
            c["metadata"]["labels"]["app"] = json!("other");
            c["metadata"]["finalizers"] = json!([VR]);
        },
        true,
    );
    check(
        "our own labels come",
        same,
        |c| c["metadata"]["labels"]["ramendr.openshift.io/owner-name"] = json!("web"),
        false,
    );
    check("the spec changes", same, |c| c["spec"]["resources"]["requests"]["storage"] = json!("2Gi"), true);
    check(
        "it becomes bound",
        |c| c["status"]["phase"] = json!("Pending"),
        |c| c["status"]["phase"] = json!("Bound"),
        true,
    );
    check(
        "it is not bound",
        |c| c["status"]["phase"] = json!("Pending"),
        |c| c["metadata"]["annotations"]["a"] = json!("b"),
        false,
    );
    check(
        "no pod uses it any more",
        |c| c["metadata"]["finalizers"] = json!(["kubernetes.io/pvc-protection"]),
        |c| c["metadata"]["finalizers"] = json!([]),
        true,
    );
    check(
        "it is deleted and not ours",
        same,
        |c| c["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z"),
        false,
    );
    check(
        "it is deleted and ours",
        |c| c["metadata"]["finalizers"] = json!([VR]),
        |c| c["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z"),
        true,
    );
    check(
        "several changes come as one after a watch was cut off",
        |c| c["metadata"]["finalizers"] = json!([]),
        |c| {
            c["metadata"]["finalizers"] = json!([VR]);
            c["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        },
        true,
    );
    check(
        "our labels and finalizer come together with a deletion after a watch was cut off",
        same,
        |c| {
            c["metadata"]["finalizers"] = json!([VR]);
            c["metadata"]["labels"]["ramendr.openshift.io/owner-name"] = json!("web");
            c["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        },
        true,
    );
    check(
        "our labels and finalizer come",
        same,
        |c| {
            c["metadata"]["finalizers"] = json!([VR]);
            c["metadata"]["labels"]["ramendr.openshift.io/owner-name"] = json!("web");
        },
        false,
    );
    check("anything else", same, |c| c["metadata"]["annotations"]["a"] = json!("b"), true);
}

/// D28, H1.
#[test]
fn d28_intervals_become_schedules_that_are_never_slower_than_asked() {
    let check = |interval: &str, schedule: Option<&str>| {
        assert_eq!(Interval::of(interval).and_then(Interval::cron).as_deref(), schedule, "{interval}");
    };
    check("5m", Some("*/5 * * * *"));
    check("25m", Some("*/20 * * * *"));
    check("59m", Some("*/30 * * * *"));
    check("60m", Some("0 */1 * * *"));
    check("90m", Some("0 */1 * * *"));
    check("90s", Some("*/1 * * * *"));
    // Copies follow one another.
    check("59s", None);
    check("1h", Some("0 */1 * * *"));
    check("5h", Some("0 */4 * * *"));
    check("24h", Some("0 0 */1 * *"));
    check("36h", Some("0 0 */1 * *"));
    check("2d", Some("0 0 */2 * *"));
    check("40d", Some("0 0 */28 * *"));
    check("0m", None);
    check("m", None);
    check("", None);
    check("5w", None);
}

#[test]
fn updates_of_a_group() {
    let made = |change: fn(&mut Value)| Some(Arc::new(group(change)));
    let check = |rule: &str, after: fn(&mut Value), wakes: bool| {
        assert_eq!(triggers::group(&Change { old: made(|_| {}), new: made(after) }), wakes, "{rule}");
    };
    check("nothing changes", |_| {}, false);
    check("its status changes", |group| group["status"]["state"] = json!("Primary"), false);
    check("our finalizer goes", |group| group["metadata"]["finalizers"] = json!([]), false);
    check("its generation changes", |group| group["metadata"]["generation"] = json!(4), true);
    check("an annotation changes", |group| group["metadata"]["annotations"]["a"] = json!("b"), true);
    check("a label changes", |group| group["metadata"]["labels"] = json!({"a": "b"}), true);
    check(
        "it is being deleted",
        |group| group["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z"),
        true,
    );
    check("it is another one", |group| group["metadata"]["uid"] = json!("v"), true);
    assert!(triggers::group(&Change { old: None, new: made(|_| {}) }), "it comes");
    assert!(triggers::group(&Change { old: made(|_| {}), new: None }), "it goes");
}

#[test]
fn a_claim_that_a_mover_made_is_selected_only_where_no_mover_is_used() {
    use lifeboat_protect::words::GroupWords as _;
    let temporary = claim(|claim| {
        claim["metadata"]["labels"]["app.kubernetes.io/created-by"] = json!("volsync");
    });
    let check = |change: fn(&mut Value), expected: (bool, bool)| {
        let group = group(change);
        assert_eq!((group.selects(&claim(|_| {})), group.selects(&temporary)), expected);
    };
    check(|_| {}, (true, false));
    check(|group| group["spec"]["volSync"] = json!({ "disabled": true }), (true, true));
    check(|group| group["spec"]["pvcSelector"] = json!({ "matchLabels": { "app": "shop" } }), (false, false));
}

#[test]
fn a_pod_without_a_node_holds_no_claim_that_is_being_deleted() {
    let check = |rule: &str, node: Option<&str>, phase: &str, going: bool, expected: bool| {
        let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [], "nodeName": node }, "status": { "phase": phase } });
        let claim = claim(|claim| {
            if going {
                claim["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            }
        });
        let pod = Arc::new(serde_json::from_value(pod).unwrap());
        assert_eq!(triggers::uses(&pod, &claim), expected, "{rule}");
    };
    check("it runs", Some("n"), "Running", true, true);
    check("it waits for a node, which nobody gives it any more", None, "Pending", true, false);
    check("it waits for a node, and may get one", None, "Pending", false, true);
    check("it has ended", Some("n"), "Succeeded", false, false);
}

#[test]
fn a_claim_that_ramen_restored_is_the_applications() {
    use lifeboat_protect::words::is_movers_own;
    let made = |notes: Value, finalizers: Value| {
        claim(|claim| {
            claim["metadata"]["labels"]["ramendr.openshift.io/created-by-ramen"] = json!("true");
            claim["metadata"]["annotations"] = notes;
            claim["metadata"]["finalizers"] = finalizers;
        })
    };
    assert!(is_movers_own(&made(json!({}), json!([]))), "one that a mover made for itself");
    let mark = json!({ lifeboat_api::annotations::RESTORE: "True" });
    assert!(!is_movers_own(&made(mark, json!([]))), "one that is marked as restored");
    let held = json!([lifeboat_api::finalizers::PVC_VOLSYNC]);
    assert!(!is_movers_own(&made(json!({}), held)), "one that is protected");
}

/// What of a pod's life a group is told of.
#[test]
fn updates_of_a_pod() {
    let pod = |change: fn(&mut Value)| {
        let mut pod = json!({
            "metadata": {"name": "web-0", "namespace": "app", "uid": "p"}, "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        change(&mut pod);
        Some(Arc::new(serde_json::from_value::<Pod>(pod).unwrap()))
    };
    let check = |rule: &str, after: fn(&mut Value), wakes: bool| {
        assert_eq!(triggers::pod(&Change { old: pod(|_| {}), new: pod(after) }), wakes, "{rule}");
    };
    check("nothing changes", |_| {}, false);
    check("a label changes", |pod| pod["metadata"]["labels"] = json!({"a": "b"}), false);
    check("it is not ready any more", |pod| pod["status"]["conditions"][0]["status"] = json!("False"), true);
    check("it ends", |pod| pod["status"]["phase"] = json!("Succeeded"), true);
    check(
        "it is being deleted",
        |pod| pod["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z"),
        true,
    );
    check("it is another one", |pod| pod["metadata"]["uid"] = json!("q"), true);
}

#[test]
fn pods_are_ready_or_named() {
    let used = |name: &str, pods: &[(&str, Option<&str>)]| {
        let mut used = seen(claim(|claim| claim["metadata"]["name"] = json!(name)));
        used.pods = pods
            .iter()
            .map(|(name, why)| UsingPod {
                name: (*name).to_owned(),
                ready: why.map_or(Ok(()), |why| Err(why.to_owned())),
            })
            .collect();
        used
    };
    let check = |claims: &[Claim], expected: (&str, &str)| {
        let said = pods_ready(&claims.iter().collect::<Vec<_>>());
        assert_eq!((said.reason, said.message.as_str()), expected);
        assert_eq!(said.holds == Holds::True, expected.0 == "PodsReady");
    };
    let ready = "All pods that use the protected PVCs are ready.";
    check(&[used("a", &[("web-0", None)])], ("PodsReady", ready));
    check(&[used("a", &[]), used("b", &[])], ("NoPods", "No pod uses PVC a, b."));
    check(
        &[used("a", &[("web-0", None)]), used("b", &[])],
        ("PodsReady", &format!("{ready} No pod uses PVC b.")),
    );
    // One pod that uses two claims is told once.
    let bad = ("web-0", Some("CreateContainerError: no volume"));
    check(
        &[used("a", &[bad]), used("b", &[bad, ("web-1", None)])],
        ("PodsNotReady", "Pod web-0 is not ready: CreateContainerError: no volume."),
    );
}
