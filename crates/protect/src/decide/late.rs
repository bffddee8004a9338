//! Copies that are late. A claim whose newest complete copy was cut longer ago than twice the interval is not protected as agreed, and that is
//! said. One that was late stays so until a copy is as fresh as the interval asks for, so that a claim that is always a little late does not
//! flicker.

use crate::decide::plan::{Plan, Said};
use crate::why::Wait;
use crate::words::GroupWords as _;
use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::Interval;
use lifeboat_api::conditions::vrg as words;
use lifeboat_engine::Why as _;

/// Tells of a primary's claims that are late, and looks again when the next would become so. Not while the last copy is prepared or run: copies
/// are held back then.
pub fn judge(world: &World, now: Timestamp, plan: &mut Plan) {
    let group = &world.group;
    let asked = group.spec.async_.as_ref().map(|mode| mode.scheduling_interval.as_str()).unwrap_or_default();
    let Some(every) = Interval::of(asked) else { return };
    let every = SignedDuration::from_secs(every.seconds());
    if !group.wants_primary() || group.in_final_sync() {
        return;
    }
    let cuts: Vec<(String, Timestamp)> = plan
        .verdicts
        .iter()
        .filter_map(|(name, verdict)| Some((name.clone(), verdict.last_sync.as_ref()?.0)))
        .collect();
    for (name, cut) in cuts {
        let fresh = cut.checked_add(every).unwrap_or(Timestamp::MAX);
        let limit = fresh.checked_add(every).unwrap_or(Timestamp::MAX);
        if now > limit || now > fresh && was_late(world, &name) {
            let why = format!(
                "the newest complete copy of {name} was cut at {cut}, longer ago than twice the interval of {asked}: look at what copies it, and at the link to the peer"
            );
            let verdict = plan.verdict(&name);
            verdict.late = true;
            verdict.say(words::TYPE_DATA_PROTECTED, Said::no(words::REASON_PROGRESSING, why.clone()));
            plan.wait_for(&name, Wait::Late(why));
        } else {
            plan.look_at(limit);
        }
    }
}

fn was_late(world: &World, claim: &str) -> bool {
    let late = Wait::Late(String::new()).reason();
    let shown = world.group.status.iter().flat_map(|status| &status.blockers);
    shown.into_iter().any(|blocker| blocker.reason == late && blocker.pvc.as_deref() == Some(claim))
}
