//! Changes of mind, deaths and losses at every single step: the real decisions on a world in memory, with played clusters that the same code as in
//! the stories moves. What must hold is looked at after every effect, and in the end the application must be where it was last asked to be.

mod proofs;

use crate::drpc::law::{Before, Moment, Place, hold};
use crate::drpc::rules::{Changes as _, asked, deployed, edit, new, now};
use crate::drpc::spoke::State;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations;
use lifeboat_engine::Next;
use lifeboat_hub::drpc::commission::epoch_on;
use lifeboat_hub::drpc::decide::{Effect, decide};
use lifeboat_hub::drpc::group;
use lifeboat_hub::drpc::stores::{Reading, Recorded};
use lifeboat_hub::drpc::world::{Chosen, GroupWords, World};
use lifeboat_hub::views::Seen;
use lifeboat_hub::words::Words as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What happens out of turn.
#[derive(Debug, Clone)]
enum Turn {
    Asks(Value),
    Deletes,
    Loses(&'static str),
    /// Another group wants the claims of the application.
    Disputes,
    /// The process dies: what was decided and not done is not done.
    Dies,
    /// The hub is lost and comes back with the request alone, with or without our notes on it.
    Forgets {
        keeps_notes: bool,
    },
}

struct Walk {
    world: World,
    /// Whether clusters move after every effect, and not only when the hub waits.
    brisk: bool,
    clusters: BTreeMap<String, State>,
    done: usize,
    gone: bool,
    before: Before,
    story: Vec<String>,
}

impl Walk {
    fn of(world: World) -> Self {
        let protects = || State { mirrored: vec!["data".into()], ..State::default() };
        let clusters = ["east", "west"].map(|name| (name.to_owned(), protects())).into();
        let mut walk = Self {
            world,
            brisk: false,
            clusters,
            done: 0,
            gone: false,
            before: Before::default(),
            story: Vec::new(),
        };
        walk.move_clusters();
        walk
    }

    /// The agents and protectors of all clusters that live take one step.
    fn move_clusters(&mut self) {
        let placed: Vec<String> = self.world.chosen().into_iter().map(|one| one.cluster).collect();
        for (name, state) in &mut self.clusters {
            let site = self.world.sites.get_mut(name).unwrap();
            if state.dead {
                continue;
            }
            if site.work.as_ref().is_some_and(|work| work.is_going()) {
                state.delete();
                (site.work, site.intent) = (None, None);
            }
            if let Some(intent) = &site.intent {
                state.apply(name, intent.clone());
            }
            state.protect(name, placed.contains(name), now());
            if site.view.is_some() {
                let group = state.groups.values().next().cloned();
                site.seen = group.map_or(Seen::Absent, |group| Seen::Found(Arc::new(group)));
            }
        }
    }

    fn lose(&mut self, cluster: &str, lost: bool) {
        self.clusters.get_mut(cluster).unwrap().dead = lost;
        let managed = self.world.sites.get_mut(cluster).unwrap().managed.as_mut().unwrap();
        edit(managed, |managed| {
            let status = if lost { "Unknown" } else { "True" };
            managed.status.as_mut().unwrap().conditions[0].status = status.into();
        });
    }

    fn turn(&mut self, turn: &Turn) {
        match turn.clone() {
            Turn::Dies => {}
            Turn::Asks(spec) => {
                self.world = self.world.clone().asks(spec);
                edit(&mut self.world.drpc, |drpc| {
                    drpc.metadata.generation = Some(drpc.metadata.generation.unwrap() + 1);
                });
            }
            Turn::Deletes => {
                edit(&mut self.world.drpc, |drpc| drpc.metadata.deletion_timestamp = Some(Time(now())));
            }
            Turn::Loses(cluster) => self.lose(cluster, true),
            Turn::Disputes => self.clusters.values_mut().for_each(|state| state.disputed = true),
            Turn::Forgets { keeps_notes } => self.forget(keeps_notes),
        }
    }

    fn forget(&mut self, keeps_notes: bool) {
        edit(&mut self.world.drpc, |drpc| {
            drpc.status = None;
            let notes = drpc.metadata.annotations.get_or_insert_default();
            notes.retain(|key, _| keeps_notes || !key.starts_with("ramendr.openshift.io/epoch"));
        });
        for site in self.world.sites.values_mut() {
            (site.work, site.intent, site.space_work, site.key_work) = (None, None, None, None);
            (site.view, site.seen) = (None, Seen::NotYet);
        }
        self.world.books.reading = None;
        self.world = self.world.clone().placed(&[]);
    }

