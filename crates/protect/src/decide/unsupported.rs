//! What a group asks for that does not hold together, or that is not served. What is not safe to half-serve is refused; the rest is served
//! and the shortfall told.

use crate::decide::plan::Plan;
use crate::why::Wait;
use crate::words::{GroupWords as _, Words as _};
use crate::world::World;
use lifeboat_api::annotations;

/// Longest value of a label.
const LONGEST_LABEL: usize = 63;

/// Why nothing is done at all.
pub fn refused(world: &World) -> Option<Wait> {
    let (group, spec) = (&world.group, &world.group.spec);
    if !spec.replication_state.is_known() {
        return Some(Wait::Invalid(format!(
            "invalid or unknown replication state detected (deleted false, desired replicationState {})",
            spec.replication_state.as_str()
        )));
    }
    // Everything that belongs to the group says so in a label, and peers look for it there.
    if group.name().len() > LONGEST_LABEL {
        return Some(Wait::Unsupported(format!(
            "the name of the group has {} characters, and labels that name it hold {LONGEST_LABEL} at most: give the DRPlacementControl a shorter name",
            group.name().len()
        )));
    }
    if spec.async_.is_none() && spec.sync.is_none() {
        return Some(Wait::Invalid("neither of sync or async mode is enabled".to_owned()));
    }
    if spec
        .protected_namespaces
        .as_ref()
        .is_some_and(|spaces| spaces.iter().any(|space| space != group.space()))
    {
        return Some(Wait::Unsupported(
            "claims of other namespaces (protectedNamespaces) are not served: nothing is done for this group"
                .to_owned(),
        ));
    }
    let tried = group.note(annotations::TEST_FAILOVER_DRY_RUN) == Some("true");
    if spec.dry_run || tried && group.wants_primary() {
        return Some(Wait::Unsupported(
            "trying a failover (dryRun) is not served: the group keeps the role it has".to_owned(),
        ));
    }
    let everything = spec.pvc_selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
        && spec.pvc_selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
    let recipe = spec.kube_object_protection.as_ref().and_then(|wanted| wanted.recipe_ref.as_ref());
    if recipe.is_some() && everything {
        return Some(Wait::Unsupported(
            "the claims are chosen by a recipe, which is not served: give pvcSelector labels to protect them"
                .to_owned(),
        ));
    }
    None
}

/// What is asked for and not served, though the rest is.
pub fn shortfalls(world: &World, plan: &mut Plan) {
    let spec = &world.group.spec;
    if let Some(problem) = &world.config.problem {
        let counts = match world.config.unread {
            true => "no PVC is let go and no receiver is changed until it can be read",
            false => "what it said before still counts",
        };
        plan.wait(Wait::Configuration(format!("{problem}: {counts}")));
    }
    if spec.static_ip_translation_spec.is_some() {
        plan.wait(Wait::Unsupported("static addresses are not rewritten".to_owned()));
    }
    if let Some(why) = kube_objects(world) {
        plan.wait(Wait::Unsupported(why));
    }
    if world.group.note(annotations::ENABLE_DIFF) == Some("true") {
        plan.wait(Wait::Unsupported(
            "copies by difference of snapshots (enable-diff) are ordinary copies here".to_owned(),
        ));
    }
}

/// Whose hooks are not run.
pub fn hooks(world: &World) -> Option<String> {
    let wanted = world.group.spec.kube_object_protection.as_ref()?;
    let recipe = wanted.recipe_ref.as_ref()?.name.as_deref()?;
    Some(format!("hooks of the recipe {recipe} are not run"))
}

/// What is asked for about Kubernetes objects, none of which is served yet.
pub fn kube_objects(world: &World) -> Option<String> {
    let wanted = world.group.spec.kube_object_protection.as_ref()?;
    let recipe = wanted.recipe_ref.as_ref().and_then(|recipe| recipe.name.as_deref());
    Some(match recipe {
        Some(recipe) => format!(
            "the recipe {recipe} is not followed: Kubernetes objects are not captured, and its hooks are not run"
        ),
        None => "Kubernetes objects are not captured yet: volumes and claims are protected, the rest is not"
            .to_owned(),
    })
}
