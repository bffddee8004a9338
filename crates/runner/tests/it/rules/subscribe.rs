//! Rules about an application on one cluster.

use lifeboat_api::cluster::PlacementDecision;
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_runner::subscribe::{Decided, Effect, Kind, Manifest, Seen, Wait, World, decide};
use serde_json::json;

const CLAIM: Kind = Kind::PersistentVolumeClaim;

fn manifest(kind: Kind, name: &str) -> Manifest {
    Manifest { kind, key: ObjectKey::new("shop", name), object: json!({}), hash: "h1".to_owned() }
}

fn seen(by: Option<&str>, hash: &str, going: bool) -> Seen {
    Seen {
        uid: "u".to_owned(),
        version: "1".to_owned(),
        going,
        deployed_by: by.map(str::to_owned),
        hash: Some(hash.to_owned()),
    }
}

fn world(decided: Decided, record: Option<&str>, objects: &[(Kind, &str, Seen)]) -> World {
    World {
        manifests: Some(Ok(vec![manifest(CLAIM, "data"), manifest(Kind::Deployment, "web")])),
        decided,
        missing_namespaces: Vec::new(),
        record: record.map(str::to_owned),
        seen: objects
            .iter()
            .map(|(kind, name, seen)| ((*kind, ObjectKey::new("shop", *name)), seen.clone()))
            .collect(),
    }
}

fn check(rule: &str, world: &World, expected: &str) {
    let name = |key: &ObjectKey| key.name.clone();
    let told = match decide(world).next {
        Next::Settled => "rests".to_owned(),
        Next::Wait { why, .. } => format!("waits {}", lifeboat_engine::variant(&why)),
        Next::Do(effects) => effects
            .iter()
            .map(|effect| match effect {
                Effect::MakeNamespace(name) => format!("namespace {name}"),
                Effect::Begin => "begin".to_owned(),
                Effect::Apply { manifest, .. } => format!("apply {}", name(&manifest.key)),
                Effect::Adopt { manifest, .. } => format!("adopt {}", name(&manifest.key)),
                Effect::Delete { key, .. } => format!("delete {}", name(key)),
                Effect::End { .. } => "end".to_owned(),
            })
            .collect::<Vec<_>>()
            .join(", "),
    };
    assert_eq!(told, expected, "{rule}");
}

#[test]
fn an_application_is_deployed_where_it_is_decided_to_be() {
    use Decided::Here;
    let ours = |hash| seen(Some("r"), hash, false);
    check("nothing is there: the record comes first", &world(Here, None, &[]), "begin");
    check("then the objects", &world(Here, Some("r"), &[]), "apply data, apply web");
    let restored = [(CLAIM, "data", seen(Some("another cluster's"), "h1", false))];
    check(
        "a restored claim is taken over as it is",
        &world(Here, Some("r"), &restored),
        "adopt data, apply web",
    );
    let both = [(CLAIM, "data", ours("h1")), (Kind::Deployment, "web", ours("h1"))];
    check("all is there", &world(Here, Some("r"), &both), "rests");
    let old = [(CLAIM, "data", ours("h1")), (Kind::Deployment, "web", ours("h0"))];
    check("a manifest has changed", &world(Here, Some("r"), &old), "apply web");
    let going = [(CLAIM, "data", seen(Some("r"), "h1", true)), (Kind::Deployment, "web", ours("h1"))];
    check("a claim of this name is still going", &world(Here, Some("r"), &going), "waits StillGoing");
    let more =
        [both[0].clone(), both[1].clone(), (Kind::Deployment, "old", ours("h1")), (CLAIM, "old", ours("h1"))];
    check("what is no longer named goes, but never data", &world(Here, Some("r"), &more), "delete old");
    let mut lacking = world(Here, None, &[]);
    lacking.missing_namespaces = vec!["shop".to_owned()];
    check("namespaces come first", &lacking, "namespace shop");
}

#[test]
fn an_application_is_taken_off_where_a_decision_says_so() {
    use Decided::Elsewhere;
    let ours = |going| seen(Some("r"), "h1", going);
    let both = [(CLAIM, "data", ours(false)), (Kind::Deployment, "web", ours(false))];
    check("all of it", &world(Elsewhere, Some("r"), &both), "delete data, delete web");
    let held = [(CLAIM, "data", ours(true))];
    check("a claim may be held for its last copy", &world(Elsewhere, Some("r"), &held), "waits StillGoing");
    check("then the record", &world(Elsewhere, Some("r"), &[]), "end");
    check("nothing is left", &world(Elsewhere, None, &[]), "rests");
    let restored = [(CLAIM, "data", seen(Some("another cluster's"), "h1", false))];
    check(
        "what was restored here is not what was deployed here",
        &world(Elsewhere, Some("r"), &restored),
        "end",
    );
    check("even without a record", &world(Elsewhere, None, &restored), "rests");
}

#[test]
fn an_application_that_failed_over_is_left_as_it_is_where_it_was() {
    use Decided::Retained;
    let ours = [
        (CLAIM, "data", seen(Some("r"), "h0", false)),
        (Kind::Deployment, "old", seen(Some("r"), "h1", false)),
    ];
    check("nothing is changed and nothing goes", &world(Retained, Some("r"), &ours), "rests");
    check("a cluster that was rebuilt does not start it again", &world(Retained, None, &[]), "rests");
}

#[test]
fn a_decision_says_where_once_it_has_a_status() {
    let check = |rule: &str, statuses: serde_json::Value, expected: Decided| {
        let decisions: Vec<PlacementDecision> = statuses
            .as_array()
            .unwrap()
            .iter()
            .map(|status| {
                serde_json::from_value(json!({"metadata": {"name": "d"}, "status": status})).unwrap()
            })
            .collect();
        assert_eq!(Decided::of(decisions.iter(), "east"), expected, "{rule}");
    };
    let on = |cluster: &str, reason: &str| json!({"decisions": [{"clusterName": cluster, "reason": reason}]});
    check("there is none", json!([]), Decided::None);
    check("it was made a moment ago", json!([null]), Decided::None);
    check("nowhere", json!([{"decisions": []}]), Decided::Elsewhere);
    check("here", json!([on("east", "")]), Decided::Here);
    check("elsewhere", json!([on("west", "")]), Decided::Elsewhere);
    check("elsewhere, and one more that says nothing yet", json!([on("west", ""), null]), Decided::Elsewhere);
    let retained = "RetainedForFailover";
    check("it failed over from here", json!([on("west", ""), on("east", retained)]), Decided::Retained);
    check("and came back", json!([on("east", ""), on("east", retained)]), Decided::Here);
}

#[test]
fn nothing_happens_by_omission() {
    let ours = [(CLAIM, "data", seen(Some("r"), "h1", false))];
    check("an unread hub", &world(Decided::Unread, Some("r"), &ours), "waits HubUnread");
    check("one that is not let in", &world(Decided::ForAnother, None, &[]), "waits NotLetIn");
    check("no decision", &world(Decided::None, Some("r"), &ours), "waits NoDecision");
    let mut gone = world(Decided::Here, Some("r"), &ours);
    gone.manifests = None;
    check("no manifests", &gone, "waits SourceMissing");
    gone.manifests = Some(Err("bad".to_owned()));
    check("manifests that cannot be read", &gone, "waits BadManifests");
    assert!(Wait::SourceMissing.to_string().contains("left running"));
}
