//! The demo as a story: it only writes Kubernetes objects, kills a cluster and reads disks. What happens in between is the fleet's own doing.

use super::app::{self, NAME, NAMESPACE};
use super::disk::{self, Read};
use super::narrate::Narrator;
use super::proof;
use super::wait::{looking, until};
use crate::plan::follow::{is_done, step};
use crate::up::fleet::Fleet;
use crate::up::hubside::POLICY;
use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use lifeboat_api::cluster::Placement;
use lifeboat_api::conditions::{drpc as words, drpolicy};
use lifeboat_api::ramen::{DRAction, DRPlacementControl, DRPolicy};
use lifeboat_engine::Clock;
use lifeboat_hub::drpc::commission::Act;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// How long one step may take before the demo gives up.
const WITHIN: Duration = Duration::from_secs(90);
/// Milliseconds between two records.
pub const EVERY_MS: u64 = 20;

/// The story and what it needs.
pub struct Story<'a> {
    /// The clusters.
    pub fleet: &'a mut Fleet,
    /// Who tells it.
    pub narrator: &'a mut Narrator,
    /// Storage class of the application's claim.
    pub class: String,
    hub: kube::Client,
    drpcs: Api<DRPlacementControl>,
}

async fn make<K>(client: &kube::Client, object: Value) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).context("invariant: the object is one of its kind")?;
    let made = Api::<K>::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &object).await;
    made.map(drop).with_context(|| format!("making a {}", K::kind(&())))
}

impl<'a> Story<'a> {
    /// A story in a fleet that runs.
    pub async fn new(fleet: &'a mut Fleet, narrator: &'a mut Narrator, class: &str) -> anyhow::Result<Self> {
        let hub = fleet.client("hub").await?;
        let drpcs = Api::namespaced(hub.clone(), NAMESPACE);
        Ok(Self { fleet, narrator, class: class.to_owned(), hub, drpcs })
    }

    /// Tells it from beginning to end.
    pub async fn tell(&mut self) -> anyhow::Result<()> {
        self.prepare().await?;
        self.protect().await?;
        let claimed = self.first_copy().await?;
        let (before, claimed) = self.kill(claimed).await?;
        let since = Clock::system().now();
        self.failover(&before, claimed).await?;
        self.revive(since).await?;
        let since = Clock::system().now();
        self.relocate().await?;
        self.settle(since).await
    }

    /// The application must be as safe at home as it was in the beginning.
    async fn settle(&mut self, since: Timestamp) -> anyhow::Result<()> {
        let begun = self.narrator.step("waiting until it is protected at home again");
        let cut = self.protected(Some(since)).await;
        let found = match &cut {
            Ok(cut) => format!("everything written before {} is safe on west", clock(*cut)),
            Err(error) => format!("{error:#}"),
        };
        self.narrator.done(begun, &found);
        let what = "after the way there and back the application is protected as before".to_owned();
        self.narrator.judge(vec![proof::Promise { what, kept: cut.is_ok(), found }]);
        Ok(())
    }

    async fn prepare(&mut self) -> anyhow::Result<()> {
        let begun =
            self.narrator.step("waiting until the hub knows its clusters, their stores and their storage");
        let policies: Api<DRPolicy> = Api::all(self.hub.clone());
        until(self.narrator, &policies, POLICY, WITHIN, |policy: &DRPolicy| {
            let status = policy.status.clone().unwrap_or_default();
            let validated = status.conditions.iter().find(|one| one.type_ == drpolicy::TYPE_VALIDATED);
            match validated {
                Some(one) if one.status == "True" => {
                    let classes = status.async_.map(|peers| peers.peer_classes.len()).unwrap_or_default();
                    if classes > 0 {
                        Ok(())
                    } else {
                        Err("no storage class is known to be on both clusters".to_owned())
                    }
                }
                Some(one) => Err(one.message.clone()),
                None => Err("the policy was not looked at yet".to_owned()),
            }
        })
        .await?;
        self.narrator.done(begun, "the policy is valid: east and west can stand in for each other");
        Ok(())
    }

