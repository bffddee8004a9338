//! Where the application runs: the decision of a Placement, or the status of a PlacementRule.

use super::stale;
use crate::drpc::look::Drpcs;
use crate::drpc::world::{Chosen, World};
use crate::words::{Words as _, pairs};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{ObjectMeta, Patch};
use lifeboat_api::cluster::{Placement, PlacementDecision};
use lifeboat_api::conditions::drpc::DECISION_RETAINED_FOR_FAILOVER;
use lifeboat_api::labels;
use lifeboat_engine::{Class, EffectError, ObjectKey};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many names are tried for a decision.
const NAMES: usize = 5;

fn decisions(chosen: &[Chosen]) -> Vec<Value> {
    let reason = |one: &Chosen| if one.retained { DECISION_RETAINED_FOR_FAILOVER } else { "" };
    chosen.iter().map(|one| json!({ "clusterName": one.cluster, "reason": reason(one) })).collect()
}

impl Drpcs {
    pub(super) async fn place(&self, key: &ObjectKey, chosen: &[Chosen]) -> Result<(), EffectError> {
        let world = self.known(key)?;
        if world.chosen() == chosen {
            return Ok(());
        }
        match (&world.placement, &world.rule) {
            (Some(placement), _) => self.decide_for(&world, placement, chosen).await,
            (None, Some(rule)) => {
                let homes: Vec<Value> = chosen
                    .iter()
                    .filter(|one| !one.retained)
                    .map(|one| json!({ "clusterName": one.cluster, "clusterNamespace": one.cluster }))
                    .collect();
                let patch = json!({ "metadata": rule.guard(), "status": { "decisions": homes } });
                let place = ObjectKey::of(&**rule);
                self.watched.rules.patch_status(&place, &Patch::Merge(patch)).await.map(drop)
            }
            (None, None) => Err(stale("the placement is gone")),
        }
    }

    async fn decide_for(
        &self,
        world: &World,
        placement: &Placement,
        chosen: &[Chosen],
    ) -> Result<(), EffectError> {
        let first = match world.decisions.first() {
            Some(known) => known.clone(),
            None => self.make_decision(placement).await?,
        };
        // One decision says it all: what others still say goes first.
        let silent = Vec::new();
        let others = world.decisions.iter().skip(1).map(|one| (one, &silent));
        let wanted = decisions(chosen);
        for (one, said) in others.chain([(&first, &wanted)]) {
            let known = one.status.as_ref().map_or(0, |status| status.decisions.len());
            if said.is_empty() && known == 0 {
                continue;
            }
            let patch = json!({ "metadata": one.guard(), "status": { "decisions": said } });
            let place = ObjectKey::of(&**one);
            self.watched.decisions.patch_status(&place, &Patch::Merge(patch)).await?;
        }
        Ok(())
    }

    async fn make_decision(&self, placement: &Placement) -> Result<Arc<PlacementDecision>, EffectError> {
        let space = placement.space();
        let free = (1..=NAMES)
            .map(|number| format!("{}-decision-{number}", placement.name()))
            .find(|name| self.watched.decisions.get(&ObjectKey::new(space, name.as_str())).is_none());
        let Some(name) = free else {
            let why = format!("all names of decisions of Placement {} are taken by others", placement.name());
            return Err(EffectError::new(Class::Refused, why));
        };
        let owner = OwnerReference {
            api_version: Placement::api_version(&()).into_owned(),
            kind: Placement::kind(&()).into_owned(),
            name: placement.name().to_owned(),
            uid: placement.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let marks = pairs([
            (labels::PLACEMENT, placement.name()),
            (labels::EXCLUDE_FROM_BACKUP, "true"),
            (labels::CREATED_BY_RAMEN, labels::CREATED_BY_RAMEN_VALUE),
        ]);
        let made = PlacementDecision {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(space.to_owned()),
                labels: Some(marks),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            ..PlacementDecision::default()
        };
        self.watched.decisions.create(&made).await
    }
}
