//! Whether what is asked for holds together and is served, and what we put on the objects that are ours to move. A refusal changes nothing that
//! runs: it only stops new actions until it is put right.

use crate::drpc::commission::Act;
use crate::drpc::decide::{Effect, Step};
use crate::drpc::why::Wait;
use crate::drpc::world::World;
use crate::views;
use crate::words::Words as _;
use lifeboat_api::apps::SCHEDULER_NAME_RAMEN;
use lifeboat_api::conditions::drpolicy;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::conditions::find;

fn invalid(why: impl Into<String>) -> Wait {
    Wait::Invalid(why.into())
}

/// Whether it may be worked on at all.
pub fn admit(world: &World) -> Result<(), Wait> {
    placement(world)?;
    served(world)?;
    policy(world)?;
    clusters(world)?;
    others(world)
}

/// What is done while a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// Nothing: it is not ours, it is a drill, or there is nothing to do it with.
    Nothing,
    /// What was decided last is carried out, and nothing new begins.
    CarryOnly,
    /// Everything that an application needs which is deployed already: the policy was good when it was deployed.
    Deployed,
}

/// What is done though a request is refused: what is the matter with a policy, a setting or a word must not keep an application from its place.
pub fn limits(world: &World, why: &Wait) -> Limits {
    let known = world.commission().is_some() && world.members().len() == 2;
    let holds = known && placement(world).is_ok() && others(world).is_ok() && !world.drpc.spec.dry_run;
    match why {
        _ if !holds => Limits::Nothing,
        Wait::PolicyNotReady(_) => match served(world).and_then(|()| clusters(world)) {
            Ok(()) => Limits::Deployed,
            Err(_) => Limits::CarryOnly,
        },
        Wait::Invalid(_) | Wait::Unsupported(_) => Limits::CarryOnly,
        _ => Limits::Nothing,
    }
}

/// One placement, left to us, for one cluster.
fn placement(world: &World) -> Result<(), Wait> {
    let spec = &world.drpc.spec.placement_ref;
    let name = spec.name.as_deref().unwrap_or_default();
    if spec.namespace.as_deref().is_some_and(|space| !space.is_empty() && space != world.drpc.space()) {
        return Err(invalid(
            "placementRef names another namespace; the placement must be in the DRPlacementControl's own",
        ));
    }
    match (&world.placement, &world.rule) {
        (Some(_), Some(_)) => Err(invalid(format!(
            "both a Placement and a PlacementRule are called {name}; remove the one that does not deploy the application"
        ))),
        (None, None) => {
            let why = format!(
                "neither a Placement nor a PlacementRule {name} exists in namespace {}",
                world.drpc.space()
            );
            Err(Wait::PlacementMissing(why))
        }
        (Some(placement), None) => {
            if placement.note(annotations::SCHEDULING_DISABLE).is_none_or(|value| value == "false") {
                return Err(invalid(format!(
                    "Placement {name} is not left to us: put the annotation {}=true on it",
                    annotations::SCHEDULING_DISABLE
                )));
            }
            one_cluster(name, placement.spec.number_of_clusters, "numberOfClusters")
        }
        (None, Some(rule)) => {
            if rule.spec.scheduler_name.as_deref() != Some(SCHEDULER_NAME_RAMEN) {
                return Err(invalid(format!(
                    "PlacementRule {name} is not left to us: set its schedulerName to {SCHEDULER_NAME_RAMEN}"
                )));
            }
            one_cluster(name, rule.spec.cluster_replicas, "clusterReplicas")
        }
    }
}

fn one_cluster(name: &str, asked: Option<i32>, field: &str) -> Result<(), Wait> {
    match asked {
        Some(1) => Ok(()),
        _ => Err(invalid(format!("{name} must ask for exactly one cluster: set its {field} to 1"))),
    }
}

/// What we do not do is refused, never left out in silence.
fn served(world: &World) -> Result<(), Wait> {
    let spec = &world.drpc.spec;
    let unserved = |what: &str| Err(Wait::Unsupported(format!("{what}; remove it to go on")));
    if spec.dry_run {
        return Err(Wait::Unsupported(
            "drills are not served yet, and nothing was tried: remove dryRun, and the action with it"
                .to_owned(),
        ));
    }
    if spec.protected_namespaces.as_ref().is_some_and(|spaces| !spaces.is_empty()) {
        return unserved("protectedNamespaces are not served yet");
    }
    if let Some(objects) = &spec.kube_object_protection {
        return match &objects.recipe_ref {
            Some(_) => unserved("recipes are not served yet"),
            None => unserved("kubeObjectProtection is not served yet"),
        };
    }
    if world.drpc.label(labels::GLOBAL_VGR).is_some() {
        return unserved(
            "groups that act by global consensus are not served yet (label ramendr.openshift.io/global-vgr)",
        );
    }
    if Act::asked(spec.action.as_ref()).is_none() {
        return Err(invalid("the action is none that we know: Failover or Relocate"));
    }
    Ok(())
}

