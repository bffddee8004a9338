//! Every rule about senders.

use crate::cron::Schedule;
use crate::place::{Here, Place, epoch_of};
use crate::source::failure::Kind;
use crate::source::status::{self, last_cut};
use crate::source::world::{Cut, World};
use crate::why::Wait;
use crate::words::Words as _;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::conditions::volsync as words;
use lifeboat_api::volsync::ReplicationSourceStatus;
use lifeboat_engine::Decision;
use lifeboat_stream::Sent;

/// What can be done about a sender.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Looks at the disks of a class.
    List {
        /// The class.
        class: String,
    },
    /// Cuts a copy; the token was seen before.
    Cut {
        /// The manual trigger that it answers.
        token: Option<String>,
        /// The epoch that it is cut at.
        epoch: u64,
    },
    /// Mounts what was cut.
    Mount,
    /// Begins to send it, or goes on.
    Start,
    /// Stops sending it.
    Stop,
    /// Removes what was cut: it was sent, or is of no use.
    Drop,
}

/// What is decided about a sender.
pub type SourceDecision = Decision<Effect, Wait, ReplicationSourceStatus>;

/// The least time between two copies of a sender without a trigger.
const ALWAYS: SignedDuration = SignedDuration::from_secs(5);

/// Every rule about senders.
pub fn decide(world: &World, now: Timestamp) -> SourceDecision {
    let running = world.job.as_ref().is_some_and(|job| job.outcome.is_none());
    if world.rival {
        // What another one shows is left as it is.
        return match (running, &world.cut) {
            (true, _) => Decision::act([Effect::Stop]),
            (false, Some(_)) => Decision::act([Effect::Drop]),
            (false, None) => Decision::wait(Wait::OtherMover),
        };
    }
    if world.source.is_going() {
        return if running { Decision::act([Effect::Stop]) } else { Decision::settled() };
    }
    if world.source.spec.paused {
        return if running { Decision::act([Effect::Stop]) } else { wait(world, now, Wait::Paused, None) };
    }
    if let Some(why) = unsupported(world) {
        return wait(world, now, why, None);
    }
    let here = match &world.place {
        Place::Here(here) => here,
        Place::Unlisted(class) => return act(world, now, Effect::List { class: class.clone() }),
        place => return wait(world, now, absent(world, place), None),
    };
    let epoch = match epoch(world, here) {
        Ok(epoch) => epoch,
        Err(_) if running => return Decision::act([Effect::Stop]),
        Err(why) => return wait(world, now, why, None),
    };
    match &world.cut {
        Some(cut) => carry(world, here, cut, epoch, now),
        None => next(world, epoch, now),
    }
}

fn wait(world: &World, now: Timestamp, why: Wait, until: Option<Timestamp>) -> SourceDecision {
    let shown = status::waiting(world, &why, now);
    let decision = match until {
        Some(until) => Decision::wait_until(why, until),
        None => Decision::wait(why),
    };
    decision.showing(shown)
}

/// An effect, with the last failure shown while the engine tries it again.
fn act(world: &World, now: Timestamp, effect: Effect) -> SourceDecision {
    let decision = Decision::act([effect]);
    match &world.trouble {
        Some(trouble) => {
            let why = Wait::Failed(trouble.message.clone());
            decision.showing(status::waiting(world, &why, now))
        }
        None => decision,
    }
}

fn unsupported(world: &World) -> Option<Wait> {
    let spec = &world.source.spec;
    let tls = spec.rsync_tls.as_ref();
    let empty = |text: Option<&String>| text.is_none_or(String::is_empty);
    if empty(spec.source_pvc.as_ref()) {
        return Some(Wait::Unsupported("spec.sourcePVC is missing: name the claim to copy".to_owned()));
    }
    if empty(tls.and_then(|tls| tls.address.as_ref())) {
        let why =
            "spec.rsyncTLS.address is missing: give the address of the receiver, which its status tells";
        return Some(Wait::Unsupported(why.to_owned()));
    }
    if empty(tls.and_then(|tls| tls.key_secret.as_ref())) {
        let why = "spec.rsyncTLS.keySecret is missing: name the secret with the key (psk.txt) that both sides share";
        return Some(Wait::Key(why.to_owned()));
    }
    None
}

fn absent(world: &World, place: &Place) -> Wait {
    let name = world.source.spec.source_pvc.as_deref().unwrap_or_default();
    match place {
        Place::NoClaim => Wait::Claim(format!("the claim {name} does not exist")),
        Place::Unbound => Wait::Claim(format!("the claim {name} is not bound to a volume yet")),
        Place::Foreign(why) => Wait::Unsupported(why.clone()),
        Place::Unreadable(why) => Wait::Failed(why.clone()),
        _ => Wait::Volume(format!("the volume of the claim {name} is not on its node")),
    }
}

/// The epoch to send at. Who is no longer the primary does not send at all: its data is older than what the receiver's side has since.
fn epoch(world: &World, here: &Here) -> Result<u64, Wait> {
    if world.orphan {
        let why =
            "its group is not there: whether this is the primary's copy cannot be told, so it is not sent";
        return Err(Wait::Superseded(why.to_owned()));
    }
    let tagged = epoch_of(&here.volume);
    let ours = match world.epochs {
        None | Some((0, _)) => tagged,
        Some((highest, None)) => {
            return Err(Wait::Superseded(format!(
                "its group is not primary here (epoch {highest}): only the primary's copies are sent"
            )));
        }
        Some((highest, Some(ours))) if ours < highest => {
            return Err(Wait::Superseded(format!(
                "its group is primary at epoch {ours}, and epoch {highest} was seen: another cluster is primary now, make this group secondary"
            )));
        }
        Some((_, Some(ours))) => ours,
    };
    if tagged > ours {
        return Err(Wait::Superseded(format!(
            "its volume was last written at epoch {tagged}, its group is at epoch {ours}: what it holds came from a later primary"
        )));
    }
    Ok(ours)
}

