//! Plays a managed cluster: an agent that carries works and answers views, and a protector that takes roles as ours does. What it holds is not on the
//! hub, so a test can freeze it, kill it and wake it up with what it had.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::cluster::PlacementDecision;
use lifeboat_api::conditions::{fleet, vrg as words};
use lifeboat_api::ramen::{Blocker, ProtectedPvc, VolumeReplicationGroup, VrgState};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_api::{annotations, finalizers};
use lifeboat_engine::Clock;
use lifeboat_hub::drpc::world::GroupWords;
use lifeboat_hub::words::Words as _;
use lifeboat_hub::works;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a played cluster is like.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// It does nothing, and nobody hears of it.
    pub dead: bool,
    /// Its groups, by namespace and name.
    pub groups: BTreeMap<(String, String), VolumeReplicationGroup>,
    /// Claims of the application that movers copy.
    pub copied: Vec<String>,
    /// Claims of the application that its storage mirrors.
    pub mirrored: Vec<String>,
    /// Restoring takes for ever.
    pub cannot_restore: bool,
    /// The last copy takes for ever.
    pub cannot_copy: bool,
    /// Records cannot be written.
    pub unrecorded: bool,
    /// Groups that were primary and at which epoch, in order: what the application could have written by.
    pub reigns: Vec<i64>,
    /// How often a last copy was completed.
    pub last_copies: u32,
    /// How often the application has written here.
    pub written: u64,
    /// How much of that is in the last copy.
    pub cut: Option<u64>,
    /// Another group wants the same claims.
    pub disputed: bool,
    /// Its groups and PVCs were deleted without the order to end protection; PVs and records are kept.
    pub orphaned: bool,
    /// How often protection was ended by order.
    pub ended: u32,
    /// How often the application ran on an orphaned cluster, and so with empty PVCs: it may for a moment, before the hub hears of it.
    pub empty_runs: u32,
    /// Restoring takes this many steps.
    pub restore_takes: u32,
    /// How many of them are left.
    pub restore_steps: u32,
    /// Its claims are said to be in another namespace: the cluster is not to be trusted.
    pub strays: bool,
}

impl State {
    /// Its groups are deleted: by order, or by accident.
    pub fn delete(&mut self) {
        let ordered = self.groups.values().any(GroupWords::ends_protection);
        let primary = self.groups.values().any(GroupWords::is_primary);
        self.ended += u32::from(ordered);
        self.orphaned = self.orphaned || (primary && !ordered);
        self.groups.clear();
    }

    /// Takes up a group that was sent.
    pub fn apply(&mut self, name: &str, sent: VolumeReplicationGroup) {
        let state = self;
        let key = (sent.space().to_owned(), sent.name().to_owned());
        let Some(known) = state.groups.get_mut(&key) else {
            let mut made = sent;
            made.metadata.generation = Some(1);
            made.metadata.resource_version = Some("1".to_owned());
            made.metadata.uid = Some(format!("uid-{name}"));
            state.groups.insert(key, made);
            return;
        };
        if known.spec != sent.spec {
            known.spec = sent.spec;
            known.metadata.generation = known.metadata.generation.map(|generation| generation + 1);
        }
        // An agent adds what is sent and takes nothing away.
        let notes = known.metadata.annotations.get_or_insert_default();
        notes.extend(sent.metadata.annotations.unwrap_or_default());
    }

