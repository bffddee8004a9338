//! Which changes of a claim wake its groups, and how intervals become schedules.

use super::claim;
use lifeboat_protect::triggers::claim_update;
use lifeboat_protect::words::cron;
use serde_json::{Value, json};

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
    check("anything else", same, |c| c["metadata"]["annotations"]["a"] = json!("b"), true);
}

/// D28, H1.
#[test]
fn d28_intervals_become_schedules_that_are_never_slower_than_asked() {
    let check = |interval: &str, schedule: Option<&str>| {
        assert_eq!(cron(interval).as_deref(), schedule, "{interval}");
    };
    check("5m", Some("*/5 * * * *"));
    check("25m", Some("*/20 * * * *"));
    check("59m", Some("*/30 * * * *"));
    check("60m", Some("0 */1 * * *"));
    check("90m", Some("0 */1 * * *"));
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
fn a_pod_without_a_node_holds_no_claim_that_is_being_deleted() {
    let check = |rule: &str, node: Option<&str>, phase: &str, going: bool, expected: bool| {
        let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [], "nodeName": node }, "status": { "phase": phase } });
        let claim = claim(|claim| {
            if going {
                claim["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            }
        });
        let pod = std::sync::Arc::new(serde_json::from_value(pod).unwrap());
        assert_eq!(lifeboat_protect::triggers::uses(&pod, &claim), expected, "{rule}");
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
