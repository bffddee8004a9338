//! Rules about maintenance modes and fences.

use super::now;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::csiaddons::{FenceState, NetworkFence};
use lifeboat_api::finalizers;
use lifeboat_api::ramen::{MMode, MaintenanceMode};
use lifeboat_engine::{Next, variant};
use lifeboat_mirror::halt::freezes;
use lifeboat_mirror::{fence, maintenance};
use std::sync::Arc;

fn mode() -> MaintenanceMode {
    let mut mode = MaintenanceMode::default();
    mode.metadata.generation = Some(3);
    mode.spec.storage_provisioner = "topolvm.io".into();
    mode.spec.target_id = Some("pair-1".into());
    mode.spec.modes = vec![MMode::Failover];
    mode
}

#[test]
fn a_mode_is_reached_when_nothing_comes_in_and_not_before() {
    let check = |rule: &str, mode: MaintenanceMode, open: &[&str], expected: &str| {
        let open = open.iter().map(|uid| (*uid).to_owned()).collect();
        let status =
            maintenance::decide(&maintenance::World { mode: Arc::new(mode), open }, now()).status.unwrap();
        let said =
            status.conditions.first().map(|it| format!(" {}={}", it.type_, it.status)).unwrap_or_default();
        assert_eq!(format!("{}{said}", status.state.unwrap().as_str()), expected, "{rule}");
        assert_eq!(status.observed_generation, Some(3), "{rule}");
    };
    check("still receiving", mode(), &["u1"], "Progressing FailoverActivated=False");
    check("standing still", mode(), &[], "Completed FailoverActivated=True");
    let mut none = mode();
    none.spec.modes = Vec::new();
    check("no mode is asked for", none, &[], "Unknown");
}

#[test]
fn a_mode_stops_what_it_names() {
    let check = |rule: &str, change: &dyn Fn(&mut MaintenanceMode), expected: bool| {
        let mut mode = mode();
        change(&mut mode);
        assert_eq!(freezes(&mode, "topolvm.io", &["pair-1".to_owned()].into()), expected, "{rule}");
    };
    check("by its id", &|_| {}, true);
    check("another relation goes on", &|mode| mode.spec.target_id = Some("pair-2".into()), false);
    check("no id means all", &|mode| mode.spec.target_id = None, true);
    check("another storage", &|mode| mode.spec.storage_provisioner = "ceph".into(), false);
    check("no mode", &|mode| mode.spec.modes.clear(), false);
    check("over", &|mode| mode.metadata.deletion_timestamp = Some(Time(now())), false);
}

#[test]
fn fencing() {
    let check =
        |rule: &str, change: &dyn Fn(&mut NetworkFence), standing: bool, connected: bool, expected: &str| {
            let mut one = NetworkFence::default();
            one.metadata.finalizers = Some(vec![finalizers::NETWORK_FENCE.into()]);
            one.spec.fence_state = FenceState::Fenced;
            one.spec.cidrs = vec!["10.0.0.0/8".into()];
            change(&mut one);
            let decision = fence::decide(&fence::World { fence: Arc::new(one), standing, connected });
            let next = match &decision.next {
                Next::Do(effects) => format!("{effects:?}").trim_matches(['[', ']']).to_owned(),
                Next::Wait { why, .. } => format!("wait {}", variant(why)),
                Next::Settled => "settled".to_owned(),
            };
            let result = decision.status.and_then(|status| status.result);
            let said = result.map_or(next.clone(), |result| format!("{next} {}", result.as_str()));
            assert_eq!(said, expected, "{rule}");
        };
    check("held first", &|fence| fence.metadata.finalizers = None, true, true, "Hold");
    check("offers are withdrawn", &|_| {}, true, true, "CutOff");
    check("connections end", &|_| {}, false, true, "wait Closing");
    check("done", &|_| {}, false, false, "settled Succeeded");
    check("lifted", &|fence| fence.spec.fence_state = FenceState::Unfenced, true, true, "settled Succeeded");
    check("no range", &|fence| fence.spec.cidrs.clear(), false, false, "wait Unreadable Failed");
    check(
        "a bad range",
        &|fence| fence.spec.cidrs.push("ten".into()),
        false,
        false,
        "wait Unreadable Failed",
    );
    let going = |fence: &mut NetworkFence| fence.metadata.deletion_timestamp = Some(Time(now()));
    check("let go", &going, true, true, "Release");
}