/// Something was cut: it is sent, whatever is asked for meanwhile.
fn carry(world: &World, here: &Here, cut: &Cut, epoch: u64, now: Timestamp) -> SourceDecision {
    let job = world.job.as_ref().filter(|job| job.of == cut.generation);
    if status::generation(world) == Some(cut.generation.as_str()) {
        return Decision::act([Effect::Drop]);
    }
    match job.and_then(|job| job.outcome.as_ref()) {
        Some((ended, Ok(sent))) => return done(world, cut, sent, *ended, now),
        // What was empty then may have been filled since: a PVC is cut as soon as it is there, and its application writes a moment later.
        Some((_, Err(failure))) if matches!(failure.kind, Kind::Source | Kind::Emptied) => {
            return Decision::act([Effect::Drop]);
        }
        _ => {}
    }
    // Cut in an earlier role, or lost because more was written meanwhile than it could hold.
    if cut.epoch < epoch || cut.volume.is_invalidated() {
        return Decision::act([Effect::Drop]);
    }
    let sending = || status::sending(world, cut, now);
    match job.map(|job| (&job.outcome, job.failures)) {
        Some((None, _)) => Decision::wait(Wait::Sending).showing(sending()),
        Some((Some((ended, Err(failure))), failures))
            if failure.not_before(*ended, failures, now).is_some() =>
        {
            wait(world, now, failure.wait(failures), failure.not_before(*ended, failures, now))
        }
        _ if here.needs_mount() && world.mount.is_none() => act(world, now, Effect::Mount),
        _ if !world.room => wait(world, now, Wait::Turn, None),
        _ => Decision::act([Effect::Start]).showing(sending()),
    }
}

fn done(world: &World, cut: &Cut, sent: &Sent, ended: Timestamp, now: Timestamp) -> SourceDecision {
    if cut.token.is_some() && sent.token != cut.token {
        // The receiver has this generation from a connection that carried no word, or another: it does not count.
        return Decision::act([Effect::Drop]);
    }
    // The word about it comes first: if the process dies in between, the snapshot is found to be sent.
    Decision::act([Effect::Drop]).showing(status::sent(world, cut, sent, ended, now))
}

/// Nothing is on its way: is something due?
fn next(world: &World, epoch: u64, now: Timestamp) -> SourceDecision {
    let pause = world.job.as_ref().and_then(|job| match &job.outcome {
        Some((ended, Err(failure))) => {
            Some((failure.not_before(*ended, job.failures, now)?, failure.wait(job.failures)))
        }
        _ => None,
    });
    if let Some((until, why)) = pause {
        return wait(world, now, why, Some(until));
    }
    match due(world, now) {
        Ok(None) if world.held => wait(world, now, Wait::Held, None),
        Ok(None) => act(world, now, cut(world, epoch)),
        Ok(Some(at)) => wait(world, now, Wait::Due(at), Some(at)),
        Err(why) => wait(world, now, why, None),
    }
}

fn cut(world: &World, epoch: u64) -> Effect {
    let token = world.source.spec.trigger.as_ref().and_then(|trigger| trigger.manual.clone());
    Effect::Cut { token: token.filter(|word| !word.is_empty()), epoch }
}

/// Nothing if a copy is due now, else when; or why none ever is.
fn due(world: &World, now: Timestamp) -> Result<Option<Timestamp>, Wait> {
    let trigger = world.source.spec.trigger.clone().unwrap_or_default();
    let shown = world.source.status.as_ref();
    if let Some(manual) = trigger.manual.filter(|word| !word.is_empty()) {
        let done = shown.and_then(|status| status.last_manual_sync.as_deref()) == Some(manual.as_str());
        // A last copy counts only with the receiver's word.
        let echoed = shown.and_then(|status| status.external.get(words::EXTERNAL_ECHO)) == Some(&manual);
        return if done && echoed { Err(Wait::Manual) } else { Ok(None) };
    }
    let schedule = trigger.schedule.as_deref().map(Schedule::parse).transpose();
    let schedule = schedule.map_err(|error| Wait::Schedule(error.to_string()))?;
    // A cut that lies in the future was made by a clock that has been corrected since: nobody knows how old it is.
    let Some(last) = last_cut(shown).filter(|last| *last <= now) else { return Ok(None) };
    let next = match schedule {
        Some(schedule) => schedule.after(last).ok_or_else(|| {
            Wait::Schedule("the schedule names a day that never comes: correct it".to_owned())
        })?,
        None => last.checked_add(ALWAYS).unwrap_or(last),
    };
    Ok(Some(next).filter(|next| *next > now))
}

/// When the next copy is due by its schedule, for people.
#[must_use]
pub fn next_time(world: &World) -> Option<Timestamp> {
    let schedule = world.source.spec.trigger.as_ref()?.schedule.as_deref()?;
    Schedule::parse(schedule).ok()?.after(last_cut(world.source.status.as_ref())?)
}
