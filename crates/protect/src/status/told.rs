//! The parts of a group's status: its claims, its conditions, its counters.

use super::merge::merge;
use super::{Telling, data_protected, data_ready, held, late};
use crate::decide::plan::{Plan, Said, Verdict};
use crate::decide::records::{self, Standing};
use crate::decide::restore::Outcome;
use crate::decide::{epoch, receive, unsupported};
use crate::ledger::substance;
use crate::restored::carried_over;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, Words as _};
use crate::world::Claim;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{ProtectedPvc, RsyncTls, VolSyncDestinationInfo};
use lifeboat_engine::conditions::{Holds, find, whole_seconds};
use std::collections::BTreeMap;
use std::time::Duration;

/// The four conditions in one word: those of an earlier wish say nothing about this one.
pub fn summary(all: &[Condition], generation: Option<i64>) -> Said {
    let normal = |one: &Condition| {
        one.status == "True"
            || one.type_ == words::TYPE_DATA_PROTECTED && one.reason == words::REASON_REPLICATING
    };
    let failed = |one: &&Condition| {
        matches!(
            one.reason.as_str(),
            words::REASON_ERROR
                | words::REASON_UPLOAD_ERROR
                | words::REASON_UNKNOWN_ERROR
                | words::REASON_VRG_CAPTURE_ERROR
                | words::REASON_PEER_CLASS_NOT_FOUND
        ) && one.status != "True"
    };
    if let Some(one) = all.iter().find(failed) {
        return Said::no(words::REASON_ERROR, format!("{}: {}", one.type_, one.message));
    }
    let current = |one: &Condition| one.observed_generation == generation;
    if let Some(one) = all.iter().find(|one| !normal(one) || !current(one)) {
        return Said::no(words::REASON_PROGRESSING, format!("{}: {}", one.type_, one.message));
    }
    Said::yes(words::REASON_REPLICATING, "the group does all that it is asked to")
}

