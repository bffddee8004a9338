//! What a hub may believe that lost its memory, or was restored from an old copy. Until every cluster that can be reached has answered, nothing changes
//! role; then the highest epoch decides. Where the facts do not tell, or the wish is not what the roles were last changed for, a user must
//! choose.
//!
//! A hub remembers by the phase in status and the commission on the object. A restored object has no status; one restored together with its status is
//! found out by groups that have seen a later epoch.

use crate::drpc::commission::{Act, Commission};
use crate::drpc::decide::adopt::adopt;
use crate::drpc::decide::orphan::is_orphaned;
use crate::drpc::decide::{Effect, Peer, Report, Step, Wish, commission, wish};
use crate::drpc::why::Wait;
use crate::drpc::world::{GroupWords as _, Site, World};
use crate::views::Seen;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{DRState, Progression, VolumeReplicationGroup};

/// What the hub knows.
#[derive(Debug, Clone, PartialEq)]
pub enum Memory {
    /// Who is primary.
    Known(Commission),
    /// That the application was never deployed.
    New,
    /// Not enough; this comes next.
    Step(Step),
}

/// Finds out what is known.
pub fn recover(world: &World, now: Timestamp) -> Memory {
    let on_record = world.commission();
    let paused = matches!(world.phase(), None | Some(DRState::WaitForUser)) || is_stopped(world);
    let behind = is_behind(world, on_record.as_ref());
    // A cluster that was never heard of in the life of this process may know more than a hub that was restored from an old copy; its records tell.
    let unproven = world.members().into_iter().filter_map(|name| world.site(name)).any(Site::is_unproven);
    if unproven && !paused && world.books.reading.is_none() {
        return Memory::Step(Step::one(Effect::ReadStores));
    }
    match on_record {
        Some(commission) if !behind && (!paused || is_orphaned(world, now, &commission)) => {
            return Memory::Known(commission);
        }
        _ => {}
    }
    if let Some(step) = unheard(world, now).or_else(|| adopt(world, now)).or_else(|| unanswered(world, now)) {
        return Memory::Step(step);
    }
    judge(world, now, on_record)
}

/// Whether we said before that a user must choose.
fn is_stopped(world: &World) -> bool {
    let shown = world.drpc.status.as_ref().and_then(|status| status.progression.clone());
    shown == Some(Progression::Paused)
}

/// Whether a group knows of a later epoch than we do: what we remember is of an older day.
fn is_behind(world: &World, on_record: Option<&Commission>) -> bool {
    let ours = on_record.map_or(0, |commission| commission.epoch);
    let stored = world.books.reading.as_ref().map_or(0, |reading| reading.epoch);
    world.sites.values().filter_map(|site| site.seen.found()).any(|group| group.epoch() > ours)
        || (on_record.is_some() && stored > ours)
}

/// What is said of a cluster that has not been heard of since the hub started.
pub fn not_heard(site: &Site) -> Wait {
    Wait::ViewPending(format!(
        "cluster {} has not been heard of since this hub started; no role and no placement changes before it is, or is shown to be silent",
        site.name
    ))
}

/// When clusters that are never heard of are shown to be silent.
pub fn heard_by(unheard: &[&Site], now: Timestamp) -> Option<Timestamp> {
    let left =
        unheard.iter().filter_map(|site| Some(site.beat.as_ref()?.left(site.managed.as_deref()))).max()?;
    now.checked_add(left + jiff::SignedDuration::from_secs(1)).ok()
}

/// Clusters that may still be heard of are waited for.
fn unheard(world: &World, now: Timestamp) -> Option<Step> {
    let sites = world.members().into_iter().filter_map(|name| world.site(name));
    let unheard: Vec<&Site> = sites.filter(|site| site.is_unheard()).collect();
    let mut report = Report::new(unchanged(world), quiet(world), Peer::Initiating);
    report.waits = unheard.iter().map(|site| not_heard(site)).collect();
    report.until = heard_by(&unheard, now);
    (!unheard.is_empty()).then_some(Step::Rest(report))
}

