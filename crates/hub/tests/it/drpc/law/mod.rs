//! What must hold at every moment of every story, whoever made the last write: the invariants that a hub can break. The same rules look at the
//! stories with an API server (after every write) and at the walks in memory (after every effect).
//!
//! | rule | what a hub can break of it |
//! | --- | --- |
//! | S1 S2 S3 S6 S10 S25 S26 | all of it: `roles` |
//! | S5 | points and cuts are the protectors'; a hub may promote what has not settled, let a group be empty, or split it: `data` |
//! | S7 | which point is restored is the protectors'; a hub says what was lost, before it is: `data` |
//! | S13 S27 | phases: `data` |
//! | S28 | drills are not served, so one that is asked for must change nothing: `limits` |
//! | S29 S30 S33 | all of it: `limits` |
//! | S31 | requests, not objects: `witness` looks at those |
//! | S32 | claims are the protectors'; a hub may let two move one application, or call one protected that is disputed: `limits` |

mod data;
mod limits;
mod roles;

use crate::drpc::crash::Ground;
use crate::drpc::fleet::DRPC;
use crate::drpc::spoke::State;
use jiff::Timestamp;
use lifeboat_api::cluster::PlacementDecision;
use lifeboat_api::ramen::{DRPlacementControl, DRState, VolumeReplicationGroup};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::ObjectKey;
use lifeboat_hub::drpc::commission::{Act, Commission};
use lifeboat_hub::drpc::world::GroupWords;
use lifeboat_hub::views;
use lifeboat_hub::words::Words;
use lifeboat_hub::works;
use lifeboat_testbed::Scene;
use std::collections::{BTreeMap, BTreeSet};

/// One cluster at one moment.
pub struct Place<'a> {
    pub name: &'a str,
    /// What the hub asks of it.
    pub intent: Option<&'a VolumeReplicationGroup>,
    /// Whether that is being taken back.
    pub going: bool,
    /// Whose it is.
    pub owner: Option<ObjectKey>,
    /// How the cluster really is, whatever the hub knows of it.
    pub truth: &'a State,
    /// Whether the hub has an answer from it.
    pub answered: bool,
    /// What the hub sees of it.
    pub seen: Option<&'a VolumeReplicationGroup>,
}

impl Place<'_> {
    /// The group that is really there.
    pub fn group(&self) -> Option<&VolumeReplicationGroup> {
        self.truth.groups.values().next()
    }

    /// Whether the cluster is meant to be primary.
    pub fn is_meant_primary(&self) -> bool {
        self.intent.is_some_and(GroupWords::is_primary)
    }
}

/// One moment of a story.
pub struct Moment<'a> {
    pub drpc: Option<&'a DRPlacementControl>,
    pub places: Vec<Place<'a>>,
    /// Everything that was sent for the application.
    pub works: Vec<&'a ManifestWork>,
    /// Where the application is meant to run; where it is only kept does not count.
    pub homes: Vec<String>,
    /// Whether the stores were asked; nothing where that cannot be told.
    pub stores_read: Option<bool>,
    /// Whether what is told was just computed from what is seen.
    pub just_told: bool,
    pub now: Timestamp,
}

impl Moment<'_> {
    pub fn place(&self, cluster: &str) -> Option<&Place<'_>> {
        self.places.iter().find(|place| place.name == cluster)
    }

    pub fn phase(&self) -> Option<DRState> {
        let shown = self.drpc?.status.as_ref()?.phase.clone();
        shown.filter(|phase| !phase.as_str().is_empty())
    }

    pub fn is_going(&self) -> bool {
        self.drpc.is_some_and(Words::is_going)
    }
}

/// What the user asks for, as far as it is a change of place.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    act: Option<Act>,
    target: String,
    drill: bool,
}

/// What was seen before.
#[derive(Default)]
pub struct Before {
    epochs: BTreeMap<String, i64>,
    commissions: BTreeMap<i64, Commission>,
    phase: Option<DRState>,
    promoted: BTreeMap<String, i64>,
    asked: Option<Asked>,
    /// What was asked for by saying so; nothing where something was only left out.
    verb: Option<(Act, String)>,
    /// How the application was when a drill was asked for.
    drill: Option<String>,
    owners: BTreeMap<String, ObjectKey>,
    homes: Vec<String>,
    lost: bool,
}

impl Before {
    /// Where the application was last asked to go by saying so.
    pub fn asks(&self) -> Option<&str> {
        self.verb.as_ref().filter(|(act, _)| *act != Act::Deploy).map(|(_, target)| target.as_str())
    }

    /// The commission that counts now.
    fn last(&self) -> Option<&Commission> {
        self.commissions.values().next_back()
    }
}