    async fn protect(&mut self) -> anyhow::Result<()> {
        let begun =
            self.narrator.step("deploying an application that writes numbered records, and protecting it");
        let spaces: Api<Namespace> = Api::all(self.hub.clone());
        let space =
            serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).context("a namespace")?;
        spaces.create(&PostParams::default(), &space).await.context("making the namespace")?;
        make::<ConfigMap>(&self.hub, app::source(&self.class, EVERY_MS)).await?;
        make::<Placement>(&self.hub, app::placement()).await?;
        make::<DRPlacementControl>(&self.hub, app::protection(POLICY, "east")).await?;
        let last = self.runs("east").await?;
        self.narrator.done(begun, &format!("it runs on east as a process of this machine, at record {last}"));
        Ok(())
    }

    /// Waits until the application is ready on a cluster and has written something new there.
    async fn runs(&mut self, cluster: &str) -> anyhow::Result<u64> {
        let client = self.fleet.client(cluster).await?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
        until(self.narrator, &deployments, NAME, WITHIN, |one: &Deployment| {
            let ready = one.status.as_ref().and_then(|status| status.ready_replicas);
            if ready == Some(1) { Ok(()) } else { Err(format!("the deployment on {cluster} is not ready")) }
        })
        .await
        .with_context(|| format!("waiting for the application on {cluster}"))?;
        let folder = disk::folder(&client, &self.fleet.home(cluster)).await?;
        let writer = format!("{cluster}-node");
        looking(self.narrator, WITHIN, || {
            let read = disk::read(&folder).map_err(|error| format!("{error:#}"))?;
            let wrote = read.found.writers.last().is_some_and(|span| span.writer == writer);
            if wrote {
                Ok(read.found.last_number())
            } else {
                Err(format!("nothing was written on {cluster} yet"))
            }
        })
        .await
    }

    /// The moment before which everything is at the peer, once status names one and the copy has records: the very first may be of the claim
    /// as it was before the application wrote to it, and then the next one, a minute later, is waited for.
    async fn first_copy(&mut self) -> anyhow::Result<Timestamp> {
        let begun = self.narrator.step("waiting for the first copy on west");
        let mut cut = self.protected(None).await?;
        while !disk::has_records(&self.fleet.home("west"))? {
            cut = self.protected(Some(cut)).await?;
        }
        self.narrator.done(begun, &format!("status says: everything written before {} is safe", clock(cut)));
        Ok(cut)
    }

    /// Waits until the application is protected and its peer is ready, with a copy cut after `after`.
    async fn protected(&mut self, after: Option<Timestamp>) -> anyhow::Result<Timestamp> {
        until(self.narrator, &self.drpcs, NAME, WITHIN, |drpc: &DRPlacementControl| {
            let status = drpc.status.clone().unwrap_or_default();
            for type_ in [words::TYPE_AVAILABLE, words::TYPE_PEER_READY, words::TYPE_PROTECTED] {
                let one = status.conditions.iter().find(|one| one.type_ == type_);
                match one {
                    Some(one)
                        if one.status == "True" && one.observed_generation >= drpc.metadata.generation => {}
                    Some(one) => return Err(format!("{}; {type_}: {}", step(&status), one.message)),
                    None => return Err(format!("nothing is known of {type_}")),
                }
            }
            let cut = status.last_group_sync_time.as_ref().map(|time| time.0);
            match cut {
                Some(cut) if after.is_none_or(|after| cut > after) => Ok(cut),
                _ => Err(format!("the copy was not reported yet; {}", step(&status))),
            }
        })
        .await
        .context("waiting until the application is protected")
    }

    async fn kill(&mut self, claimed: Timestamp) -> anyhow::Result<(Read, Timestamp)> {
        let east = self.fleet.client("east").await?;
        let folder = disk::folder(&east, &self.fleet.home("east")).await?;
        // Something must be there to lose.
        let from = disk::read(&folder)?.found.last_number();
        looking(self.narrator, WITHIN, || {
            let now = disk::read(&folder).map_err(|error| format!("{error:#}"))?.found.last_number();
            if now >= from + 1_000 / EVERY_MS {
                Ok(())
            } else {
                Err("the writer goes on, so that there is something to lose".to_owned())
            }
        })
        .await?;
        let begun = self
            .narrator
            .step("killing east: its API server, its controllers, its object store and its processes");
        let status = self.drpcs.get(NAME).await.context("reading the status")?.status.unwrap_or_default();
        let claimed = status.last_group_sync_time.map_or(claimed, |time| time.0);
        tokio::task::block_in_place(|| self.fleet.kill("east"))?;
        let read = disk::read(&folder)?;
        let last = read.found.last_number();
        self.narrator.done(
            begun,
            &format!("east is dead; its disk, which west cannot read, has records up to {last}"),
        );
        Ok((read, claimed))
    }

    async fn ask(&mut self, spec: Value) -> anyhow::Result<DRPlacementControl> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.drpcs.patch(NAME, &PatchParams::default(), &patch).await.context("asking for it")
    }

    async fn comes(&mut self, asked: &DRPlacementControl, act: Act) -> anyhow::Result<()> {
        let generation = asked.metadata.generation;
        until(self.narrator, &self.drpcs, NAME, WITHIN, |drpc: &DRPlacementControl| {
            let status = drpc.status.clone().unwrap_or_default();
            if is_done(&status, generation, act) { Ok(()) } else { Err(step(&status)) }
        })
        .await
    }

    async fn failover(&mut self, before: &Read, claimed: Timestamp) -> anyhow::Result<()> {
        let begun = self.narrator.step("failing over to west");
        let asked = self.ask(json!({"action": DRAction::Failover, "failoverCluster": "west"})).await?;
        self.comes(&asked, Act::Failover).await.context("failing over")?;
        self.runs("west").await?;
        self.narrator.done(begun, "the application runs on west");
        let west = self.fleet.client("west").await?;
        let folder = disk::folder(&west, &self.fleet.home("west")).await?;
        let after = disk::read(&folder)?.before("west-node");
        let lost = proof::lost(&before.found, &after, |number| before.millis_of(number));
        let status = self.drpcs.get(NAME).await.context("reading the status")?.status.unwrap_or_default();
        self.narrator.tell(&format!(
            "          lost: {} of {} records, {:.1} s of writing; west began with records up to {}",
            lost.records,
            before.found.last_number(),
            Duration::from_millis(u64::try_from(lost.millis).unwrap_or(0)).as_secs_f64(),
            after.last_number()
        ));
        let said = status.last_failover.unwrap_or_default();
        let until_then = said.data_until.map(|time| time.0);
        let claims = until_then.unwrap_or(claimed).min(claimed);
        if let Some(seconds) = said.at_most_seconds {
            self.narrator
                .tell(&format!("          status said: at most {seconds} s, those after {}", clock(claims)));
        }
        let mut promises = proof::failover(&after, &lost, Some(claimed.as_millisecond()));
        let within = said.at_most_seconds.is_some_and(|seconds| lost.millis <= seconds * 1_000);
        promises.push(proof::Promise {
            what: "the loss was not larger than status said".to_owned(),
            kept: within,
            found: match said.at_most_seconds {
                Some(seconds) => format!("at most {seconds} s, it said"),
                None => "it said nothing".to_owned(),
            },
        });
        self.narrator.judge(promises);
        Ok(())
    }

    /// Brings east back, and waits until it has a copy of what west wrote since the failover.
    async fn revive(&mut self, since: Timestamp) -> anyhow::Result<()> {
        let begun = self.narrator.step("bringing east back");
        tokio::task::block_in_place(|| self.fleet.revive("east"))?;
        let cut = self.protected(Some(since)).await.context("waiting until west's data is safe on east")?;
        let found = format!("east gave up its role and receives from west; safe up to {}", clock(cut));
        self.narrator.done(begun, &found);
        Ok(())
    }

    async fn relocate(&mut self) -> anyhow::Result<()> {
        let west = self.fleet.client("west").await?;
        let folder = disk::folder(&west, &self.fleet.home("west")).await?;
        let begun = self.narrator.step("relocating home to east");
        let asked = self.ask(json!({"action": DRAction::Relocate, "preferredCluster": "east"})).await?;
        // Read as long as it is there; the writer says itself where it stopped.
        let mut seen = disk::read(&folder)?.found;
        self.comes(&asked, Act::Relocate).await.context("relocating")?;
        self.runs("east").await?;
        self.narrator.done(begun, "the application runs on east again");
        if let Some(last) = stopped_at(&self.fleet.home("west").join("logs"))
            && let Some(record) = seen.last.as_mut()
        {
            record.number = record.number.max(last);
        }
        let east = self.fleet.client("east").await?;
        let folder = disk::folder(&east, &self.fleet.home("east")).await?;
        let read = disk::read(&folder)?;
        let after = read.before("east-node");
        self.narrator.judge(proof::relocation(&seen, &after));
        let whole = read.found;
        let spans: Vec<String> = whole
            .writers
            .iter()
            .map(|span| format!("{} to {} on {}", span.from, span.to, span.writer))
            .collect();
        self.narrator.tell(&format!("          the records tell it: {}", spans.join(", ")));
        Ok(())
    }
}

/// The last number that a writer says it wrote, from the logs of a cluster.
fn stopped_at(logs: &PathBuf) -> Option<u64> {
    let mut last = None;
    for entry in std::fs::read_dir(logs).ok()?.flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let numbers =
            text.lines().filter_map(|line| line.strip_prefix(crate::demo_records::LAST)?.parse().ok());
        last = last.max(numbers.max());
    }
    last
}

fn clock(time: Timestamp) -> String {
    time.strftime("%T UTC").to_string()
}