    /// What the stores would say: whoever was primary has written there.
    fn read_stores(&mut self) {
        let reigns = self
            .clusters
            .iter()
            .flat_map(|(name, state)| state.reigns.iter().map(move |epoch| (*epoch, name)));
        let last = reigns.max();
        let primary = last.map(|(_, cluster)| Recorded { cluster: Some(cluster.clone()), action: None });
        let epoch = last.map_or(0, |(epoch, _)| epoch);
        self.world.books.reading = Some(Reading { epoch, primary, ..Reading::default() });
    }

    fn note(&mut self, notes: BTreeMap<String, String>) {
        edit(&mut self.world.drpc, |drpc| drpc.metadata.annotations.get_or_insert_default().extend(notes));
    }

    fn unnote(&mut self, key: &str) {
        edit(&mut self.world.drpc, |drpc| {
            drop(drpc.metadata.annotations.get_or_insert_default().remove(key));
        });
    }

    fn put(&mut self, cluster: &str, group: lifeboat_api::ramen::VolumeReplicationGroup) {
        let mut work = group::work(&self.world, cluster, &group);
        work.metadata.resource_version = Some(self.done.to_string());
        let site = self.world.sites.get_mut(cluster).unwrap();
        (site.work, site.intent) = (Some(Arc::new(work)), Some(group));
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Commission { commission, after, .. } => {
                assert_eq!(after, epoch_on(&*self.world.drpc));
                self.note(commission.notes());
            }
            Effect::PutSpace { cluster } => {
                let work = group::space_work(&self.world, &cluster);
                self.world.sites.get_mut(&cluster).unwrap().space_work = Some(Arc::new(work));
            }
            Effect::PutGroup { cluster, group, .. } | Effect::Adopt { cluster, group } => {
                self.put(&cluster, *group);
            }
            Effect::ShareKey { clusters } => {
                for cluster in clusters {
                    let work = group::space_work(&self.world, &cluster);
                    self.world.sites.get_mut(&cluster).unwrap().key_work = Some(Arc::new(work));
                }
            }
            Effect::Place { chosen } => self.world = self.world.clone().placed(&chosen),
            Effect::NotePlaced { cluster, act, .. } => {
                let action = act.action().map_or(String::new(), |action| action.as_str().to_owned());
                self.note(
                    [
                        (annotations::LAST_APP_DEPLOYMENT_CLUSTER.to_owned(), cluster),
                        (annotations::LAST_ACTION.to_owned(), action),
                    ]
                    .into(),
                );
            }
            Effect::EndProtection { cluster, group, .. } => self.put(&cluster, *group),
            Effect::ForgetPoint => self.unnote(annotations::TO_POINT),
            Effect::ForgetRestore => self.unnote(annotations::RESTORE_ORPHANS),
            Effect::CallOff { why } => self.note([(annotations::CALLED_OFF.to_owned(), why)].into()),
            Effect::TakeBackGroup { cluster, .. } => {
                let site = self.world.sites.get_mut(&cluster).unwrap();
                edit(site.work.as_mut().unwrap(), |work| {
                    work.metadata.deletion_timestamp = Some(Time(now()));
                });
            }
            Effect::TakeBackRest { cluster } => {
                let site = self.world.sites.get_mut(&cluster).unwrap();
                (site.view, site.space_work, site.key_work) = (None, None, None);
            }
            Effect::ReleasePlacement => {
                edit(self.world.placement.as_mut().unwrap(), |one| one.metadata.finalizers = None);
            }
            Effect::Release => self.gone = true,
            Effect::Watch { cluster } => {
                self.world = asked(self.world.clone(), &cluster);
            }
            Effect::ReadStores => self.read_stores(),
            Effect::Own | Effect::OwnPlacement | Effect::LearnFleet => {}
        }
    }

