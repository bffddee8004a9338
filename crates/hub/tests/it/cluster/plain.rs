//! A cluster's world in memory, where effects come true at once: what is sent is applied, what is asked for is there to be answered.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use lifeboat_api::annotations::{CARRIED_VERSIONS, DRCLUSTER_NAME};
use lifeboat_api::ramen::{DRCluster, DRClusterStatus};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_hub::cluster::check::{Answer, CheckState, Failure};
use lifeboat_hub::cluster::decide::{ClusterDecision, Effect, decide};
use lifeboat_hub::cluster::manifests::STORES_WORK;
use lifeboat_hub::cluster::settings::{CONFIG_KEY, Config};
use lifeboat_hub::cluster::survey::{Known, Survey};
use lifeboat_hub::cluster::why::Wait;
use lifeboat_hub::cluster::world::{Agent, Managed, Needs, Peer, Policy, World};
use lifeboat_hub::views::Reach;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const NOW: i64 = 1_900_000_000;

pub fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

pub fn config(text: &str) -> Arc<Config> {
    let data = Some([(CONFIG_KEY.to_owned(), text.to_owned())].into());
    Arc::new(Config::of(Some(&ConfigMap { data, ..ConfigMap::default() })).unwrap())
}

const TWO: &str = "
s3StoreProfiles:
- { s3ProfileName: east, s3Bucket: a, s3CompatibleEndpoint: 'https://one', s3SecretRef: { name: keys-east } }
- { s3ProfileName: west, s3Bucket: b, s3CompatibleEndpoint: 'https://two', s3SecretRef: { name: keys-west } }
";

