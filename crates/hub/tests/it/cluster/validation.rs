//! Whether a cluster can be used: a row for each thing that may be in the way.

use crate::cluster::plain::{
    self, End, NOW, answer, applied, config, pair, settle, settle_at, silent, work_mut, world,
};
use jiff::Timestamp;
use lifeboat_api::ramen::DRClusterConfig;
use lifeboat_engine::{Class, Next, ObjectKey, Trouble};
use lifeboat_hub::cluster::check::Failure;
use lifeboat_hub::cluster::decide::{Effect, decide};
use lifeboat_hub::cluster::manifests::{CONFIG_WORK, OPERATOR_WORK, ROLES_WORK, STORES_WORK};
use lifeboat_hub::cluster::survey::{Known, Survey};
use lifeboat_hub::cluster::why::Wait;
use lifeboat_hub::cluster::world::{Agent, World};
use lifeboat_hub::works;
use serde_json::json;

fn check(change: impl FnOnce(&mut World), status: &str, reason: &str) -> End {
    let mut world = world(json!({}));
    settle(&mut world);
    change(&mut world);
    let end = settle(&mut world);
    assert_eq!(end.says("Validated"), pair(status, reason), "{:?}", end.why());
    end
}

fn trouble(effect: &str) -> Option<Trouble> {
    let since = plain::now();
    Some(Trouble { effect: effect.into(), class: Class::Refused, message: "forbidden".into(), since })
}

#[test]
fn a_cluster_with_everything_in_place_is_validated() {
    let end = check(|_| {}, "True", "Succeeded");
    assert_eq!(end.phase(), "Available");
    assert_eq!(end.decision.next, Next::Settled);
    assert_eq!(end.says("Fenced"), pair("False", "Clean"));
    assert_eq!(end.says("Clean"), pair("True", "Clean"));
}

#[test]
fn a_new_cluster_is_adopted_before_anything_else() {
    let mut world = world(json!({}));
    let cluster = std::sync::Arc::make_mut(&mut world.cluster);
    cluster.metadata.finalizers = None;
    let decision = decide(&world, plain::now());
    assert_eq!((decision.next, decision.status), (Next::Do(vec![Effect::Adopt]), None));
    world.trouble = trouble("Adopt");
    let shown = decide(&world, plain::now()).status.unwrap();
    assert_eq!(shown.conditions[0].reason, "FinalizerAddFailed");
}

#[test]
fn without_configuration_it_waits_for_it() {
    let end = check(|world| world.config = Err("no ConfigMap".into()), "False", "ConfigMapGetFailed");
    assert_eq!(end.why(), Some(&Wait::NoConfig("no ConfigMap".into())));
}

#[test]
fn what_could_not_be_written_is_said() {
    check(|world| world.trouble = trouble("Send"), "False", "DrClustersDeployFailed");
    check(|world| world.trouble = trouble("SendStores"), "False", "DrClustersDeployFailed");
    check(|world| world.trouble = trouble("Ask"), "False", "Error");
}

#[test]
fn a_store_that_is_not_configured_is_not_there() {
    let end = check(|world| world.config = Ok(config("s3StoreProfiles: []")), "False", "s3ConnectionFailed");
    assert!(end.message("Validated").contains("no store profile east"), "{}", end.message("Validated"));
    let gone = |world: &mut World| drop(world.secrets.insert("east".into(), None));
    assert!(check(gone, "False", "s3ConnectionFailed").message("Validated").contains("keys-east"));
}

#[test]
fn every_way_in_which_a_store_fails_has_its_word() {
    for reason in ["s3ConnectionFailed", "s3BucketNotFound", "s3ListFailed"] {
        let fail = |world: &mut World| {
            let question = world.check.answer.clone().unwrap().question;
            let failure =
                Failure { reason: reason.into(), sentence: "the store east cannot be used: no".into() };
            world.check.answer = Some(answer(&question, Err(failure)));
        };
        let end = check(fail, "False", reason);
        let Next::Wait { until, .. } = end.decision.next else { panic!("{:?}", end.decision) };
        assert_eq!(until, Timestamp::from_second(NOW + 10).ok(), "it is tried again then");
    }
}