    fn was_placed(&self) -> bool {
        self.world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER).is_some()
    }

    /// What must hold, whatever happened.
    fn holds(&mut self, just_told: bool) -> Result<(), String> {
        let world = &self.world;
        let places = world.sites.values().map(|site| Place {
            name: &site.name,
            intent: site.intent.as_ref(),
            going: site.work.as_ref().is_some_and(|work| work.is_going()),
            owner: site
                .work
                .as_ref()
                .and_then(|work| work.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME)),
            truth: &self.clusters[&site.name],
            answered: site.seen.is_answer(),
            seen: site.seen.found().map(|group| &**group),
        });
        let sent = world.sites.values().flat_map(|site| [&site.work, &site.space_work, &site.key_work]);
        let homes = world.chosen().into_iter().filter(|one| !one.retained);
        let moment = Moment {
            drpc: Some(&world.drpc),
            places: places.collect(),
            works: sent.flatten().map(|work| &**work).collect(),
            homes: homes.map(|one| one.cluster).collect(),
            stores_read: Some(world.books.reading.is_some()),
            just_told,
            now: now(),
        };
        hold(&moment, &mut self.before)
    }

    /// Goes on until nothing moves any more; after some effects, by their number, something happens.
    fn go(&mut self, turns: &[(usize, &Turn)]) -> Result<(), String> {
        for _ in 0..120 {
            if self.gone {
                return Ok(());
            }
            let decision = decide(&self.world, now());
            if let Some(status) = decision.status {
                edit(&mut self.world.drpc, |drpc| drpc.status = Some(status));
                self.holds(true)?;
            }
            if let Next::Do(effects) = decision.next {
                for effect in effects {
                    self.story.push(format!("{effect:.80?}"));
                    self.perform(effect);
                    self.done += 1;
                    self.holds(false)?;
                    if self.brisk {
                        self.move_clusters();
                        self.holds(false)?;
                    }
                    if let Some((_, turn)) = turns.iter().find(|(at, _)| *at == self.done) {
                        self.story.push(format!("{turn:?}"));
                        self.turn(turn);
                        self.holds(false)?;
                        break;
                    }
                }
                continue;
            }
            let sight = |walk: &Self| -> Vec<_> {
                walk.world.sites.values().map(|site| (site.seen.clone(), site.work.clone())).collect()
            };
            let seen = sight(self);
            self.move_clusters();
            self.holds(false)?;
            let restoring = self.clusters.values().any(|state| !state.dead && state.restore_steps > 0);
            if seen == sight(self) && !restoring {
                return Ok(());
            }
        }
        Err(format!("it does not come to rest: {:#?}", self.world.drpc.status))
    }
}

/// Tells a story with one thing happening after each of its effects, and a second one soon after it; then every cluster comes back, and all must end well.
fn walk(name: &str, start: impl Fn() -> Walk, turns: &[Turn]) {
    let mut plain = start();
    plain.go(&[]).unwrap_or_else(|why| panic!("{name}: {why} {:#?}", plain.story));
    let effects = plain.done;
    assert!(effects >= 3, "{name}: {:#?}", plain.story);
    for at in 1..=effects {
        for turn in turns {
            try_out(name, &start, &[(at, turn)]);
            for (then, second) in
                [1, 3].into_iter().flat_map(|then| turns.iter().map(move |second| (then, second)))
            {
                // A backup brings back no deletion, and what a deletion took back is gone for good. Who deletes amid a move what the hub forgot
                // altogether keeps data on both sides and has to place the application himself.
                let absurd = matches!(
                    (turn, second),
                    (Turn::Deletes, Turn::Forgets { .. })
                        | (Turn::Forgets { keeps_notes: false }, Turn::Deletes)
                ) || (then == 3 && is_word(second));
                if !absurd {
                    try_out(name, &start, &[(at, turn), (at + then, second)]);
                }
            }
        }
    }
}

/// What only adds a word to what is asked or seen; trying it once after another turn is enough.
fn is_word(turn: &Turn) -> bool {
    matches!(turn, Turn::Disputes) || matches!(turn, Turn::Asks(spec) if spec.get("dryRun").is_some())
}