pub fn dr_cluster(spec: Value) -> DRCluster {
    let mut whole = json!({
        "metadata": {
            "name": "east", "generation": 3, "uid": "u1", "resourceVersion": "7",
            "finalizers": ["drclusters.ramendr.openshift.io/ramen"],
            "labels": { "cluster.open-cluster-management.io/backup": "ramen" },
        },
        "spec": { "s3ProfileName": "east", "region": "r1" },
    });
    for (key, value) in spec.as_object().unwrap() {
        whole["spec"][key] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

pub fn peer(survey: Survey) -> Peer {
    Peer { region: Some("r1".into()), profile: "west".into(), joined: true, survey }
}

/// East, under a policy with west: joined, heard of, with a store that works.
pub fn world(spec: Value) -> World {
    let cluster = Arc::new(dr_cluster(spec));
    World {
        cluster,
        config: Ok(config(TWO)),
        managed: Managed { joined: true, id: Some("east-id".into()), reach: Reach::Fresh },
        agent: Agent::Ours,
        policies: vec![Policy {
            name: "pair".into(),
            going: false,
            clusters: vec!["east".into(), "west".into()],
            interval: "5m".into(),
            metro: false,
        }],
        peers: [("west".to_owned(), peer(Survey::Known(Box::default())))].into(),
        reaches: [("east".to_owned(), Reach::Fresh), ("west".to_owned(), Reach::Fresh)].into(),
        secrets: [("east".to_owned(), Some("s1@1".to_owned())), ("west".to_owned(), Some("s2@1".to_owned()))]
            .into(),
        works: BTreeMap::new(),
        views: BTreeMap::new(),
        survey: Survey::Known(Box::default()),
        check: CheckState::default(),
        needs: Needs::default(),
        trouble: None,
    }
}

pub fn silent(name: &str) -> Reach {
    Reach::Silent(format!("cluster {name} is not available"))
}

/// What came of deciding until nothing is left to do.
pub struct End {
    pub decision: ClusterDecision,
    pub status: DRClusterStatus,
    /// Everything that was done on the way, in order.
    pub done: Vec<Effect>,
}

impl End {
    pub fn says(&self, type_: &str) -> (String, String) {
        let found = self.status.conditions.iter().find(|condition| condition.type_ == type_);
        found.map(|condition| (condition.status.clone(), condition.reason.clone())).unwrap_or_default()
    }

    pub fn message(&self, type_: &str) -> String {
        let found = self.status.conditions.iter().find(|condition| condition.type_ == type_);
        found.map(|condition| condition.message.clone()).unwrap_or_default()
    }

    pub fn why(&self) -> Option<&Wait> {
        self.decision.why()
    }

    pub fn phase(&self) -> &str {
        self.status.phase.as_ref().map_or("", |phase| phase.as_str())
    }
}

pub fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

/// Decides until nothing is left to do, showing each status; effects come true unless `refuse` says otherwise.
pub fn settle(world: &mut World) -> End {
    settle_at(world, now())
}

pub fn settle_at(world: &mut World, now: Timestamp) -> End {
    let mut done = Vec::new();
    for _ in 0..20 {
        let decision = decide(world, now);
        if let Some(status) = &decision.status {
            let mut cluster = (*world.cluster).clone();
            cluster.status = Some(status.clone());
            world.cluster = Arc::new(cluster);
        }
        let Next::Do(effects) = &decision.next else {
            let status = world.cluster.status.clone().unwrap_or_default();
            // Deciding again changes nothing.
            assert_eq!(decide(world, now), decision);
            return End { decision, status, done };
        };
        for effect in effects.clone() {
            perform(world, &effect);
            done.push(effect);
        }
    }
    panic!("it does not settle: {done:#?}");
}

fn perform(world: &mut World, effect: &Effect) {
    match effect {
        Effect::Adopt | Effect::Release => {}
        Effect::Send(work) => {
            let mut work = (**work).clone();
            applied(&mut work, "True", "");
            world.works.insert(ObjectKey::of(&work), Arc::new(work));
        }
        Effect::SendStores { versions } => {
            let notes = [(CARRIED_VERSIONS, versions.as_str()), (DRCLUSTER_NAME, "east")];
            let mut work =
                lifeboat_hub::works::work("east", STORES_WORK.into(), lifeboat_hub::words::pairs(notes), []);
            applied(&mut work, "True", "");
            world.works.insert(ObjectKey::of(&work), Arc::new(work));
        }
        Effect::TakeBack { cluster, name } => {
            world.works.remove(&ObjectKey::new(cluster.clone(), name.clone()));
        }
        Effect::Ask(view) => drop(world.views.insert(ObjectKey::of(&**view), Arc::new((**view).clone()))),
        Effect::StopAsking { cluster, name } => {
            world.views.remove(&ObjectKey::new(cluster.clone(), name.clone()));
        }
        Effect::Try { question } => world.check.answer = Some(answer(question, Ok(()))),
    }
}

pub fn answer(question: &str, outcome: Result<(), Failure>) -> Answer {
    let retry_at = Timestamp::from_second(NOW + 10).unwrap();
    Answer { question: question.to_owned(), outcome, retry_at, tries: 1 }
}

pub fn applied(work: &mut ManifestWork, status: &str, message: &str) {
    work.metadata.generation = Some(1);
    work.metadata.uid = Some("w".into());
    work.status = serde_json::from_value(json!({ "conditions": [{
        "type": "Applied", "status": status, "reason": "R", "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }] }))
    .unwrap();
}

pub fn work_mut(world: &mut World, cluster: &str, name: &str, change: impl FnOnce(&mut ManifestWork)) {
    let work =
        world.works.get_mut(&ObjectKey::new(cluster, name)).unwrap_or_else(|| panic!("no work {name}"));
    change(Arc::make_mut(work));
}

/// Puts an answer into a view.
pub fn answers(world: &mut World, cluster: &str, view: &str, result: Value) {
    let key = ObjectKey::new(cluster, view);
    let view = world.views.get_mut(&key).unwrap_or_else(|| panic!("nobody asks for {key}"));
    let view: &mut ManagedClusterView = Arc::make_mut(view);
    view.status = serde_json::from_value(json!({
        "conditions": [{
            "type": "Processing", "status": "True", "reason": "GetResourceProcessing", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }],
        "result": result,
    }))
    .unwrap();
}

pub fn known(survey: &Survey) -> Known {
    survey.known().cloned().unwrap_or_default()
}