    /// Takes roles as our protector does: epochs first, data next.
    pub fn protect(&mut self, name: &str, runs: bool, now: Timestamp) {
        let state = self;
        let State { copied, mirrored, cannot_restore, cannot_copy, unrecorded, disputed, strays, .. } =
            state.clone();
        let (mut reigns, mut last_copies) = (state.reigns.clone(), state.last_copies);
        let (mut written, mut cut) = (state.written, state.cut);
        let (mut orphaned, mut empty_runs) = (state.orphaned, state.empty_runs);
        let mut restore_steps = state.restore_steps;
        let takes = state.restore_takes;
        for group in state.groups.values_mut() {
            let generation = group.metadata.generation;
            let given: i64 = group.note(annotations::EPOCH).and_then(|text| text.parse().ok()).unwrap_or(0);
            let before = group.status.clone().unwrap_or_default();
            let mut status = before.clone();
            let highest = before.epoch.unwrap_or(0);
            status.blockers.clear();
            if given < highest {
                let message = format!("the epoch {given} is lower than {highest}");
                status.blockers =
                    vec![Blocker { reason: "EpochRefused".into(), message, ..Blocker::default() }];
                status.conditions = vec![said(name, words::TYPE_DATA_READY, false, "Error", generation)];
                status.state = Some(VrgState::Unknown);
                group.status = Some(status);
                continue;
            }
            status.epoch = Some(given.max(highest));
            status.observed_generation = generation;
            status.prepare_for_final_sync_complete = group.spec.prepare_for_final_sync;
            let yes = |type_: &str, reason: &str| said(name, type_, true, reason, generation);
            let no = |type_: &str, reason: &str| said(name, type_, false, reason, generation);
            if group.is_primary() {
                let was = before.primary_epoch == Some(given) && before.state == Some(VrgState::Primary);
                let chosen = group.note(annotations::RESTORE_ORPHANS) == Some(&*given.to_string());
                orphaned = orphaned && !chosen;
                empty_runs += u32::from(orphaned && runs);
                if before.primary_epoch != Some(given) {
                    restore_steps = takes;
                }
                let slow = restore_steps > 0;
                restore_steps = restore_steps.saturating_sub(1);
                let restored = (!(cannot_restore || slow) || was) && !orphaned;
                status.primary_epoch = Some(given);
                let usual = "data".to_owned();
                let mut named: Vec<&String> = copied.iter().chain(&mirrored).collect();
                if named.is_empty() {
                    named.push(&usual);
                }
                status.protected_pvcs = named
                    .iter()
                    .map(|name| ProtectedPvc {
                        name: Some((*name).clone()),
                        namespace: match strays {
                            true => Some("bank".to_owned()),
                            false => group.metadata.namespace.clone(),
                        },
                        protected_by_vol_sync: copied.contains(name),
                        ..ProtectedPvc::default()
                    })
                    .collect();
                status.conditions = match restored {
                    true => vec![
                        yes(words::TYPE_DATA_READY, "Ready"),
                        yes(words::TYPE_DATA_PROTECTED, "DataProtected"),
                        yes(words::TYPE_CLUSTER_DATA_READY, "Restored"),
                        match unrecorded {
                            true => no(words::TYPE_CLUSTER_DATA_PROTECTED, "UploadError"),
                            false => yes(words::TYPE_CLUSTER_DATA_PROTECTED, "Uploaded"),
                        },
                    ],
                    false if orphaned => vec![no(words::TYPE_CLUSTER_DATA_READY, words::REASON_ORPHANED)],
                    false => vec![no(words::TYPE_CLUSTER_DATA_READY, "Progressing")],
                };
                if orphaned {
                    status.protected_pvcs.clear();
                }
                if disputed {
                    status.conditions.push(no(words::TYPE_NO_CLUSTER_DATA_CONFLICT, "ClusterDataConflict"));
                }
                status.state = Some(if restored { VrgState::Primary } else { VrgState::Unknown });
                if restored && runs {
                    written += 1;
                }
                let now = now.as_second();
                let synced = Time(Timestamp::from_second(now - 60).unwrap());
                match orphaned {
                    true => status.last_group_sync_time = None,
                    false => drop(status.last_group_sync_time.get_or_insert(synced)),
                }
                let copies = group.spec.run_final_sync && !runs && !cannot_copy;
                if copies && !before.final_sync_complete {
                    last_copies += 1;
                    cut = Some(written);
                }
                status.final_sync_complete = copies;
                if reigns.last() != Some(&given) {
                    reigns.push(given);
                }
            } else {
                status.primary_epoch = None;
                // What was left behind is replaced by what is received.
                (orphaned, restore_steps) = (false, 0);
                status.final_sync_complete = false;
                status.protected_pvcs.clear();
                let received = group.spec.vol_sync.iter().flat_map(|volsync| &volsync.rd_spec);
                status.rd_info = received
                    .map(|one| lifeboat_api::ramen::VolSyncDestinationInfo {
                        protected_pvc: one.protected_pvc.clone(),
                        rsync_tls: Some(lifeboat_api::ramen::RsyncTls {
                            address: Some(format!("receiver.{name}")),
                            tls_secret_ref: None,
                        }),
                    })
                    .collect();
                status.conditions = match runs {
                    true => vec![no(words::TYPE_DATA_READY, "Progressing")],
                    false => vec![
                        yes(words::TYPE_DATA_READY, "Replicated"),
                        yes(words::TYPE_DATA_PROTECTED, "DataProtected"),
                    ],
                };
                status.state = Some(if runs { VrgState::Unknown } else { VrgState::Secondary });
                if runs {
                    let message = "the claim is in use".to_owned();
                    status.blockers = vec![Blocker { reason: "InUse".into(), message, ..Blocker::default() }];
                }
            }
            group.status = Some(status);
        }
        state.reigns = reigns;
        state.last_copies = last_copies;
        (state.written, state.cut) = (written, cut);
        (state.orphaned, state.empty_runs, state.restore_steps) = (orphaned, empty_runs, restore_steps);
    }
}

fn said(name: &str, type_: &str, holds: bool, reason: &str, generation: Option<i64>) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: format!("{reason} says {name}"),
        observed_generation: generation,
        last_transition_time: Time("2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap()),
    }
}

#[derive(Clone)]
pub struct Spoke {
    pub name: String,
    pub space: String,
    client: kube::Client,
    clock: Clock,
    pub state: Arc<Mutex<State>>,
}