fn try_out(name: &str, start: impl Fn() -> Walk, turns: &[(usize, &Turn)]) {
    let mut walk = start();
    let went = walk.go(turns);
    let place = |walk: &Walk| format!("{name}: {turns:?}: {:#?}", walk.story);
    went.unwrap_or_else(|why| panic!("{why}; {}", place(&walk)));
    for cluster in ["east", "west"] {
        walk.lose(cluster, false);
    }
    walk.go(&[]).unwrap_or_else(|why| panic!("{why}; {}", place(&walk)));
    // A drill is refused, and what was under way goes on when it is called off.
    if walk.world.drpc.spec.dry_run && !walk.world.drpc.is_going() {
        walk.turn(&Turn::Asks(json!({ "dryRun": false })));
        walk.go(&[]).unwrap_or_else(|why| panic!("{why}; {}", place(&walk)));
    }
    // Where the facts did not tell, the user was asked, and answers.
    if walk.world.shown().progression == Some(lifeboat_api::ramen::Progression::Paused) {
        let known = walk.world.commission().map(|known| known.holder);
        let orphaned = known.as_ref().is_some_and(|holder| walk.clusters[holder].orphaned);
        let to = if orphaned && known.as_deref() == Some("west") { "east" } else { "west" };
        walk.turn(&Turn::Asks(json!({ "action": "Failover", "failoverCluster": to })));
        walk.go(&[]).unwrap_or_else(|why| panic!("{why}; {}", place(&walk)));
    }
    ends_well(&walk).unwrap_or_else(|why| panic!("{why}; {}", place(&walk)));
}

/// In the end the application runs where it was last asked to be, or where it was when its protection was removed.
fn ends_well(walk: &Walk) -> Result<(), String> {
    let chosen = walk.world.chosen();
    if walk.gone && chosen.is_empty() && !walk.was_placed() {
        return Ok(());
    }
    let [home] = &chosen[..] else { return Err(format!("it is placed on {chosen:?}")) };
    if walk.world.drpc.is_going() {
        return if walk.gone {
            Ok(())
        } else {
            Err(format!("it is not gone: {:#?}", walk.world.drpc.status))
        };
    }
    let status = walk.world.shown();
    let step = status.progression.as_ref().map_or("", |step| step.as_str());
    // A relocation that was called off leaves the application where it was.
    let off = walk.world.drpc.note(annotations::CALLED_OFF).is_some();
    let asked = walk.before.asks().filter(|_| !off);
    if step != "Completed"
        || *home != Chosen::home(&home.cluster)
        || asked.is_some_and(|asked| asked != home.cluster)
    {
        return Err(format!("it ends on {chosen:?} as {status:#?}"));
    }
    let primary = walk.clusters[&home.cluster].groups.values().next().is_some_and(GroupWords::is_primary);
    if primary { Ok(()) } else { Err("where it runs is no primary".into()) }
}

fn turns() -> Vec<Turn> {
    vec![
        Turn::Dies,
        Turn::Deletes,
        Turn::Loses("east"),
        Turn::Loses("west"),
        Turn::Forgets { keeps_notes: true },
        Turn::Forgets { keeps_notes: false },
        Turn::Disputes,
        Turn::Asks(json!({ "action": null })),
        Turn::Asks(json!({ "dryRun": false })),
        Turn::Asks(json!({ "dryRun": true, "action": "Failover", "failoverCluster": "west" })),
        Turn::Asks(json!({ "action": "Failover", "failoverCluster": "west" })),
        Turn::Asks(json!({ "action": "Failover", "failoverCluster": "east" })),
        Turn::Asks(json!({ "action": "Relocate", "preferredCluster": "east" })),
        Turn::Asks(json!({ "action": "Relocate", "preferredCluster": "west" })),
    ]
}

/// An application that was deployed, with clusters that hold what it says.
fn steady(spec: Value) -> Walk {
    let mut walk = Walk::of(deployed());
    walk.go(&[]).unwrap();
    (walk.done, walk.story) = (0, Vec::new());
    walk.turn(&Turn::Asks(spec));
    walk
}

#[test]
fn a_deployment_bears_everything() {
    let only_these = [Turn::Dies, Turn::Deletes, Turn::Loses("east"), Turn::Loses("west")];
    walk("deploy", || Walk::of(new()), &only_these);
}

#[test]
fn a_failover_bears_everything() {
    walk("failover", || steady(json!({ "action": "Failover", "failoverCluster": "west" })), &turns());
    let dead = || {
        let mut walk = steady(json!({ "action": "Failover", "failoverCluster": "west" }));
        walk.lose("east", true);
        walk
    };
    walk("failover from a dead cluster", dead, &turns());
}

#[test]
fn a_relocation_bears_everything() {
    walk("relocate", || steady(json!({ "action": "Relocate", "preferredCluster": "west" })), &turns());
}