/// Clusters that can be reached and have not answered are waited for.
fn unanswered(world: &World, now: Timestamp) -> Option<Step> {
    let mut waits = Vec::new();
    for site in world.members().into_iter().filter_map(|name| world.site(name)) {
        if !site.is_fresh(now) {
            continue;
        }
        match &site.seen {
            Seen::NotYet => waits.push(Wait::ViewPending(format!(
                "cluster {} has not told yet whether it has the group {}",
                site.name,
                world.group_key()
            ))),
            Seen::Failed(why) => {
                waits.push(Wait::ViewFailed(format!("cluster {} cannot be looked at: {why}", site.name)));
            }
            Seen::Absent | Seen::Found(_) => {}
        }
    }
    let mut report = Report::new(unchanged(world), quiet(world), Peer::Initiating);
    report.waits = waits;
    (!report.waits.is_empty()).then_some(Step::Rest(report))
}

/// The phase that is shown. A phase would be taken for memory, so nothing becomes one here.
pub fn unchanged(world: &World) -> DRState {
    world.phase().unwrap_or(DRState::Other(String::new()))
}

/// The progression to show while nothing is known: what was shown, unless that says that all is done.
pub fn quiet(world: &World) -> Progression {
    let shown = world.drpc.status.as_ref().and_then(|status| status.progression.clone());
    shown.unwrap_or(Progression::Other(String::new()))
}

fn judge(world: &World, now: Timestamp, on_record: Option<Commission>) -> Memory {
    let members: Vec<&Site> = world.members().into_iter().filter_map(|name| world.site(name)).collect();
    let answered: Vec<&Site> = members.iter().copied().filter(|site| site.has_answered(now)).collect();
    let silent: Vec<&Site> = members.iter().copied().filter(|site| !site.has_answered(now)).collect();
    let groups: Vec<(&Site, &VolumeReplicationGroup)> =
        answered.iter().filter_map(|site| Some((*site, &**site.seen.found()?))).collect();
    let Some(wish) = wish(world) else { return stop("what is asked for cannot be told") };
    if answered.is_empty() {
        let told: Vec<String> = silent.iter().map(|site| reason(site, now)).collect();
        return stop(format!("no cluster of the policy can be asked: {}", told.join("; ")));
    }
    if let Some(memory) = chosen_by_user(world, now, &wish, &groups, on_record.as_ref()) {
        return memory;
    }
    if groups.is_empty() {
        return without_groups(world, &wish, &silent, on_record, now);
    }
    with_groups(world, &wish, &groups, &silent, on_record, now)
}

/// No cluster that answered has a group.
fn without_groups(
    world: &World,
    wish: &Wish,
    silent: &[&Site],
    on_record: Option<Commission>,
    now: Timestamp,
) -> Memory {
    if world.books.is_wanting(now) {
        return Memory::Step(Step::one(Effect::ReadStores));
    }
    let recorded = world.books.reading.as_ref().and_then(|reading| reading.primary.as_ref());
    if on_record.is_none()
        && recorded.is_none()
        && let Some(why) = unread(world)
    {
        let report = Report::new(unchanged(world), quiet(world), Peer::Initiating);
        return Memory::Step(Step::Rest(report.waiting(why).until(world.books.again())));
    }
    if silent.is_empty() {
        return match on_record {
            // It was deployed once, and its groups are gone from both clusters: nobody but a user knows why.
            Some(commission) => ask(format!(
                "the application was made primary on {} at epoch {}, and no cluster has its group any more",
                commission.holder, commission.epoch
            )),
            None => Memory::New,
        };
    }
    let told: Vec<String> = silent.iter().map(|site| reason(site, now)).collect();
    let told = told.join("; ");
    if on_record.is_some() || recorded.is_some() {
        let last = recorded.and_then(|recorded| recorded.cluster.clone());
        let last = last.or_else(|| on_record.map(|commission| commission.holder));
        let last = last.unwrap_or_else(|| "a cluster that cannot be told".to_owned());
        return ask(format!("the application was last primary on {last}, and {told}"));
    }
    match silent.iter().any(|site| site.name == wish.target) {
        true => stop(format!("the application cannot be deployed: {told}")),
        false => Memory::New,
    }
}

