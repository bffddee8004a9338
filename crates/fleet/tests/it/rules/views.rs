//! What is decided about views.

use jiff::Timestamp;
use kube::api::DynamicObject;
use lifeboat_api::view::{ManagedClusterView, ManagedClusterViewStatus};
use lifeboat_engine::conditions::find;
use lifeboat_fleet::view::decide::{Meant, World, decide};
use lifeboat_fleet::{Kind, Seen, Standing, Target};
use serde_json::json;
use std::sync::Arc;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn object(version: &str) -> Seen {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "shop", "uid": "u", "resourceVersion": version } });
    Seen::Present(Arc::new(serde_json::from_value::<DynamicObject>(object).unwrap()))
}

fn world(seen: Seen, shown: Option<ManagedClusterViewStatus>) -> World {
    let asks = json!({ lifeboat_api::annotations::TELL_OBSERVED: "true" });
    let mut view: ManagedClusterView =
        serde_json::from_value(json!({ "metadata": { "name": "v", "annotations": asks }, "spec": {} }))
            .unwrap();
    view.status = shown;
    let target = Target { kind: Kind::namespace(), namespace: String::new(), name: "shop".to_owned() };
    World { view: Arc::new(view), meant: Meant::Object(target), seen, standing: Standing::Meant }
}

fn shown(seen: Seen, before: Option<ManagedClusterViewStatus>, now: i64) -> ManagedClusterViewStatus {
    decide(&world(seen, before), at(now)).status.unwrap()
}

fn seen_at(status: &ManagedClusterViewStatus) -> i64 {
    find(&status.conditions, "Observed").unwrap().last_transition_time.0.as_second()
}

#[test]
fn the_time_is_that_of_the_last_change_seen() {
    let first = shown(object("1"), None, 100);
    assert_eq!(seen_at(&first), 100);
    let same = shown(object("1"), Some(first.clone()), 200);
    assert_eq!(same, first, "an unchanged world writes nothing");
    let changed = shown(object("2"), Some(first.clone()), 300);
    assert_eq!(seen_at(&changed), 300);
    assert_eq!(changed.result.as_ref().unwrap().0["metadata"]["resourceVersion"], "2");
    let gone = shown(Seen::Absent, Some(changed.clone()), 400);
    assert_eq!(seen_at(&gone), 400);
    assert_eq!(shown(Seen::Absent, Some(gone.clone()), 500), gone);
}

#[test]
fn who_cannot_look_does_not_say_when_he_saw() {
    let first = shown(object("1"), None, 100);
    let blind = shown(Seen::Failing("no route".to_owned()), Some(first.clone()), 200);
    assert_eq!(seen_at(&blind), 100);
    let processing = find(&blind.conditions, "Processing").unwrap();
    assert_eq!((processing.status.as_str(), processing.reason.as_str()), ("False", "GetResourceFailed"));
    assert!(!processing.message.ends_with("not found"), "{}", processing.message);
    assert_eq!(shown(object("1"), Some(blind), 300).result, first.result);
}

#[test]
fn nothing_is_said_before_anything_was_seen() {
    assert!(decide(&world(Seen::NotYet, None), at(1)).status.is_none());
    let mut unclear = world(Seen::NotYet, None);
    unclear.meant = Meant::Unclear;
    assert!(decide(&unclear, at(1)).status.is_none());
    let mut other = world(object("1"), None);
    other.standing = Standing::Other("another".to_owned());
    assert!(decide(&other, at(1)).status.is_none(), "another cluster's view is not ours to answer");
}

#[test]
fn a_hub_that_does_not_ask_gets_one_condition_as_ramens_hub_wants_it() {
    let mut world = world(object("7"), None);
    let mut view = (*world.view).clone();
    view.metadata.annotations = None;
    world.view = Arc::new(view);
    let status = decide(&world, at(1)).status.unwrap();
    assert_eq!(status.conditions.len(), 1, "{:?}", status.conditions);
    assert_eq!(status.conditions[0].type_, "Processing");
    // And the second pass has nothing to say.
    let mut view = (*world.view).clone();
    view.status = Some(status.clone());
    world.view = Arc::new(view);
    assert_eq!(decide(&world, at(9)).status, Some(status));
}