#[test]
fn a_store_that_failed_is_tried_again_when_its_pause_is_over_or_its_keys_change() {
    let broken = || {
        let mut world = world(json!({}));
        settle(&mut world);
        let question = world.check.answer.clone().unwrap().question;
        world.check.answer = Some(answer(&question, Err(Failure::unasked("no"))));
        world
    };
    let tries = |end: &End| end.done.iter().filter(|effect| matches!(effect, Effect::Try { .. })).count();
    let mut early = broken();
    assert_eq!(tries(&settle(&mut early)), 0);
    let mut late = broken();
    let end = settle_at(&mut late, Timestamp::from_second(NOW + 11).unwrap());
    assert_eq!((tries(&end), end.says("Validated")), (1, pair("True", "Succeeded")));
    let mut rotated = broken();
    rotated.secrets.insert("east".into(), Some("s1@2".into()));
    let end = settle(&mut rotated);
    assert_eq!((tries(&end), end.says("Validated")), (1, pair("True", "Succeeded")));
}

#[test]
fn while_a_store_is_tried_what_was_known_holds_and_a_new_cluster_is_unknown() {
    let end = check(
        |world| {
            world.check.answer = None;
            world.check.busy = Some("q".into());
        },
        "True",
        "Succeeded",
    );
    assert_eq!(end.why(), Some(&Wait::StoreBeingTried("east".into())));
    let mut fresh = world(json!({}));
    fresh.check.busy = Some("q".into());
    assert_eq!(settle(&mut fresh).says("Validated"), pair("Unknown", "Initializing"));
    // What held for another generation does not hold for this one.
    let mut edited = world(json!({}));
    settle(&mut edited);
    edited.check = lifeboat_hub::cluster::check::CheckState { busy: Some("q".into()), answer: None };
    std::sync::Arc::make_mut(&mut edited.cluster).metadata.generation = Some(4);
    assert_eq!(settle(&mut edited).says("Validated"), pair("Unknown", "Initializing"));
}

#[test]
fn no_store_at_all_is_a_choice() {
    let mut world = world(json!({ "s3ProfileName": "NoS3" }));
    let end = settle(&mut world);
    assert_eq!(end.says("Validated"), pair("True", "Succeeded"));
    assert!(world.check.answer.is_none());
}

#[test]
fn one_store_of_a_pair_spoils_only_its_own_cluster() {
    // West's keys are gone: east gets its own, and is well.
    let mut world = world(json!({}));
    world.secrets.insert("west".into(), None);
    assert_eq!(settle(&mut world).says("Validated"), pair("True", "Succeeded"));
    let carried = &world.works[&ObjectKey::new("east", STORES_WORK)];
    assert_eq!(
        carried.metadata.annotations.as_ref().unwrap()["ramendr.openshift.io/carried-versions"],
        "east=s1@1"
    );
}

#[test]
fn a_cluster_must_have_joined_and_said_who_it_is() {
    let nothing = |change: fn(&mut World), reason: &str| {
        let mut world = world(json!({}));
        change(&mut world);
        let end = settle(&mut world);
        assert_eq!(end.says("Validated"), pair("False", reason), "{:?}", end.why());
        world
    };
    let world = nothing(|world| world.managed.joined = false, "DRClusterConfigInProgress");
    assert!(world.works.is_empty(), "its namespace may not even exist");
    let world = nothing(|world| world.managed.id = None, "DRClusterConfigInProgress");
    assert!(!world.works.contains_key(&ObjectKey::new("east", CONFIG_WORK)));
}