/// Why it cannot be told that an application is new: a store could not be read, or has another fleet's records of its name, and nobody says that it hides
/// nothing.
pub fn unread(world: &World) -> Option<Wait> {
    let reading = world.books.reading.as_ref().filter(|reading| !reading.is_whole())?;
    if world.drpc.note(annotations::FIRST_DEPLOYMENT) == Some("true") {
        return None;
    }
    if !reading.foreign.is_empty() {
        let told: Vec<&str> = reading.foreign.values().map(String::as_str).collect();
        return Some(Wait::OtherFleet(format!(
            "{}. If the application {} is new, and shall not be recorded there, put the annotation {}=true on its DRPlacementControl.",
            told.join("; "),
            world.drpc.name(),
            annotations::FIRST_DEPLOYMENT
        )));
    }
    let told: Vec<String> = reading.unread.iter().map(|(name, why)| format!("{name} ({why})")).collect();
    Some(Wait::StoresUnread(format!(
        "S3 profile {} cannot be read, so it is not known whether the application {} was deployed before. It is asked again every 30 seconds. If the \
         application is new, put the annotation {}=true on its DRPlacementControl.",
        told.join(", "),
        world.drpc.name(),
        annotations::FIRST_DEPLOYMENT
    )))
}

/// Some cluster that answered has a group.
fn with_groups(
    world: &World,
    wish: &Wish,
    groups: &[(&Site, &VolumeReplicationGroup)],
    silent: &[&Site],
    on_record: Option<Commission>,
    now: Timestamp,
) -> Memory {
    let highest = world.highest_epoch();
    let primaries: Vec<&(&Site, &VolumeReplicationGroup)> =
        groups.iter().filter(|(_, group)| group.is_primary()).collect();
    let found = commissioned(wish, groups, &primaries, highest);
    let found = found.or_else(|| on_record.clone().filter(|known| known.epoch >= highest));
    let Some(found) = found else {
        return unclear(wish, &primaries, silent, highest, on_record);
    };
    let matches = wish.act == found.act && wish.target == found.holder;
    let holder_answers = groups.iter().any(|(site, _)| site.name == found.holder);
    if silent.is_empty() {
        // Who asks for no action asks for no change.
        return match matches || wish.act == Act::Deploy {
            true => Memory::Known(found),
            false => ask(differs(wish, &found)),
        };
    }
    let told: Vec<String> = silent.iter().map(|site| reason(site, now)).collect();
    let told = told.join("; ");
    // What the silent cluster last heard may be later than what anybody else knows.
    let primary_here = primaries.iter().any(|(site, _)| site.name == found.holder);
    match (matches && primary_here, holder_answers) {
        (true, _) => Memory::Known(found),
        (false, true) => ask(format!("{}, and {told}", differs(wish, &found))),
        (false, false) => ask(format!("the application was last primary on {}, and {told}", found.holder)),
    }
}

/// What the groups say about themselves, if one of them knows the highest epoch.
fn commissioned(
    wish: &Wish,
    groups: &[(&Site, &VolumeReplicationGroup)],
    primaries: &[&(&Site, &VolumeReplicationGroup)],
    highest: i64,
) -> Option<Commission> {
    let mut noted = groups.iter().filter_map(|(_, group)| Commission::on(*group));
    if let Some(found) = noted.find(|found| found.epoch == highest) {
        return Some(found);
    }
    // One that became primary at it may have been sent an older word since, by a hub that was restored.
    let held = |group: &VolumeReplicationGroup| group.status.as_ref().and_then(|status| status.primary_epoch);
    if let Some((site, group)) = groups.iter().find(|(_, group)| highest > 0 && held(group) == Some(highest))
    {
        let said = Act::asked(group.spec.action.as_ref()).unwrap_or(Act::Deploy);
        let act = if site.name == wish.target { wish.act } else { said };
        return Some(Commission { epoch: highest, holder: site.name.clone(), act });
    }
    // A group of another hub has no epoch, or one that it took by itself; a single primary still says who it is.
    let [(site, group)] = primaries else { return None };
    let act = Act::asked(group.spec.action.as_ref())?;
    (group.epoch() == highest).then(|| Commission { epoch: highest.max(1), holder: site.name.clone(), act })
}

