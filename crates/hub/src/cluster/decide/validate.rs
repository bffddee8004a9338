//! Whether a cluster can be used: its store, what was sent to it, its survey, its addresses.

use super::super::manifests;
use super::super::settings::Config;
use super::super::survey;
use super::super::why::Wait;
use super::super::world::{Agent, World};
use super::{Effect, Plan};
use crate::secrets::{Carriage, carriage};
use crate::words::Words as _;
use crate::works;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::ramen::{DRClusterConfig, DRClusterStatus, NO_S3};
use lifeboat_engine::ObjectKey;
use lifeboat_engine::conditions::{Conditions, Holds};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// What to do so that the cluster can be used, and what is in the way, the first thing first.
///
/// # Errors
/// What is in the way.
pub fn judge(
    world: &World,
    now: Timestamp,
    plan: &mut Plan,
    status: &mut DRClusterStatus,
    fenced: bool,
) -> Result<String, Wait> {
    let mut problems: Vec<Wait> = Vec::new();
    problems.extend(undone(world));
    match &world.config {
        Err(why) => problems.push(Wait::NoConfig(why.clone())),
        Ok(config) => {
            // A cluster that is cut off may have lost its store with everything else: that is no news.
            if !fenced {
                problems.extend(store(world, config, now, plan).err());
            }
            problems.extend(sent(world, config, plan));
        }
    }
    problems.extend(surveyed(world, plan));
    problems.extend(addresses(world, status, now));
    match problems.into_iter().next() {
        None if fenced => Ok("Validated the cluster; it is fenced, so its store was not tried".to_owned()),
        None => match missed(world) {
            None => Ok("Validated the cluster".to_owned()),
            Some(why) => Ok(format!("Validated the cluster; {why}")),
        },
        Some(first) => {
            plan.waits.push(first.clone());
            Err(first)
        }
    }
}

/// What was tried last and failed.
fn undone(world: &World) -> Option<Wait> {
    let trouble = world.trouble.as_ref()?;
    let reason = match trouble.effect.as_str() {
        "Adopt" => drcluster::REASON_FINALIZER_ADD_FAILED,
        "Send" | "SendStores" => drcluster::REASON_DEPLOY_FAILED,
        _ => drcluster::REASON_ERROR,
    };
    Some(Wait::Undone { reason: reason.to_owned(), message: trouble.message.clone() })
}

/// Which store with which keys is meant.
fn question(world: &World, config: &Config) -> Result<String, Wait> {
    let fails = |sentence: String| Wait::StoreFails {
        reason: drcluster::REASON_S3_CONNECTION_FAILED.to_owned(),
        sentence,
    };
    let name = &world.cluster.spec.s3_profile_name;
    let profile = config.profile(name).map_err(fails)?;
    match world.secrets.get(name) {
        Some(Some(version)) => Ok(format!(
            "{}|{}|{}|{}|{}|{version}",
            profile.name,
            profile.endpoint,
            profile.bucket,
            profile.region,
            profile.ca_certificates.as_deref().unwrap_or_default()
        )),
        _ => Err(fails(format!(
            "the secret {} with the keys to the store {name} does not exist in the hub's own namespace: create it",
            profile.secret.name
        ))),
    }
}

fn store(world: &World, config: &Config, now: Timestamp, plan: &mut Plan) -> Result<(), Wait> {
    let name = &world.cluster.spec.s3_profile_name;
    if name == NO_S3 {
        return Ok(());
    }
    let question = question(world, config)?;
    let answer = world.check.answer.as_ref().filter(|answer| answer.question == question);
    let busy = world.check.busy.is_some();
    match answer {
        None => {
            if !busy {
                plan.effects.push(Effect::Try { question });
            }
            Err(Wait::StoreBeingTried(name.clone()))
        }
        Some(answer) => match &answer.outcome {
            Ok(()) => Ok(()),
            Err(failure) => {
                match (busy, now >= answer.retry_at) {
                    (true, _) => {}
                    (false, true) => plan.effects.push(Effect::Try { question }),
                    (false, false) => plan.look_at(answer.retry_at),
                }
                let (reason, sentence) = (failure.reason.clone(), failure.sentence.clone());
                Err(Wait::StoreFails { reason, sentence })
            }
        },
    }
}

/// Roles, where the agent needs them, configuration and keys, and whether they have arrived.
fn sent(world: &World, config: &Config, plan: &mut Plan) -> Vec<Wait> {
    if !world.managed.joined {
        return vec![Wait::NotJoined(world.name().to_owned())];
    }
    let mut problems = Vec::new();
    if world.agent == Agent::Others {
        let state = plan.send(world, manifests::roles(world.name()));
        problems.extend(arrived(world, manifests::ROLES_WORK, &state));
    }
    if let Some(work) = manifests::operator(world, config) {
        let state = plan.send(world, work);
        problems.extend(arrived(world, manifests::OPERATOR_WORK, &state));
    }
    let versions = manifests::versions(world, config);
    if config.carries_secrets && !versions.is_empty() {
        let key = ObjectKey::new(world.name(), manifests::STORES_WORK);
        let known = world.works.get(&key);
        let carried = known.and_then(|work| work.note(annotations::CARRIED_VERSIONS));
        let mut state = carriage(known.map(|work| &**work));
        if state != Carriage::Going && carried != Some(&versions) {
            plan.effects.push(Effect::SendStores { versions });
            state = Carriage::Missing;
        }
        problems.extend(arrived(world, manifests::STORES_WORK, &state));
    }
    problems
}

