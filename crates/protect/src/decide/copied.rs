//! A primary whose claims a mover copies: a sender for each, on a schedule; and the last copy before the application moves, which counts only
//! when it was cut after the claim was at rest.

use crate::decide::plan::{Path, Plan, Said};
use crate::decide::replicated::foreign;
use crate::decide::{Effect, classify::Way, epoch, receive, received, undo};
use crate::status;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, OwnedWords as _, Words as _};
use crate::world::{Claim, MoverKey, World};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lifeboat_api::conditions::{volsync as mover, vrg as words};
use lifeboat_api::volsync::{
    CopyMethod, MoverConfig, ReplicationSource, ReplicationSourceSpec, RsyncTlsSource, SourceVolumeOptions,
    Trigger,
};
use lifeboat_api::{Interval, annotations, labels};
use lifeboat_engine::conditions::find;

/// How long the last copy of a peer's mover takes two rounds to be believed: the first may have been cut before it was asked for.
const SECOND_ROUND: &str = "-again";

/// A primary's claims that a mover copies.
pub fn primary(world: &World, now: Timestamp, plan: &mut Plan, claims: &[(&Claim, Way)]) {
    let (mut prepared, mut complete) = (true, true);
    for (claim, way) in claims {
        let (one_prepared, one_complete) = one(world, now, plan, claim, way);
        prepared &= one_prepared;
        complete &= one_complete;
    }
    // A claim that cannot be sorted may be one of these.
    let unsorted = plan.verdicts.values().any(|verdict| {
        verdict.said.get(words::TYPE_DATA_READY).is_some_and(|said| said.reason == words::REASON_ERROR)
    });
    let spec = &world.group.spec;
    // Stays said while the last copy runs: a Ramen hub that finds it gone asks for the preparation again, for ever.
    let said = world.group.status.as_ref().is_some_and(|status| status.prepare_for_final_sync_complete);
    let prepared = spec.prepare_for_final_sync && prepared || spec.run_final_sync && said;
    plan.prepared = Some(prepared && !unsorted);
    plan.final_sync = Some(spec.run_final_sync && complete && !unsorted);
}

/// Whether it is prepared for its last copy, and whether that is complete.
fn one(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim, way: &Way) -> (bool, bool) {
    let name = claim.name();
    let failed = |plan: &mut Plan, why: Wait| {
        let said = match why.weight() {
            0..=2 => Said::no(words::REASON_PROGRESSING, why.to_string()),
            _ => Said::no(words::REASON_ERROR, why.to_string()),
        };
        plan.verdict(name).say(words::TYPE_REPLICATION_SOURCE_SETUP, said);
        plan.wait_for(name, why);
        (false, false)
    };
    let restored = restored(world, claim);
    if let Some(said) = restored {
        plan.verdict(name).copied = true;
        plan.verdict(name).say(words::TYPE_PVS_RESTORED, said);
    }
    if !claim.claim.is_bound() {
        // One that was not restored is listed once it is bound.
        plan.wait_for(name, Wait::NotBound);
        return (false, false);
    }
    status::claim_known(plan, name, way, true);
    if !world.kinds.volsync {
        let why =
            "the cluster has no ReplicationSource: install the definitions of volsync.backube".to_owned();
        return failed(plan, Wait::Unsupported(why));
    }
    if !undo::protect(world, now, plan, claim, Path::Copied) {
        plan.verdict(name).say(
            words::TYPE_REPLICATION_SOURCE_SETUP,
            Said::no(words::REASON_PROGRESSING, "the claim is being protected"),
        );
        return (false, false);
    }
    let here = epoch::primary_epoch(world).filter(|_| epoch::superseded(world).is_none());
    let noted = |epoch: &i64| {
        let volume = claim.volume.as_ref().is_none_or(|volume| received::held_at(&**volume) == Some(*epoch));
        volume && received::held_at(&*claim.claim) == Some(*epoch)
    };
    if let Some(epoch) = here.filter(|epoch| !noted(epoch))
        && !world.group.in_final_sync()
    {
        let notes = received::held_notes(claim, epoch);
        plan.act_for(world, now, name, Effect::Note { claim: name.to_owned(), notes });
        return (false, false);
    }
    if let Some(why) = key(world, plan) {
        return failed(plan, why);
    }
    let address = match address(world, name) {
        Ok(address) => address,
        Err(why) => return failed(plan, why),
    };
    // A receiver on the same claim would write under the application.
    if let Some(receiver) = world.destinations.get(name).filter(|receiver| receiver.is_owned_by(&world.key()))
    {
        if !receiver.is_going() {
            plan.act_for(world, now, name, Effect::StopReceiving { claim: name.to_owned() });
            return (false, false);
        }
        return failed(plan, Wait::Removing(format!("the receiver of {name} is not gone yet")));
    }
    let source = world.sources.get(name);
    if let Some(source) = source {
        if let Some(why) = foreign(world, &**source, "ReplicationSource", name) {
            return failed(plan, why);
        }
        if source.is_going() {
            return failed(plan, Wait::Removing(format!("an earlier sender of {name} is being deleted")));
        }
        counters(plan, name, source);
    }
    if let Some(why) = source.and_then(|source| unable(world, claim, source)) {
        return failed(plan, why);
    }
    let trigger = match trigger(world, plan, claim, source.map(|source| &**source)) {
        Ok(trigger) => trigger,
        Err(why) => return failed(plan, why),
    };
    let hold = world.group.in_final_sync();
    let held = claim.claim.note(annotations::USE_COPY_TRIGGER) == Some(annotations::STOPPED_BY_RAMEN);
    // The last copy itself must run, so what holds copies back goes before it.
    let hold = hold && !world.group.spec.run_final_sync;
    if hold != held {
        plan.act_for(world, now, name, Effect::HoldCopies { claim: name.to_owned(), hold });
        return (false, false);
    }
    let last = trigger.manual.as_deref().is_some_and(|manual| manual.starts_with(mover::TRIGGER_FINAL));
    let spec = spec(world, claim, way, address, trigger.clone());
    if source.is_none_or(|source| !matches(&source.spec, &spec)) {
        plan.act_for(world, now, name, Effect::Send { claim: name.to_owned(), spec: Box::new(spec), last });
        return (false, false);
    }
    plan.verdict(name).say(
        words::TYPE_REPLICATION_SOURCE_SETUP,
        Said::yes(words::REASON_SOURCE_INITIALIZED, "the sender of the claim is set up"),
    );
    let source = source.expect("invariant: what matches is there");
    progress(world, plan, claim, source)
}