/// A policy that can be used.
fn policy(world: &World) -> Result<(), Wait> {
    let name = world.drpc.spec.dr_policy_ref.name.as_deref().unwrap_or_default();
    let Some(policy) = &world.policy else {
        return Err(Wait::PolicyNotReady(format!("the DRPolicy {name} does not exist")));
    };
    if policy.is_going() {
        return Err(Wait::PolicyNotReady(format!("the DRPolicy {name} is being deleted")));
    }
    let conditions = policy.status.as_ref().map_or(&[][..], |status| &status.conditions);
    match find(conditions, drpolicy::TYPE_VALIDATED) {
        Some(validated) if validated.status == "True" => {}
        Some(validated) => {
            return Err(Wait::PolicyNotReady(format!(
                "the DRPolicy {name} is not validated: {}",
                validated.message
            )));
        }
        None => return Err(Wait::PolicyNotReady(format!("the DRPolicy {name} has not been looked at yet"))),
    }
    match world.members().len() {
        2 => Ok(()),
        other => Err(invalid(format!("the DRPolicy {name} has {other} clusters; two are served"))),
    }
}

/// Clusters that the policy has.
fn clusters(world: &World) -> Result<(), Wait> {
    let spec = &world.drpc.spec;
    let members = world.members();
    let known = |field: &str, name: Option<&String>| match name.filter(|name| !name.is_empty()) {
        None => Err(invalid(format!("{field} is not set; the policy has {}", members.join(" and ")))),
        Some(name) if !members.contains(&name.as_str()) => Err(invalid(format!(
            "{field} {name} is none of the policy's clusters, which are {}",
            members.join(" and ")
        ))),
        Some(_) => Ok(()),
    };
    known("preferredCluster", spec.preferred_cluster.as_ref())?;
    if Act::asked(spec.action.as_ref()) == Some(Act::Failover) {
        known("failoverCluster", spec.failover_cluster.as_ref())?;
    }
    Ok(())
}

/// Nothing of what we would write belongs to another DRPlacementControl.
fn others(world: &World) -> Result<(), Wait> {
    let ours = world.key();
    let owner = |named: Option<lifeboat_engine::ObjectKey>| named.filter(|named| *named != ours);
    let placement =
        world.placement.as_ref().map(|one| one.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME));
    let rule =
        world.rule.as_ref().map(|one| one.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME));
    if let Some(other) = owner(placement.or(rule).flatten()) {
        return Err(Wait::Conflict(format!(
            "the placement is already moved by the DRPlacementControl {other}"
        )));
    }
    for site in world.sites.values() {
        let named = site
            .work
            .as_ref()
            .and_then(|work| work.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME));
        if let Some(other) = owner(named) {
            return Err(Wait::Conflict(format!(
                "the group {} on cluster {} belongs to the DRPlacementControl {other}",
                world.group_key(),
                site.name
            )));
        }
    }
    Ok(())
}

/// What is ours is marked before anything is done with it, and every cluster is asked for its group.
pub fn own(world: &World) -> Option<Step> {
    // What is looked at on the clusters depends on the application's namespace.
    if world.drpc.note(annotations::APP_NAMESPACE).is_none() {
        return Some(Step::one(Effect::Own));
    }
    let mut effects = Vec::new();
    if world.fleet_wanted {
        effects.push(Effect::LearnFleet);
    }
    if !is_owned(world) {
        effects.push(Effect::Own);
    }
    if !is_placement_owned(world) {
        effects.push(Effect::OwnPlacement);
    }
    for cluster in world.members() {
        let wanted = crate::drpc::group::view(world, cluster);
        let known = world.site(cluster).and_then(|site| site.view.as_ref());
        if !known.is_some_and(|known| known.is_going() || views::asks(known, &wanted)) {
            effects.push(Effect::Watch { cluster: cluster.to_owned() });
        }
    }
    (!effects.is_empty()).then_some(Step::Do(effects, None))
}

/// Whether the DRPlacementControl carries all our marks.
pub fn is_owned(world: &World) -> bool {
    let drpc = &world.drpc;
    let owners = drpc.metadata.owner_references.iter().flatten();
    let uid = match (&world.placement, &world.rule) {
        (Some(placement), _) => placement.uid(),
        (None, Some(rule)) => rule.uid(),
        (None, None) => "",
    };
    drpc.has_finalizer(finalizers::DRPC)
        && drpc.label(labels::OCM_BACKUP) == Some(labels::OCM_BACKUP_VALUE)
        && drpc.note(annotations::APP_NAMESPACE).is_some()
        && owners.into_iter().any(|owner| owner.uid == uid)
}

fn is_placement_owned(world: &World) -> bool {
    let ours = Some(world.key());
    let named =
        |namespace: Option<lifeboat_engine::ObjectKey>, finalizer: bool| namespace == ours && finalizer;
    match (&world.placement, &world.rule) {
        (Some(one), _) => named(
            one.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME),
            one.has_finalizer(finalizers::DRPC),
        ),
        (None, Some(one)) => named(
            one.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME),
            one.has_finalizer(finalizers::DRPC),
        ),
        (None, None) => true,
    }
}