const STEP: Duration = Duration::from_millis(500);

impl Spoke {
    pub fn new(name: &str, space: &str, client: kube::Client, clock: Clock) -> Self {
        Self { name: name.to_owned(), space: space.to_owned(), client, clock, state: Arc::default() }
    }

    pub fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    pub fn group(&self) -> Option<VolumeReplicationGroup> {
        self.state.lock().groups.values().next().cloned()
    }

    pub async fn run(self) {
        loop {
            if !self.state.lock().dead {
                let runs = self.runs_application().await;
                self.carry().await;
                self.state.lock().protect(&self.name, runs, self.clock.now());
                self.answer().await;
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Whether the application is placed here, for whatever reason.
    async fn runs_application(&self) -> bool {
        let api: Api<PlacementDecision> = Api::namespaced(self.client.clone(), &self.space);
        let Ok(all) = api.list(&ListParams::default()).await else { return true };
        let mut chosen =
            all.items.iter().filter_map(|one| one.status.as_ref()).flat_map(|status| &status.decisions);
        chosen.any(|one| one.cluster_name == self.name)
    }

    /// Carries works: applies groups, and removes them when their work goes.
    async fn carry(&self) {
        let api: Api<ManifestWork> = Api::namespaced(self.client.clone(), &self.name);
        let Ok(all) = api.list(&ListParams::default()).await else { return };
        for work in all.items {
            let group = works::read::<VolumeReplicationGroup>(&work);
            if work.is_going() {
                if group.is_some() {
                    self.state.lock().delete();
                }
                self.finalizer(&api, &work, false).await;
                continue;
            }
            if !work.has_finalizer(finalizers::MANIFEST_WORK) {
                self.finalizer(&api, &work, true).await;
                continue;
            }
            if let Some(group) = group {
                self.state.lock().apply(&self.name, group);
            }
            if !works::is_applied(&work) {
                let told = said(
                    &self.name,
                    fleet::TYPE_WORK_APPLIED,
                    true,
                    "AppliedManifestWorkComplete",
                    work.metadata.generation,
                );
                let patch = Patch::Merge(json!({ "status": { "conditions": [told] } }));
                let _ = api.patch_status(work.name(), &PatchParams::default(), &patch).await;
            }
        }
    }

    async fn finalizer(&self, api: &Api<ManifestWork>, work: &ManifestWork, on: bool) {
        let mut names = work.metadata.finalizers.clone().unwrap_or_default();
        names.retain(|name| name != finalizers::MANIFEST_WORK);
        if on {
            names.push(finalizers::MANIFEST_WORK.to_owned());
        } else if !work.has_finalizer(finalizers::MANIFEST_WORK) {
            return;
        }
        let mut metadata = work.guard();
        metadata["finalizers"] = json!(names);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let _ = api.patch(work.name(), &PatchParams::default(), &patch).await;
    }

    /// Answers views; what has not changed is not written again.
    async fn answer(&self) {
        let api: Api<ManagedClusterView> = Api::namespaced(self.client.clone(), &self.name);
        let Ok(all) = api.list(&ListParams::default()).await else { return };
        for view in all.items {
            let scope = view.spec.scope.clone().unwrap_or_default();
            let key = (scope.namespace.unwrap_or_default(), scope.name.unwrap_or_default());
            let found = self.state.lock().groups.get(&key).cloned();
            let result = found.map(|group| works_with_status(&group));
            let now = self.clock.now();
            let said = |type_: &str, holds: bool, reason: &str, message: &str| {
                json!({
                    "type": type_, "status": if holds { "True" } else { "False" }, "reason": reason, "message": message,
                    "lastTransitionTime": Time(now),
                })
            };
            let processing = match &result {
                Some(_) => said(
                    fleet::TYPE_VIEW_PROCESSING,
                    true,
                    fleet::REASON_VIEW_GET_RESOURCE,
                    "Watching resources successfully",
                ),
                None => said(
                    fleet::TYPE_VIEW_PROCESSING,
                    false,
                    fleet::REASON_VIEW_GET_RESOURCE_FAILED,
                    &format!(
                        "failed to get resource with err: volumereplicationgroups \"{}\" not found",
                        key.1
                    ),
                ),
            };
            let shown = view.status.clone().unwrap_or_default();
            let same = shown.result.as_ref().map(|one| &one.0) == result.as_ref();
            if same && !shown.conditions.is_empty() {
                continue;
            }
            let seen = said("Observed", true, "Seen", "");
            let mut told = view.clone();
            told.status =
                serde_json::from_value(json!({ "conditions": [processing, seen], "result": result }))
                    .unwrap();
            let _ = api.replace_status(view.name(), &PostParams::default(), &told).await;
        }
    }
}

fn works_with_status(group: &VolumeReplicationGroup) -> serde_json::Value {
    let mut value = works::manifest(group);
    value["status"] = json!(group.status);
    value
}