/// What is said about the restore of a claim, where it was restored: that stays true whatever else is waited for.
fn restored(world: &World, claim: &Claim) -> Option<Said> {
    let entries = world.group.status.iter().flat_map(|status| &status.protected_pvcs);
    let mut mine = entries.filter(|entry| entry.name.as_deref() == Some(claim.name()));
    let told = mine.find_map(|entry| find(&entry.conditions, words::TYPE_PVS_RESTORED));
    let told = told.is_some_and(|one| one.status == "True");
    let made = claim.claim.note(annotations::RESTORE).is_some();
    let until = claim.claim.note(annotations::IMAGE_CUT).filter(|_| made);
    let message = match until {
        Some(cut) => format!("the claim is restored from an image that was cut at {cut}"),
        None => "the claim is restored".to_owned(),
    };
    (told || made).then(|| Said::yes(words::REASON_RESTORED, message))
}

/// Why there is no key yet, where there is none; it is looked for.
pub fn key(world: &World, plan: &mut Plan) -> Option<Wait> {
    match world.mover_key {
        MoverKey::There => return None,
        MoverKey::Unknown if !plan.effects.contains(&Effect::FindKey) => plan.effects.push(Effect::FindKey),
        // Whoever waits for it wakes the group.
        MoverKey::Unknown | MoverKey::Missing => {}
    }
    Some(Wait::KeyMissing(world.key_secret()))
}

/// How far the preparation and the last copy are.
fn progress(world: &World, plan: &mut Plan, claim: &Claim, source: &ReplicationSource) -> (bool, bool) {
    let (group, name) = (&world.group.spec, claim.name());
    if !world.group.in_final_sync() {
        if let Some(stopped) = stopped(source) {
            let why = format!("PVC {name} is not copied now: {}", stopped.message);
            plan.verdict(name)
                .say(words::TYPE_DATA_PROTECTED, Said::no(words::REASON_PROGRESSING, why.clone()));
            plan.wait_for(name, Wait::Mover(why));
        }
        return (false, false);
    }
    if group.run_final_sync {
        let complete = is_complete(world, source);
        if !complete {
            plan.wait_for(name, Wait::Mover(format!("the last copy of {name} is not complete yet")));
        }
        return (true, complete);
    }
    // Said once for a request, it stays so: a hub that finds it gone begins anew.
    let status = world.group.status.as_ref();
    let said = status.is_some_and(|status| {
        status.prepare_for_final_sync_complete
            && status.observed_generation == world.group.metadata.generation
    });
    // A mover that was told to hold counts as copying while it waits for the word to go on.
    let waits =
        claim.claim.note(annotations::LATEST_COPY_STATUS) == Some(mover::COPY_STATUS_WAITING_FOR_TRIGGER);
    let prepared = said || waits || !is_running(source);
    if !prepared {
        plan.wait_for(name, Wait::Mover(format!("a copy of {name} is still running")));
    }
    (prepared, false)
}