type Rule = fn(&Moment<'_>, &mut Before) -> Result<(), String>;

/// Rules in an order that lets those which compare with what was before come before those that note it.
const RULES: [(&str, Rule); 15] = [
    ("S1 one primary", roles::one_primary),
    ("S2 one reign", roles::one_reign),
    ("S6 a relocation loses nothing", roles::relocation_loses_nothing),
    ("S10 a deletion keeps the application", roles::deletion_keeps_the_application),
    ("S25 placed well", roles::placed_well),
    ("S5 only what is whole is promoted", data::only_the_whole_is_promoted),
    ("S13 S27 phases are honest", data::phases_are_honest),
    ("S28 a drill changes nothing", limits::drills_change_nothing),
    ("S29 nothing by omission", limits::nothing_by_omission),
    ("S7 a failover says what it loses", data::losses_are_told),
    ("S30 a hub without memory changes no role", limits::amnesia_is_harmless),
    ("S32 one owner", limits::one_owner),
    ("S33 within the namespace", limits::within_the_namespace),
    ("S3 S26 epochs grow", roles::epochs_grow),
    ("(notes)", note),
];

/// All that must hold.
pub fn hold(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    RULES.iter().try_for_each(|(name, rule)| rule(moment, before).map_err(|why| format!("{name}: {why}")))
}

fn note(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    before.phase = moment.phase();
    before.homes.clone_from(&moment.homes);
    for place in &moment.places {
        if let Some(intent) = place.intent.filter(|intent| intent.is_primary()) {
            let epoch = lifeboat_hub::drpc::commission::epoch_on(intent);
            before.promoted.insert(place.name.to_owned(), epoch);
        }
    }
    Ok(())
}

/// What an API server holds, read once for all rules.
pub struct Sight<'a> {
    drpc: Option<DRPlacementControl>,
    works: Vec<ManifestWork>,
    intents: Vec<(String, VolumeReplicationGroup, bool, Option<ObjectKey>)>,
    seen: BTreeMap<String, (bool, Option<VolumeReplicationGroup>)>,
    states: Vec<(String, State)>,
    pub chosen: Vec<String>,
    ground: &'a Ground,
}

fn owner<K: kube::Resource>(object: &K) -> Option<ObjectKey> {
    use lifeboat_api::annotations::{DRPC_NAME, DRPC_NAMESPACE};
    object.named_by(DRPC_NAMESPACE, DRPC_NAME)
}

impl<'a> Sight<'a> {
    pub fn of(scene: &Scene<'a, Ground>) -> Self {
        let ours = ObjectKey::new("shop", DRPC);
        let mut works = scene.list::<ManifestWork>();
        let intents = works.iter().filter_map(|work| {
            let group = works::read(work)?;
            Some((work.space().to_owned(), group, work.is_going(), owner(work)))
        });
        let intents = intents.collect();
        works.retain(|work| owner(work).is_some());
        let decisions = scene.list::<PlacementDecision>().into_iter().filter_map(|one| one.status);
        let chosen = decisions.flat_map(|status| status.decisions).filter(|one| one.reason.is_empty());
        let chosen = chosen.map(|one| one.cluster_name).collect();
        let views = scene.list::<ManagedClusterView>().into_iter();
        let seen = views.filter(|view| owner(view).as_ref() == Some(&ours)).map(|view| {
            let seen = views::seen::<VolumeReplicationGroup>(Some(&view));
            (view.space().to_owned(), (seen.is_answer(), seen.found().map(|group| (**group).clone())))
        });
        let spokes = scene.world.spokes.lock();
        let states = spokes.iter().map(|spoke| (spoke.name.clone(), spoke.state.lock().clone()));
        Self {
            drpc: scene.get("shop", DRPC),
            works,
            intents,
            seen: seen.collect(),
            states: states.collect(),
            chosen,
            ground: scene.world,
        }
    }

    fn moment(&self) -> Moment<'_> {
        let places = self.states.iter().map(|(name, truth)| {
            let sent = self.intents.iter().find(|(cluster, ..)| cluster == name);
            let seen = self.seen.get(name);
            Place {
                name,
                intent: sent.map(|(_, group, ..)| group),
                going: sent.is_some_and(|(_, _, going, _)| *going),
                owner: sent.and_then(|(.., owner)| owner.clone()),
                truth,
                answered: seen.is_some_and(|(answered, _)| *answered),
                seen: seen.and_then(|(_, group)| group.as_ref()),
            }
        });
        Moment {
            drpc: self.drpc.as_ref(),
            places: places.collect(),
            works: self.works.iter().collect(),
            homes: self.chosen.clone(),
            stores_read: None,
            just_told: false,
            now: self.ground.now(),
        }
    }
}

/// All that must hold, for stories with an API server.
pub fn holds(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let sight = Sight::of(scene);
    let mut before = scene.world.before.lock();
    hold(&sight.moment(), &mut before)?;
    let owners: BTreeSet<&ObjectKey> =
        sight.intents.iter().filter_map(|(.., owner)| owner.as_ref()).collect();
    if owners.len() > 1 {
        return Err(format!("S32 one owner: {owners:?} move one application"));
    }
    scene.world.witness.verdict()
}