fn arrived(world: &World, work: &str, state: &Carriage) -> Option<Wait> {
    let work = work.to_owned();
    match state {
        Carriage::Applied => None,
        Carriage::Refused(why) => Some(Wait::Refused { work, why: why.clone() }),
        Carriage::Missing | Carriage::Sent | Carriage::Going => {
            Some(Wait::NotApplied { work, silent: world.silence(world.name()) })
        }
    }
}

/// The cluster's survey: asked for, looked at, and with it all classes that it names.
fn surveyed(world: &World, plan: &mut Plan) -> Option<Wait> {
    if !world.managed.joined {
        return Some(Wait::NotJoined(world.name().to_owned()));
    }
    let Some(id) = &world.managed.id else { return Some(Wait::Unidentified(world.name().to_owned())) };
    let wanted = manifests::config(world, id);
    if is_of_another(world, id) {
        // The identity in it cannot be changed: what a former cluster of this name was told goes first.
        plan.take_back(&ObjectKey::of(&wanted));
        return arrived(world, manifests::CONFIG_WORK, &Carriage::Going);
    }
    let state = plan.send(world, wanted);
    plan.ask(world, survey::config_view(world.name()));
    if let Some(known) = world.survey.known() {
        classes(world, known, plan);
        // Only its own store: that of a peer may be lost with the peer, and this cluster is needed all the more then.
        let own = &world.cluster.spec.s3_profile_name;
        let mut failing = known.out_of_reach();
        failing.retain(|store, _| store.is_empty() || store == own);
        if let Some(why) = survey::unreached(world.name(), &failing)
            && world.silence(world.name()).is_none()
        {
            return Some(Wait::StoreOutOfReach(why));
        }
    }
    arrived(world, manifests::CONFIG_WORK, &state)
}

/// Whether the cluster was rebuilt, and its DRClusterConfig is still that of the former one: the work says so, or the cluster refuses the work and shows it.
fn is_of_another(world: &World, id: &str) -> bool {
    let key = ObjectKey::new(world.name(), manifests::CONFIG_WORK);
    let Some(work) = world.works.get(&key).filter(|work| !work.is_going()) else { return false };
    let told = works::read::<DRClusterConfig>(work).map(|config| config.spec.cluster_id);
    let shown = world.survey.known().map(|known| known.classes.cluster_id.as_str());
    let refused = matches!(carriage(Some(work)), Carriage::Refused(_));
    told.is_some_and(|told| told != id) || refused && shown.is_some_and(|shown| shown != id)
}

/// Which stores of its peers the cluster does not reach, by its own word.
fn missed(world: &World) -> Option<String> {
    let known = world.survey.known().filter(|_| world.silence(world.name()).is_none())?;
    survey::unreached(world.name(), &known.out_of_reach())
}

fn classes(world: &World, known: &survey::Known, plan: &mut Plan) {
    let used = world.policies.iter().any(|policy| !policy.going);
    let wanted = if used { survey::class_views(world.name(), &known.told) } else { Vec::new() };
    let names: BTreeSet<ObjectKey> = wanted.iter().map(ObjectKey::of).collect();
    for view in wanted {
        plan.ask(world, view);
    }
    for (key, _) in world.views.iter().filter(|(key, view)| {
        key.namespace == world.name() && survey::shows_class(view) && !names.contains(*key)
    }) {
        plan.stop_asking(key);
    }
}

/// Those that are no address ranges.
pub fn unreadable(cidrs: &[String]) -> Option<String> {
    let bad: Vec<&str> = cidrs.iter().filter(|text| !is_range(text)).map(String::as_str).collect();
    (!bad.is_empty()).then(|| bad.join(", "))
}

fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|length| length <= most)
}

fn addresses(world: &World, status: &mut DRClusterStatus, now: Timestamp) -> Option<Wait> {
    let cidrs = &world.cluster.spec.cidrs;
    let type_ = drcluster::TYPE_CIDRS_VALIDATED;
    if cidrs.is_empty() {
        status.conditions.retain(|condition| condition.type_ != type_);
        return None;
    }
    let set = Conditions { generation: world.cluster.metadata.generation, now };
    if let Some(bad) = unreadable(cidrs) {
        let wait = Wait::BadAddresses(bad);
        let reason = drcluster::REASON_INVALID_CIDRS_FORMAT;
        set.set(&mut status.conditions, type_, Holds::False, reason, wait.to_string());
        return Some(wait);
    }
    let told =
        world.survey.known().map(|known| known.told.storage_access_details.as_slice()).unwrap_or_default();
    let detected: BTreeSet<&String> = told.iter().flat_map(|detail| &detail.cidrs).collect();
    let configured: BTreeSet<&String> = cidrs.iter().collect();
    let list = |these: Vec<&&String>| these.iter().map(|text| text.as_str()).collect::<Vec<_>>().join(", ");
    let unconfigured = list(detected.difference(&configured).collect());
    let undetected = list(configured.difference(&detected).collect());
    if !unconfigured.is_empty() {
        let wait = Wait::UnconfiguredAddresses(unconfigured);
        let reason = drcluster::REASON_DETECTED_CIDRS_UNCONFIGURED;
        set.set(&mut status.conditions, type_, Holds::False, reason, wait.to_string());
        return Some(wait);
    }
    let (reason, said) = match detected.is_empty() || undetected.is_empty() {
        true => (drcluster::REASON_SUCCEEDED, "address ranges are valid".to_owned()),
        false => (
            drcluster::REASON_UNDETECTED_CIDRS_FOUND,
            format!("no node reaches storage from {undetected}: they may be left over"),
        ),
    };
    set.set(&mut status.conditions, type_, Holds::True, reason, said);
    None
}