/// What the mover says where a copy failed, and the next one may fail too.
fn stopped(source: &ReplicationSource) -> Option<&Condition> {
    let conditions = &source.status.as_ref()?.conditions;
    find(conditions, mover::TYPE_SYNCHRONIZING)
        .filter(|one| one.status == "False" && one.reason == mover::REASON_ERROR)
}

fn is_running(source: &ReplicationSource) -> bool {
    let conditions = source.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find(conditions, mover::TYPE_SYNCHRONIZING).is_some_and(|one| one.status == "True")
}

/// The word that a last copy is asked for with: nobody has used it before.
pub fn token(world: &World) -> String {
    let generation = world.group.metadata.generation.unwrap_or_default();
    let epoch = epoch::primary_epoch(world).unwrap_or_default();
    format!("{}-{epoch}-{generation}", mover::TRIGGER_FINAL)
}

fn external<'a>(source: &'a ReplicationSource, key: &str) -> Option<&'a str> {
    source.status.as_ref()?.external.get(key).map(String::as_str)
}

/// Whether our own mover serves the sender: it cuts after it has seen the word, and the receiver echoes it. A peer's mover may give the new
/// word to a copy that had begun before, so it is asked twice.
fn is_ours(source: &ReplicationSource) -> bool {
    external(source, mover::EXTERNAL_EXECUTOR) == Some(mover::EXECUTOR_LIFEBOAT)
}

/// Whether somebody else's mover serves the sender.
fn is_foreign(source: &ReplicationSource) -> bool {
    let status = source.status.as_ref();
    !is_ours(source)
        && status.is_some_and(|status| !status.conditions.is_empty() || status.last_sync_time.is_some())
}

/// Why the last copy cannot be made by the mover that serves the sender. VolSync takes a snapshot of the claim; the claim is being deleted by then, and
/// the snapshot controller refuses one of such a claim. It is said before the application is stopped.
fn unable(world: &World, claim: &Claim, source: &ReplicationSource) -> Option<Wait> {
    let spec = &world.group.spec;
    let asked = spec.prepare_for_final_sync || spec.run_final_sync && claim.claim.is_going();
    (asked && is_foreign(source) && !is_complete(world, source)).then(|| {
        Wait::Unsupported(format!(
            "PVC {} is copied by a stock VolSync, whose final sync cannot end: it takes a snapshot of a PVC that is being deleted, which the snapshot controller refuses. The relocation is not begun: fail over instead, or let lifeboat's own mover copy the PVC",
            claim.name()
        ))
    })
}

/// Whether the last copy is complete.
pub fn is_complete(world: &World, source: &ReplicationSource) -> bool {
    let token = token(world);
    let done = source.status.as_ref().and_then(|status| status.last_manual_sync.as_deref());
    match is_ours(source) {
        true => {
            done == Some(token.as_str()) && external(source, mover::EXTERNAL_ECHO) == Some(token.as_str())
        }
        false => done == Some(format!("{token}{SECOND_ROUND}").as_str()),
    }
}

/// When the next copy is due: on schedule, not at all, or the last one now.
fn trigger(
    world: &World,
    _plan: &mut Plan,
    claim: &Claim,
    source: Option<&ReplicationSource>,
) -> Result<Trigger, Wait> {
    let spec = &world.group.spec;
    let manual = |word: String| Ok(Trigger { schedule: None, manual: Some(word) });
    if spec.run_final_sync {
        if !claim.users.is_empty() {
            return Err(Wait::InUse(claim.users.join(", ")));
        }
        let Some(source) = source else { return manual(token(world)) };
        let token = token(world);
        let done = source.status.as_ref().and_then(|status| status.last_manual_sync.as_deref());
        let again = format!("{token}{SECOND_ROUND}");
        let asked = source.spec.trigger.as_ref().and_then(|trigger| trigger.manual.as_deref());
        let second = !is_ours(source) && (done == Some(token.as_str()) || asked == Some(again.as_str()));
        return manual(if second { again } else { token });
    }
    if spec.prepare_for_final_sync {
        return manual(mover::TRIGGER_PREPARE.to_owned());
    }
    let interval = spec.async_.as_ref().map(|mode| mode.scheduling_interval.as_str()).unwrap_or_default();
    let schedule = match Interval::of(interval) {
        // Without a schedule copies follow one another.
        Some(interval) => interval.cron(),
        None => Some("*/10 * * * *".to_owned()),
    };
    Ok(Trigger { schedule, manual: None })
}

