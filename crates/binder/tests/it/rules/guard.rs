//! What is in use is kept.

use crate::rules::{check, start, told};
use crate::things::{VolumeThings, claim, volume};
use lifeboat_testbed::fixtures::With;

#[test]
fn guarding() {
    use lifeboat_binder::protect::{
        CLAIM_FINALIZER, ClaimGuardWorld, VOLUME_FINALIZER, decide_claim, decide_volume,
    };
    let going = |mut claim: lifeboat_binder::lean::PersistentVolumeClaim| {
        claim.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
        claim
    };
    let guarded = || claim().with(|claim| claim.metadata.finalizers = Some(vec![CLAIM_FINALIZER.into()]));
    let row = |rule: &str, claim, pods: &[&str], asked: Option<bool>, expected: &str| {
        let pods = pods.iter().map(|pod| (*pod).to_owned()).collect();
        let world = ClaimGuardWorld { claim: std::sync::Arc::new(claim), pods, asked };
        check(rule, &told(&decide_claim(&world, start().now).next, None), expected);
    };
    row("a claim without the finalizer gets it", claim(), &[], None, "Do(Guard)");
    row("a claim that has it is left alone", guarded(), &[], None, "Settled");
    row("one that is going and used stays", going(guarded()), &["p"], None, "Wait(ByPods)");
    row(
        "one that is going and seems unused: the server is asked",
        going(guarded()),
        &[],
        None,
        "Do(AskForPods)",
    );
    row("the server knows a pod", going(guarded()), &[], Some(true), "Wait(ByUnseenPod)");
    row("the server knows none", going(guarded()), &[], Some(false), "Do(Release)");
    row("one that is going gets no finalizer any more", going(claim()), &[], None, "Settled");
    let row =
        |rule: &str, volume, expected: &str| check(rule, &told(&decide_volume(&volume).next, None), expected);
    row("a volume without the finalizer gets it", volume("v"), "Do(Guard)");
    row(
        "going and bound stays",
        volume("v").finalizer(VOLUME_FINALIZER).deleting().in_phase("Bound"),
        "Wait(ByClaim)",
    );
    row("going and not bound", volume("v").finalizer(VOLUME_FINALIZER).deleting(), "Do(Release)");
}