impl Telling<'_> {
    pub(super) fn claims(&mut self, plan: &Plan, restored: Option<&Outcome>) {
        let before = std::mem::take(&mut self.status.protected_pvcs);
        let open = restored.is_some_and(|restored| !restored.is_done());
        let known = |name: &str| before.iter().find(|entry| entry.name.as_deref() == Some(name));
        let mut entries: Vec<ProtectedPvc> = Vec::new();
        for (name, verdict) in &plan.verdicts {
            let entry = self.entry(name, verdict, known(name), self.world.claim(name));
            entries.push(entry);
        }
        if open {
            // Nothing was looked at but what is being restored.
            let looked = |entry: &&ProtectedPvc| {
                !plan.verdicts.contains_key(entry.name.as_deref().unwrap_or_default())
            };
            entries.extend(before.iter().filter(looked).cloned());
            entries.sort_by(|one, other| one.name.cmp(&other.name));
        }
        self.status.protected_pvcs = entries;
    }

    fn entry(
        &self,
        name: &str,
        verdict: &Verdict,
        known: Option<&ProtectedPvc>,
        claim: Option<&Claim>,
    ) -> ProtectedPvc {
        let mut entry = known.cloned().unwrap_or_default();
        entry.namespace = self.world.group.metadata.namespace.clone();
        entry.name = Some(name.to_owned());
        entry.protected_by_vol_sync = verdict.copied;
        if let Some(claim) = claim {
            let (claim, spec) = (&claim.claim, claim.claim.spec.clone().unwrap_or_default());
            entry.storage_class_name = claim.class_name().map(str::to_owned);
            entry.csi_provisioner = self.world.class_of(claim).map(|class| class.provisioner.clone());
            entry.labels = claim.metadata.labels.clone().unwrap_or_default();
            // Whose it is here says nothing to the peer.
            for own in [lifeboat_api::labels::OWNER_NAME, lifeboat_api::labels::OWNER_NAMESPACE_NAME] {
                entry.labels.remove(own);
            }
            let mut notes = carried_over(claim.metadata.annotations.as_ref());
            if verdict.copied {
                notes.retain(|key, _| key.starts_with("apps.open-cluster-management.io"));
            }
            entry.annotations = notes;
            entry.access_modes = spec.access_modes.unwrap_or_default();
            entry.resources = spec.resources;
            entry.volume_mode = spec.volume_mode;
            entry.restored_until = restored_until(claim);
        }
        if !self.world.group.wants_primary() {
            entry.restored_until = None;
        }
        entry.storage_id = verdict.storage_id.clone();
        entry.replication_id = verdict.replication_id.clone();
        entry.last_sync_time = verdict.last_sync.clone();
        entry.last_sync_duration = verdict.duration.clone();
        entry.last_sync_bytes = verdict.bytes;
        let before = std::mem::take(&mut entry.conditions);
        let mut conditions = before.clone();
        // A restore is told once and stays true while the group is primary.
        let restored = find(&before, words::TYPE_PVS_RESTORED).filter(|one| one.status == "True").cloned();
        conditions.retain(|one| {
            verdict.said.contains_key(one.type_.as_str()) || one.type_ == words::TYPE_AVAILABLE
        });
        for (type_, said) in &verdict.said {
            self.set.set(&mut conditions, type_, said.holds, said.reason, said.message.clone());
        }
        if let Some(one) = restored
            && self.world.group.wants_primary()
            && !verdict.said.contains_key(words::TYPE_PVS_RESTORED)
        {
            let message = one.message.clone();
            conditions.push(one);
            self.set.set(
                &mut conditions,
                words::TYPE_PVS_RESTORED,
                Holds::True,
                words::REASON_RESTORED,
                message,
            );
        }
        let told: Vec<Condition> =
            conditions.iter().filter(|one| one.type_ != words::TYPE_AVAILABLE).cloned().collect();
        let sum = summary(&told, self.world.group.metadata.generation);
        self.set.set(&mut conditions, words::TYPE_AVAILABLE, sum.holds, sum.reason, sum.message);
        entry.conditions = conditions;
        entry
    }

    pub(super) fn conditions(&mut self, plan: &Plan, restored: Option<&Outcome>) {
        let primary = self.world.group.wants_primary();
        let open = restored.filter(|restored| !restored.is_done());
        let (mut ready, protected) = match open {
            // Whether claims are ready is not looked at before they are there.
            Some(open) => (
                Said::no(words::REASON_PROGRESSING, open.said().message.clone()),
                (Said::no(words::REASON_PROGRESSING, "volumes and claims are being restored"), unused()),
            ),
            None => (data_ready(&plan.verdicts, primary), data_protected(&plan.verdicts, primary)),
        };
        // A claim that could not be sorted, and a wait of the group as a whole, are told with the data.
        if let Some(trouble) = &self.world.trouble {
            ready = merge(&[ready, Said::no(words::REASON_ERROR, trouble.message.clone())]);
        }
        self.say(words::TYPE_DATA_READY, &ready);
        // What is late is named first, for a hub takes a primary that only replicates for protected. It says nothing about records.
        let told: Vec<Said> =
            late(&plan.verdicts).into_iter().chain([protected.0.clone(), protected.1.clone()]).collect();
        self.say(words::TYPE_DATA_PROTECTED, &merge(&told));
        match restored {
            Some(restored) => {
                let said = restored.said().clone();
                self.say(words::TYPE_CLUSTER_DATA_READY, &said);
                self.kube_objects(restored.is_done());
                self.cluster_data(plan, &protected.1, restored.is_done());
            }
            None => {
                let unused = Said::yes(words::REASON_UNUSED, "nothing is restored on a secondary");
                self.say(words::TYPE_CLUSTER_DATA_READY, &unused);
                self.say(words::TYPE_KUBE_OBJECTS_READY, &unused);
                let unused = Said::yes(words::REASON_UNUSED, "a secondary records nothing");
                self.say(words::TYPE_CLUSTER_DATA_PROTECTED, &unused);
            }
        }
        self.say(
            words::TYPE_AUTO_CLEANUP,
            &Said::yes(words::REASON_UNUSED, "there are no virtual machines to clean up"),
        );
        self.hooks();
        let conflicts: Vec<String> =
            plan.waits.iter().filter(|(why, _)| is_conflict(why)).map(|(why, _)| why.to_string()).collect();
        let said = match conflicts.is_empty() {
            true => Said::yes(words::REASON_NO_CONFLICT_DETECTED, "nothing contradicts this group"),
            false => Said::no(self.conflict_reason(), conflicts.join(", ")),
        };
        self.say(words::TYPE_NO_CLUSTER_DATA_CONFLICT, &said);
    }

    fn kube_objects(&mut self, restored: bool) {
        let wanted = unsupported::kube_objects(self.world);
        let said = match wanted {
            _ if !restored => {
                Said::unknown(words::REASON_INITIALIZING, "volumes and claims are restored first")
            }
            Some(why) if self.world.group.action().is_some() => Said::no(words::REASON_ERROR, why),
            _ => Said::yes(words::REASON_KUBE_OBJECTS_RESTORED, "there are no Kubernetes objects to restore"),
        };
        self.say(words::TYPE_KUBE_OBJECTS_READY, &said);
    }

    /// Whether everything that a peer needs to take over is in the stores.
    fn cluster_data(&mut self, plan: &Plan, copied: &Said, restored: bool) {
        if !restored {
            let said = Said::no(words::REASON_UPLOADING, "nothing is recorded before all is restored");
            return self.say(words::TYPE_CLUSTER_DATA_PROTECTED, &said);
        }
        let type_ = words::TYPE_CLUSTER_DATA_PROTECTED;
        let mut all: Vec<Said> = Vec::new();
        for (name, verdict) in plan.verdicts.iter().filter(|(_, verdict)| !verdict.copied) {
            match verdict.said.get(type_) {
                Some(said) if said.holds == Holds::True => all.push(said.clone()),
                Some(said) => all.push(Said { message: format!("{name}: {}", said.message), ..said.clone() }),
                None => all.push(Said::no(words::REASON_UPLOADING, format!("{name}: not recorded yet"))),
            }
        }
        all.push(copied.clone());
        all.push(self.group_record());
        if let Some(why) = unsupported::kube_objects(self.world) {
            all.push(Said::no(words::REASON_KUBE_OBJECTS_CAPTURE_ERROR, why));
        }
        let said = merge(&all);
        self.say(type_, &said);
    }

    /// Whether the group itself is recorded.
    fn group_record(&self) -> Said {
        let world = self.world;
        if world.wants_no_store() {
            return Said::yes(words::REASON_UPLOADED, "no store is asked for (NoS3)");
        }
        if let Some(epoch) = epoch::superseded(world) {
            return Said::no(words::REASON_VRG_CAPTURE_ERROR, Wait::Superseded(epoch).to_string());
        }
        let wanted = substance(&records::record(world));
        let standings = records::standings(world, &wanted);
        if standings.is_empty() {
            return Said::no(
                words::REASON_VRG_CAPTURE_ERROR,
                "the group names no store: nothing is recorded",
            );
        }
        let mut writing = false;
        let unseen = standings.iter().all(|(_, standing)| *standing == Standing::Writing)
            && world.stores.values().all(|state| state.kept.is_none());
        for (name, standing) in standings {
            match standing {
                Standing::Has => {}
                Standing::Writing => writing = true,
                Standing::Superseded(epoch) => {
                    return Said::no(words::REASON_VRG_CAPTURE_ERROR, Wait::Superseded(epoch).to_string());
                }
                Standing::Failed(why) => {
                    let why = format!("the group cannot be recorded in {name}: {why}");
                    return Said::no(words::REASON_VRG_CAPTURE_ERROR, why);
                }
                Standing::Unknown(why) | Standing::OtherFleet(why) => {
                    return Said::no(words::REASON_VRG_CAPTURE_ERROR, why);
                }
            }
        }
        // A process that has just begun has not looked yet; what was true for this wish stays so until it has.
        let shown = self.shown(words::TYPE_CLUSTER_DATA_PROTECTED);
        let was = shown.is_some_and(|one| {
            held(one) == Holds::True && one.observed_generation == world.group.metadata.generation
        });
        match writing && !(unseen && was) {
            true => Said::no(words::REASON_UPLOADING, "the group is being recorded"),
            false => Said::yes(words::REASON_UPLOADED, "the group is recorded in every store"),
        }
    }

    /// A group without a recipe has no hooks, and those of a recipe are not run.
    fn hooks(&mut self) {
        let said = match unsupported::hooks(self.world) {
            Some(why) => Said::unknown(words::REASON_ERROR, why),
            None => Said::yes(words::REASON_UNUSED, "no recipe is named, so there are no hooks"),
        };
        self.say(words::TYPE_HOOKS_READY, &said);
    }

    pub(super) fn counters(&mut self, plan: &Plan) {
        let group = &self.world.group;
        let primary = group.wants_primary();
        let claims = &self.status.protected_pvcs;
        let times: Option<Vec<_>> = claims.iter().map(|claim| claim.last_sync_time.clone()).collect();
        let oldest = times.and_then(|times| times.into_iter().min());
        let longest = claims.iter().filter_map(|claim| claim.last_sync_duration.as_ref()?.to_std()).max();
        let bytes: Vec<i64> = claims.iter().filter_map(|claim| claim.last_sync_bytes).collect();
        self.status.last_group_sync_time = oldest.filter(|_| primary);
        self.status.last_group_sync_duration = longest.filter(|_| primary).map(Duration::into);
        self.status.last_group_sync_bytes = (primary && !bytes.is_empty()).then(|| bytes.iter().sum());
        self.status.prepare_for_final_sync_complete = primary && plan.prepared.unwrap_or(false);
        self.status.final_sync_complete = primary && plan.final_sync.unwrap_or(false);
        self.status.rd_info = if primary || group.names_reach() { Vec::new() } else { self.receivers() };
        let seen = epoch::highest(self.world);
        self.status.epoch = self.status.epoch.max(Some(seen).filter(|seen| *seen > 0));
    }

    fn receivers(&self) -> Vec<VolSyncDestinationInfo> {
        let listening = receive::wished(self.world).into_iter().filter_map(|wish| {
            let receiver = self.world.destinations.get(wish.name.as_deref()?)?;
            let address = receiver.status.as_ref()?.rsync_tls.as_ref()?.address.clone()?;
            Some(VolSyncDestinationInfo {
                protected_pvc: Some(ProtectedPvc {
                    name: wish.name.clone(),
                    namespace: Some(self.world.group.space().to_owned()),
                    protected_by_vol_sync: true,
                    ..ProtectedPvc::default()
                }),
                rsync_tls: Some(RsyncTls { address: Some(address), tls_secret_ref: None }),
            })
        });
        listening.collect()
    }
}