/// Where the receiver listens: by a name that all clusters know, or where the hub says.
fn address(world: &World, name: &str) -> Result<String, Wait> {
    let space = world.group.space();
    if world.group.names_reach() {
        return Ok(format!("{}.{space}.svc.clusterset.local", receive::service(name)));
    }
    let listed = world.group.spec.vol_sync.iter().flat_map(|volsync| &volsync.rs_spec);
    let mine = listed.filter(|entry| {
        entry.protected_pvc.as_ref().is_some_and(|claim| claim.name.as_deref() == Some(name))
    });
    let mut addresses = mine.filter_map(|entry| entry.rsync_tls.as_ref()?.address.clone());
    addresses.next().filter(|address| !address.is_empty()).ok_or_else(|| {
        Wait::Mover(format!("nobody has said yet where the receiver of {name} listens (volSync.rsSpec)"))
    })
}

fn spec(world: &World, claim: &Claim, way: &Way, address: String, trigger: Trigger) -> ReplicationSourceSpec {
    let class = world.class_of(&claim.claim);
    let read_only = class.is_some_and(|class| class.provisioner == world.config.read_only_many_driver);
    ReplicationSourceSpec {
        source_pvc: Some(claim.name().to_owned()),
        trigger: Some(trigger),
        paused: false,
        rsync_tls: Some(RsyncTlsSource {
            volume: SourceVolumeOptions {
                copy_method: Some(CopyMethod::Snapshot),
                storage_class_name: claim.claim.class_name().map(str::to_owned),
                access_modes: if read_only { vec!["ReadOnlyMany".to_owned()] } else { Vec::new() },
                volume_snapshot_class_name: way.class.clone(),
                ..SourceVolumeOptions::default()
            },
            mover: mover_config(world, claim.name()),
            key_secret: Some(world.key_secret()),
            address: Some(address),
            port: None,
        }),
        ..ReplicationSourceSpec::default()
    }
}

/// How the mover of a claim runs, as its group says.
pub fn mover_config(world: &World, name: &str) -> MoverConfig {
    let wanted = world.group.spec.vol_sync.iter().flat_map(|volsync| &volsync.mover_config);
    let mine = wanted.into_iter().find(|config| {
        config.pvc_name == name
            && (config.pvc_namespace.is_empty() || config.pvc_namespace == world.group.space())
    });
    MoverConfig {
        mover_security_context: mine.and_then(|config| config.mover_security_context.clone()),
        mover_service_account: mine.and_then(|config| config.mover_service_account.clone()),
        mover_pod_labels: [(labels::CREATED_BY_RAMEN.to_owned(), labels::CREATED_BY_RAMEN_VALUE.to_owned())]
            .into(),
        ..MoverConfig::default()
    }
}

/// Whether a sender already is what it shall be, in the fields that are ours.
fn matches(has: &ReplicationSourceSpec, wanted: &ReplicationSourceSpec) -> bool {
    has.source_pvc == wanted.source_pvc
        && has.trigger == wanted.trigger
        && has.rsync_tls == wanted.rsync_tls
        && has.paused == wanted.paused
}

/// When the newest complete copy was cut: a copy that took long is as old as its beginning.
fn counters(plan: &mut Plan, name: &str, source: &ReplicationSource) {
    let status = source.status.clone().unwrap_or_default();
    let took = status.last_sync_duration.as_ref().and_then(lifeboat_api::Duration::to_std);
    let took = took.and_then(|took| SignedDuration::try_from(took).ok()).unwrap_or(SignedDuration::ZERO);
    let verdict = plan.verdict(name);
    verdict.last_sync = status.last_sync_time.map(|ended| {
        Time(lifeboat_engine::conditions::whole_seconds(ended.0.checked_sub(took).unwrap_or(ended.0)))
    });
    verdict.duration = status.last_sync_duration;
}