#[test]
fn what_was_sent_must_be_applied_as_it_is_now() {
    for work in [OPERATOR_WORK, STORES_WORK] {
        let reason = "DrClustersDeployStatusCheckFailed";
        check(|world| work_mut(world, "east", work, |work| work.status = None), "False", reason);
        let refused = check(
            |world| work_mut(world, "east", work, |work| applied(work, "False", "not allowed")),
            "False",
            reason,
        );
        assert!(refused.message("Validated").contains("not allowed"));
    }
    let old =
        |world: &mut World| work_mut(world, "east", CONFIG_WORK, |work| work.metadata.generation = Some(2));
    check(old, "False", "DRClusterConfigInProgress");
    let quiet = |world: &mut World| {
        work_mut(world, "east", CONFIG_WORK, |work| work.status = None);
        world.reaches.insert("east".into(), silent("east"));
    };
    assert!(
        check(quiet, "False", "DRClusterConfigInProgress").message("Validated").contains("not available")
    );
}

#[test]
fn a_silent_cluster_that_has_everything_stays_validated() {
    check(|world| drop(world.reaches.insert("east".into(), silent("east"))), "True", "Succeeded");
}

#[test]
fn a_cluster_that_cannot_reach_its_store_is_believed_while_it_is_heard_of() {
    let says = |world: &mut World| {
        let mut known = Known::default();
        known.told.conditions = serde_json::from_value(json!([{
            "type": "Reachable", "status": "False", "reason": "R", "message": "timed out",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }]))
        .unwrap();
        world.survey = Survey::Known(Box::new(known));
    };
    assert!(check(says, "False", "s3ConnectionFailed").message("Validated").contains("timed out"));
    let silent_now = |world: &mut World| {
        says(world);
        world.reaches.insert("east".into(), silent("east"));
    };
    check(silent_now, "True", "Succeeded");
}

#[test]
fn a_cluster_says_which_store_it_does_not_reach() {
    let says = |store: &'static str| {
        move |world: &mut World| {
            let mut known = Known::default();
            known.told.conditions = serde_json::from_value(json!([{
                "type": "Reachable", "status": "False", "reason": "R", "message": "m",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }]))
            .unwrap();
            known.told.store_failures = [(store.to_owned(), "timed out".to_owned())].into();
            world.survey = Survey::Known(Box::new(known));
        }
    };
    let own = world(json!({})).cluster.spec.s3_profile_name.clone();
    let own: &'static str = own.leak();
    let told = check(says(own), "False", "s3ConnectionFailed").message("Validated");
    assert!(told.contains(&format!("cluster east does not reach the store {own}: timed out")), "{told}");
    // The store of a peer may be lost with the peer, and this cluster is needed all the more then.
    let told = check(says("of-a-peer"), "True", "Succeeded").message("Validated");
    assert!(told.contains("cluster east does not reach the store of-a-peer: timed out"), "{told}");
}

#[test]
fn a_cluster_gets_the_schedules_of_all_its_policies_once() {
    let mut world = world(json!({}));
    let mut more = world.policies[0].clone();
    let mut add = |name: &str, interval: &str, going: bool| {
        more.name = name.into();
        more.interval = interval.into();
        more.going = going;
        world.policies.push(more.clone());
    };
    add("same", "5m", false);
    add("hourly", "1h", false);
    add("metro", "", false);
    add("leaving", "1d", true);
    settle(&mut world);
    let work = &world.works[&ObjectKey::new("east", CONFIG_WORK)];
    let config: DRClusterConfig = works::read(work).unwrap();
    assert_eq!(config.spec.replication_schedules, ["1h", "5m"]);
    assert_eq!(config.spec.cluster_id, "east-id");
    assert_eq!(config.metadata.name.as_deref(), Some("east"));
}

#[test]
fn stores_of_peers_are_carried_while_a_policy_lasts() {
    let carried = |world: &World| {
        let work = &world.works[&ObjectKey::new("east", OPERATOR_WORK)];
        let map = works::manifests(work).find(|manifest| manifest["kind"] == "ConfigMap").unwrap().clone();
        let text = map["data"]["ramen_manager_config.yaml"].as_str().unwrap().to_owned();
        (text.contains("keys-east"), text.contains("keys-west"))
    };
    let mut world = world(json!({}));
    settle(&mut world);
    assert_eq!(carried(&world), (true, true));
    world.policies[0].going = true;
    settle(&mut world);
    assert_eq!(carried(&world), (true, false));
}