/// When the content that a claim was restored from was cut. Rounded down, so that nobody is told of more than there is.
fn restored_until(claim: &PersistentVolumeClaim) -> Option<Time> {
    let cut = claim.note(annotations::IMAGE_CUT)?.parse::<Timestamp>().ok()?;
    Some(Time(whole_seconds(cut)))
}

fn unused() -> Said {
    Said::yes(words::REASON_UNUSED, "")
}

fn is_conflict(why: &Wait) -> bool {
    matches!(why, Wait::Conflict(_) | Wait::Superseded(_) | Wait::EpochRefused { .. })
}

/// Whether the pods that use the claims are ready. A claim that no pod uses is told, and keeps nobody: a job may use it once a day.
pub fn pods_ready(claims: &[&Claim]) -> Said {
    let pods: BTreeMap<&str, &Result<(), String>> =
        claims.iter().flat_map(|claim| &claim.pods).map(|pod| (pod.name.as_str(), &pod.ready)).collect();
    let names = |claims: &mut dyn Iterator<Item = &str>| claims.collect::<Vec<_>>().join(", ");
    if pods.is_empty() {
        let all = names(&mut claims.iter().map(|claim| claim.name()));
        return Said::no(words::REASON_NO_PODS, format!("No pod uses PVC {all}."));
    }
    let waits = pods.iter().filter_map(|(name, ready)| {
        ready.as_ref().err().map(|why| format!("Pod {name} is not ready: {why}."))
    });
    let waits: Vec<String> = waits.collect();
    if !waits.is_empty() {
        return Said::no(words::REASON_PODS_NOT_READY, waits.join(" "));
    }
    let mut idle = claims.iter().filter(|claim| claim.pods.is_empty()).map(|claim| claim.name()).peekable();
    let idle = idle.peek().is_some().then(|| format!(" No pod uses PVC {}.", names(&mut idle)));
    let ready = "All pods that use the protected PVCs are ready.";
    Said::yes(words::REASON_PODS_READY, ready.to_owned() + &idle.unwrap_or_default())
}