/// Nothing says who is primary at the highest epoch.
fn unclear(
    wish: &Wish,
    primaries: &[&(&Site, &VolumeReplicationGroup)],
    silent: &[&Site],
    highest: i64,
    on_record: Option<Commission>,
) -> Memory {
    // Somebody else used up our number, such as records of an earlier life of the name: all agree on who is primary, so the next number is his.
    if let ([(site, _)], true, Some(ours)) = (primaries, silent.is_empty(), &on_record)
        && site.name == ours.holder
    {
        return Memory::Known(Commission { epoch: highest + 1, ..ours.clone() });
    }
    // Two primaries without epochs are what another hub leaves in the middle of a failover.
    let meant = primaries.iter().find(|(site, group)| {
        site.name == wish.target && Act::asked(group.spec.action.as_ref()) == Some(wish.act)
    });
    if let Some((site, _)) = meant.filter(|_| wish.act == Act::Failover) {
        return Memory::Known(Commission { epoch: highest + 1, holder: site.name.clone(), act: wish.act });
    }
    match (primaries.len(), silent.is_empty()) {
        (0, true) => stop(
            "all groups are secondary, and nothing tells which was to become primary: set the action and the cluster",
        ),
        (0, false) => ask("no primary can be seen, and one cluster does not answer"),
        (1, _) => ask("a group was made primary by somebody else at a later epoch"),
        _ => stop("two groups are primary, and nothing tells which came last"),
    }
}

/// A user who changed what he asks for after he was told to choose has chosen. A failover is all he can choose safely; and only to a cluster that
/// answers.
fn chosen_by_user(
    world: &World,
    now: Timestamp,
    wish: &Wish,
    groups: &[(&Site, &VolumeReplicationGroup)],
    on_record: Option<&Commission>,
) -> Option<Memory> {
    let asked = world.drpc.status.as_ref().and_then(|status| status.observed_generation)?;
    let waited = world.phase() == Some(DRState::WaitForUser) || is_stopped(world);
    if !waited || world.drpc.generation() <= asked || wish.act != Act::Failover {
        return None;
    }
    let target = world.site(&wish.target)?;
    if !target.has_answered(now) {
        return None;
    }
    let highest = world.highest_epoch();
    let primaries: Vec<_> = groups.iter().filter(|(_, group)| group.is_primary()).collect();
    let was = commissioned(wish, groups, &primaries, highest);
    let was = was.or(on_record.cloned());
    // Whoever was primary: from here the failover goes its usual way, with all its checks.
    let peer = world.peer_of(&wish.target).map(|site| site.name.clone())?;
    let was = was.unwrap_or(Commission { epoch: highest, holder: peer, act: Act::Deploy });
    let was = Commission { epoch: highest.max(was.epoch).max(1), ..was };
    let report =
        Report::new(DRState::Initiating, Progression::CheckingFailoverPrerequisites, Peer::NotStarted);
    Some(Memory::Step(Step::Do(vec![commission(world, was)], Some(report))))
}

fn differs(wish: &Wish, found: &Commission) -> String {
    format!(
        "the application was last placed by {} on {} (epoch {}), and what is asked for is {} to {}",
        found.act, found.holder, found.epoch, wish.act, wish.target
    )
}

fn reason(site: &Site, now: Timestamp) -> String {
    match site.reach(now) {
        crate::views::Reach::Silent(why) => why,
        crate::views::Reach::Fresh => format!("cluster {} has not answered", site.name),
    }
}

/// A user may fail over.
fn ask(why: impl Into<String>) -> Memory {
    let why = format!("{}: check, then set the action Failover and the cluster to run on", why.into());
    let report = Report::new(DRState::WaitForUser, Progression::Paused, Peer::FailoverAllowed);
    Memory::Step(Step::Rest(report.waiting(Wait::UserMustChoose(why))))
}

/// Nothing may be done.
fn stop(why: impl Into<String>) -> Memory {
    let report = Report::new(DRState::Other(String::new()), Progression::Paused, Peer::Paused);
    Memory::Step(Step::Rest(report.waiting(Wait::RolesUnclear(why.into()))))
}