#[test]
fn a_new_version_of_keys_is_carried() {
    let mut world = world(json!({}));
    settle(&mut world);
    world.secrets.insert("west".into(), Some("s2@9".into()));
    let end = settle(&mut world);
    assert!(
        end.done.contains(&Effect::SendStores { versions: "east=s1@1,west=s2@9".into() }),
        "{:?}",
        end.done
    );
}

#[test]
fn what_people_carry_themselves_is_not_sent() {
    let mut world = world(json!({}));
    world.config = Ok(config(
        "drClusterOperator: { deploymentAutomationEnabled: false, s3SecretDistributionEnabled: false }
s3StoreProfiles: [{ s3ProfileName: east, s3Bucket: a, s3SecretRef: { name: keys-east } }]",
    ));
    assert_eq!(settle(&mut world).says("Validated"), pair("True", "Succeeded"));
    let names: Vec<&str> = world.works.keys().map(|key| key.name.as_str()).collect();
    assert_eq!(names, [CONFIG_WORK]);
}

#[test]
fn agents_of_others_get_roles_and_ours_do_not() {
    for (agent, sent) in [(Agent::Unknown, false), (Agent::Ours, false), (Agent::Others, true)] {
        let mut world = world(json!({}));
        world.agent = agent;
        settle(&mut world);
        assert_eq!(world.works.contains_key(&ObjectKey::new("east", ROLES_WORK)), sent, "{agent:?}");
    }
}

#[test]
fn namespaces_outlive_the_cluster_that_is_forgotten() {
    let mut world = world(json!({}));
    settle(&mut world);
    let work = &world.works[&ObjectKey::new("east", OPERATOR_WORK)];
    let option = serde_json::to_value(&work.spec.delete_option).unwrap();
    assert_eq!(option["propagationPolicy"], "SelectivelyOrphan");
    assert_eq!(option["selectivelyOrphans"]["orphaningRules"][0]["name"], "ramen-system");
}

#[test]
fn classes_are_looked_at_while_a_policy_needs_them() {
    let mut known = Known::default();
    known.told.storage_classes = vec!["fast".into()];
    known.told.volume_replication_classes = vec!["mirror".into()];
    let mut world = world(json!({}));
    world.survey = Survey::Known(Box::new(known));
    settle(&mut world);
    let names = |world: &World| world.views.keys().map(|key| key.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&world), ["east-drcconfig-mcv", "fast-sc-mcv", "mirror-vrc-mcv"]);
    let view = &world.views[&ObjectKey::new("east", "mirror-vrc-mcv")];
    assert!(
        view.metadata.labels.as_ref().unwrap().contains_key("ramendr.openshift.io/volumereplicationclass")
    );
    world.policies.clear();
    settle(&mut world);
    assert_eq!(names(&world), ["east-drcconfig-mcv"]);
}

#[test]
fn what_a_former_cluster_of_the_name_was_told_goes_first() {
    let mut world = world(json!({}));
    settle(&mut world);
    let key = ObjectKey::new("east", CONFIG_WORK);
    world.managed.id = Some("rebuilt-id".into());
    let Next::Do(effects) = decide(&world, plain::now()).next else { panic!("nothing is done") };
    let about = |effect: &Effect| match effect {
        Effect::TakeBack { name, .. } => format!("take back {name}"),
        Effect::Send(work) => format!("send {}", work.metadata.name.as_deref().unwrap_or_default()),
        _ => String::new(),
    };
    let told: Vec<String> = effects.iter().map(about).filter(|text| text.contains(CONFIG_WORK)).collect();
    assert_eq!(told, [format!("take back {CONFIG_WORK}")]);
    world.works.remove(&key);
    settle(&mut world);
    let config: DRClusterConfig = works::read(&world.works[&key]).unwrap();
    assert_eq!(config.spec.cluster_id, "rebuilt-id");
}
