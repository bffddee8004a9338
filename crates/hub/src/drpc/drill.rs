//! Drills (`dryRun`) are not served: one that is asked for changes nothing. Nor does taking it back, for that would turn the drill into the real thing by
//! leaving out a word; what was asked for as a drill counts only when it is asked for anew. Pure.

use lifeboat_api::ramen::{DRAction, DRPlacementControl};

/// What is asked for, in words.
fn asked(drpc: &DRPlacementControl) -> Option<String> {
    let action = drpc.spec.action.as_ref().filter(|action| !action.as_str().is_empty())?;
    let target = match action {
        DRAction::Failover => &drpc.spec.failover_cluster,
        _ => &drpc.spec.preferred_cluster,
    };
    Some(format!("{} to {}", action.as_str(), target.as_deref().unwrap_or_default()))
}

/// What is asked for, where it is asked for as a drill or was and has not changed since.
pub fn refused(drpc: &DRPlacementControl) -> Option<String> {
    let shown = drpc.status.as_ref().and_then(|status| status.refused_drill.as_ref());
    asked(drpc).filter(|asked| drpc.spec.dry_run || shown == Some(asked))
}

/// Whether what is asked for is only what a drill has left.
pub fn is_left(drpc: &DRPlacementControl) -> bool {
    !drpc.spec.dry_run && refused(drpc).is_some()
}
