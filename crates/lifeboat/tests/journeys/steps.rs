//! What people do, and how each thing is judged.

mod accidents;
mod changes;
mod losses;

use crate::disks::{self, Held};
use crate::fleet::{Fleet, NAME, PATIENCE, SPACE, Way, claim, delete};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::ListParams;
use lifeboat_api::ramen::DRPlacementControl;
use lifeboat_runner::sample::Record;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One thing that a person does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Fails over to the other cluster.
    Failover,
    /// Moves to the other cluster.
    Relocate,
    /// Fails over, and within two seconds back.
    ChangeMind,
    /// Asks for a relocation, and takes it back a moment later.
    Abort,
    /// Fails over to an older copy than the newest.
    FailoverToPoint,
    /// Deletes the VRG on the cluster where the application runs.
    DeleteVrg,
    /// Deletes the application's namespace on the cluster where it runs, and then fails over to the copy.
    DeleteNamespaceThenFailover,
    /// Deletes the application's namespace on the cluster where it runs, and then uses the volumes that were kept.
    DeleteNamespaceThenRestore,
    /// Makes a snapshot class for backups whose Secret is missing, as docs/storage.md has it, and waits for another copy.
    BrokenSnapshotClass,
    /// Deletes a PVC by mistake, so that an empty one is made in its place, and fails over to the copy.
    DeleteClaimThenFailover,
    /// Deletes a PVC on purpose, so that an empty one is made in its place, and lets that be copied.
    DeleteClaimThenAccept,
    /// Deletes the snapshot classes of both clusters, and makes them again.
    DeleteSnapshotClasses,
    /// Deletes a pod.
    DeletePod,
    /// Ends the protection, and protects the application again.
    EndAndProtect,
    /// Loses the cluster where the application runs, fails over, and brings it back.
    LoseCluster,
    /// Loses the cluster where the application runs with all its disks, fails over, and puts an empty one in its place.
    RebuildCluster,
    /// Loses the cluster where the application runs with all its disks, puts an empty one in its place, and only then fails over.
    RebuildPrimary,
    /// Loses the other cluster with all its disks, and puts an empty one in its place.
    RebuildPeer,
    /// Loses the hub and brings it back.
    LoseHub,
    /// Loses the hub with all its objects, puts an empty one in its place, and brings to it what is in Git.
    RebuildHub,
    /// Fails over and relocates, ten times in a row.
    TenMoves,
    /// Scales the application to zero, and up again.
    Scale,
    /// Asks for larger PVCs.
    Grow,
    /// Gives the application another PVC.
    AddClaim,
    /// Takes the last PVC away from the application, where it has more than one.
    RemoveClaim,
    /// Deletes the Secret that the movers of both clusters share.
    DeleteMoverSecret,
}

/// An application on its way.
pub struct Journey {
    fleet: Fleet,
    here: &'static str,
    /// The newest record of each PVC that must be on some disk, whatever happens.
    floor: BTreeMap<String, Record>,
    /// The newest record of each PVC that is on the disks of the other cluster as status promised: a failover must bring it.
    copied: BTreeMap<String, Record>,
    /// How many steps were taken.
    taken: u32,
}

fn other(cluster: &str) -> &'static str {
    if cluster == "east" { "west" } else { "east" }
}

/// What went wrong, with what a person would see then.
type Outcome = Result<(), String>;

impl Journey {
    /// An application that is protected on east.
    pub async fn begin(way: Way, claims: usize) -> Result<Self, String> {
        let fleet = Fleet::start(way, claims).await?;
        let mut journey =
            Self { fleet, here: "east", floor: BTreeMap::new(), copied: BTreeMap::new(), taken: 0 };
        journey.records_are_copied().await?;
        Ok(journey)
    }

    /// Does something, waits until the application is safe again, and compares the disks with what was said.
    pub async fn take(&mut self, step: Step) -> Outcome {
        self.taken += 1;
        let done = match step {
            Step::Failover => self.failover(None).await,
            Step::Relocate => self.relocate().await,
            Step::ChangeMind => self.change_mind().await,
            Step::DeleteVrg => self.delete_vrg().await,
            Step::DeleteNamespaceThenFailover => self.delete_namespace_then_failover().await,
            Step::DeleteNamespaceThenRestore => self.delete_namespace_then_restore().await,
            Step::BrokenSnapshotClass => self.broken_snapshot_class().await,
            Step::Abort => self.abort().await,
            Step::FailoverToPoint => self.failover_to_point().await,
            Step::DeleteClaimThenFailover => self.delete_claim_then_failover().await,
            Step::DeleteClaimThenAccept => self.delete_claim_then_accept().await,
            Step::DeleteSnapshotClasses => self.delete_snapshot_classes().await,
            Step::DeletePod => self.delete_pod().await,
            Step::EndAndProtect => self.end_and_protect().await,
            Step::LoseCluster => self.lose_cluster().await,
            Step::RebuildCluster => self.rebuild_cluster().await,
            Step::RebuildPrimary => self.rebuild_primary().await,
            Step::RebuildPeer => self.rebuild_peer().await,
            Step::LoseHub => self.lose_hub().await,
            Step::RebuildHub => self.rebuild_hub().await,
            Step::TenMoves => self.ten_moves().await,
            Step::Scale => self.scale().await,
            Step::Grow => self.grow().await,
            Step::AddClaim => self.add_claim().await,
            Step::RemoveClaim => self.remove_claim().await,
            Step::DeleteMoverSecret => self.delete_mover_secret().await,
        };
        let settled = match done {
            Ok(()) => self.settle().await,
            Err(why) => Err(why),
        };
        let ended = settled.map_err(|why| format!("{step:?} on {}: {why}\n{}", self.here, self.seen()));
        if let (Err(why), Ok(seconds)) = (&ended, std::env::var("LIFEBOAT_JOURNEY_HOLD")) {
            println!("{why}\nthe fleet is held for {seconds} s in {}", self.fleet.folder().display());
            tokio::time::sleep(Duration::from_secs(seconds.parse().expect("seconds"))).await;
        }
        ended
    }

    /// What a person would look at.
    fn seen(&self) -> String {
        let status = self.fleet.app(&["status", "-o", "json"]);
        let explain = self.fleet.run(&["explain", "app", NAME, "-n", SPACE]);
        format!("status:\n{}\nexplain:\n{}", status.text, explain.text)
    }

    fn claims(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.fleet.claims).map(claim)
    }

    /// The application runs, is protected, and nothing that had to be kept is gone.
    async fn settle(&mut self) -> Outcome {
        self.runs(self.here).await?;
        self.nothing_is_gone()?;
        self.fleet.ready().await?;
        let since = self.now_written().await?;
        self.goes_on(&since).await?;
        self.nothing_is_gone()?;
        self.records_are_copied().await
    }

    /// Every PVC's newest record that had to be kept is on some disk.
    fn nothing_is_gone(&self) -> Outcome {
        for (claim, record) in &self.floor {
            if !disks::is_somewhere(&self.fleet, record) {
                return Err(format!("DATA LOST: no disk has {record:?} of PVC {claim} any more"));
            }
        }
        Ok(())
    }

    async fn now_written(&self) -> Result<BTreeMap<String, u64>, String> {
        let mut written = BTreeMap::new();
        for claim in self.claims() {
            let held = disks::bound(&self.fleet, self.here, &claim).await;
            let held = held.ok_or_else(|| format!("PVC {claim} on {} has no records", self.here))?;
            if !held.found.is_whole() {
                return Err(format!("DATA DAMAGED: PVC {claim} on {}: {:?}", self.here, held.found));
            }
            written.insert(claim, held.found.last_number());
        }
        Ok(written)
    }

    /// The application writes: a pod that runs and cannot write is not done.
    async fn goes_on(&self, since: &BTreeMap<String, u64>) -> Outcome {
        let began = Instant::now();
        loop {
            let now = self.now_written().await?;
            if since.iter().all(|(claim, number)| now[claim] > *number) {
                return Ok(());
            }
            if began.elapsed() > Duration::from_secs(20) {
                return Err(format!("the application does not write on {}: {since:?} {now:?}", self.here));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What status promises to be at the peer is there, byte by byte, and must stay.
    async fn records_are_copied(&mut self) -> Outcome {
        let began = Instant::now();
        loop {
            let lacking = self.lacking().await;
            match lacking {
                None => return Ok(()),
                // The disk is read after the promise, and an image may be replaced by the next one meanwhile.
                Some(why) if began.elapsed() > Duration::from_secs(75) => return Err(why),
                Some(_) => tokio::time::sleep(Duration::from_millis(300)).await,
            }
        }
    }

    /// What is promised and is not at the peer.
    async fn lacking(&mut self) -> Option<String> {
        let status = self.fleet.drpc().await.and_then(|drpc| drpc.status).unwrap_or_default();
        let promised = status.last_group_sync_time.map(|time| time.0.as_millisecond());
        let peer = other(self.here);
        for claim in self.claims() {
            let here = disks::bound(&self.fleet, self.here, &claim).await.unwrap_or_default();
            let copy = disks::copied(&self.fleet, peer, &here);
            let Some(copy) = copy else { return Some(format!("PVC {claim} has no copy on {peer}")) };
            let next = here.record(copy.number + 1);
            if let (Some(promised), Some(next)) = (promised, next)
                && next.millis < promised
            {
                return Some(format!(
                    "STATUS LIES: everything before {promised} is said to be on {peer}, record {} of PVC {claim} was written at {} and is not",
                    next.number, next.millis
                ));
            }
            // A disk may hold half of the next copy already, which no failover may use: what was promised must come.
            let whole = |number: &u64| here.record(*number).filter(|one| Some(one.millis) < promised);
            if let Some(last) = (1..=copy.number).rev().find_map(|number| whole(&number)) {
                self.copied.insert(claim, last);
            }
        }
        None
    }

    /// Every PVC's pod runs on a cluster.
    async fn runs(&self, cluster: &str) -> Outcome {
        let pods: Api<Pod> = Api::namespaced(self.fleet.client(cluster).await, SPACE);
        let began = Instant::now();
        loop {
            let all = pods.list(&ListParams::default()).await.expect("listed").items;
            let running = all.iter().filter(|pod| {
                pod.metadata.deletion_timestamp.is_none()
                    && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
            });
            if running.count() >= self.fleet.claims {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                let shown: Vec<String> =
                    all.iter().map(|pod| format!("{:?} {:?}", pod.metadata.name, pod.status)).collect();
                return Err(format!("the application does not run on {cluster}: {}", shown.join("; ")));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Exit code 0 of a move says that the application runs: it is not waited for.
    async fn runs_as_said(&self, cluster: &str) -> Outcome {
        let pods: Api<Pod> = Api::namespaced(self.fleet.client(cluster).await, SPACE);
        let all = pods.list(&ListParams::default()).await.expect("listed").items;
        let ready = all.iter().any(|pod| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
        });
        match ready {
            true => Ok(()),
            false => {
                Err(format!("STATUS LIES: the move ended with exit code 0, and no pod is ready on {cluster}"))
            }
        }
    }

    /// What every PVC has where the application runs.
    async fn held(&self) -> BTreeMap<String, Held> {
        let mut held = BTreeMap::new();
        for claim in self.claims() {
            if let Some(one) = disks::bound(&self.fleet, self.here, &claim).await {
                held.insert(claim, one);
            }
        }
        held
    }

    fn moved(&self, action: &str, to: &str, more: &[&str]) -> Outcome {
        let timeout = PATIENCE.as_secs().to_string();
        let args = [&[action, "--yes", "--to", to, "--timeout", &timeout], more].concat();
        let ran = self.fleet.app(&args);
        match ran.code {
            0 => Ok(()),
            code => Err(format!("`lifeboat {action} --to {to}` gives {code}:\n{}", ran.text)),
        }
    }

    /// `before`: the disks of the cluster that is left, where it cannot be asked any more.
    async fn failover(&mut self, before: Option<BTreeMap<String, Held>>) -> Outcome {
        let (from, to) = (self.here, other(self.here));
        let mut before = match before {
            Some(before) => before,
            None => self.held().await,
        };
        self.moved("failover", to, &[])?;
        self.here = to;
        self.runs_as_said(to).await?;
        self.runs(to).await?;
        // Until it was stopped it went on writing; the volume that it wrote to is kept or became a replica.
        for (claim, held) in disks::best(&self.fleet, from) {
            let known = before.entry(claim).or_default();
            if held.found.last_number() > known.found.last_number()
                && known.found.last.as_ref().is_none_or(|last| held.has(last))
                && held.found.last.as_ref().is_some_and(|last| last.writer.starts_with(from))
            {
                *known = held;
            }
        }
        let status = self.fleet.drpc().await.and_then(|drpc| drpc.status).unwrap_or_default();
        let said = status.last_failover.unwrap_or_default();
        for claim in self.claims() {
            let after = disks::bound(&self.fleet, to, &claim)
                .await
                .ok_or(format!("PVC {claim} on {to} has no records"))?;
            if !after.found.is_whole() {
                return Err(format!("DATA DAMAGED: PVC {claim} on {to}: {:?}", after.found));
            }
            let source = &before[&claim];
            let number = after.common(source);
            if let Some(copied) = self.copied.get(&claim)
                && !after.has(copied)
            {
                return Err(format!(
                    "OLD DATA: PVC {claim} begins on {to} after record {number}, the copy there had {copied:?}"
                ));
            }
            let Some(first_lost) = source.record(number + 1) else { continue };
            let until = said.data_until.as_ref().map(|time| time.0.as_millisecond());
            if until.is_none_or(|until| first_lost.millis < until) {
                return Err(format!(
                    "STATUS LIES: lastFailover says that everything until {until:?} is there, record {} of PVC {claim} was written at {} and is not",
                    first_lost.number, first_lost.millis
                ));
            }
        }
        self.restart_floor().await;
        Ok(())
    }

    /// After a stated loss, what is there now is what must be kept.
    async fn restart_floor(&mut self) {
        for claim in self.claims() {
            let held = disks::bound(&self.fleet, self.here, &claim).await.unwrap_or_default();
            if let Some(last) = held.found.last {
                self.floor.insert(claim, last);
            }
        }
    }

    async fn relocate(&mut self) -> Outcome {
        let (from, to) = (self.here, other(self.here));
        let before = self.held().await;
        self.moved("relocate", to, &[])?;
        self.here = to;
        self.runs_as_said(to).await?;
        self.runs(to).await?;
        for claim in self.claims() {
            let after = disks::bound(&self.fleet, to, &claim)
                .await
                .ok_or(format!("PVC {claim} on {to} has no records"))?;
            let source = disks::best(&self.fleet, from).remove(&claim).unwrap_or_default();
            let last = source.found.writers.iter().rev().find(|span| span.writer.starts_with(from));
            let seen = before.get(&claim).and_then(|held| held.found.last.clone());
            // A volume that an earlier failover gave up may have more records, of another life.
            let same = seen.as_ref().is_some_and(|seen| source.has(seen));
            let last = last.filter(|_| same).and_then(|span| source.record(span.to));
            for had in last.into_iter().chain(seen) {
                if !after.found.is_whole() || !after.has(&had) {
                    return Err(format!(
                        "DATA LOST: a relocation lost records of PVC {claim}: {from} had {had:?}, {to} has {:?}",
                        after.found.writers
                    ));
                }
            }
        }
        self.restart_floor().await;
        Ok(())
    }

    async fn change_mind(&mut self) -> Outcome {
        let (home, away) = (self.here, other(self.here));
        self.moved("failover", away, &["--no-wait"])?;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let began = Instant::now();
        // Whoever changes their mind does not look at plans.
        loop {
            let ran =
                self.fleet.app(&["failover", "--yes", "--to", home, "--even-if-blocked", "--timeout", "100"]);
            match ran.code {
                0 => break,
                1 | 4 if began.elapsed() < Duration::from_secs(20) => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                // What was written to directly may hold half a copy by now: the way on is the way back.
                3 if self.fleet.way == Way::Direct && ran.text.contains("move back to the cluster") => {
                    self.moved("failover", away, &["--even-if-blocked"])?;
                    self.here = away;
                    self.restart_floor().await;
                    return Ok(());
                }
                code => return Err(format!("`lifeboat failover --to {home}` gives {code}:\n{}", ran.text)),
            }
        }
        // Which copy it begins with is the product's choice; what it had copied must be in it.
        self.runs(home).await?;
        for claim in self.claims() {
            let held = disks::bound(&self.fleet, home, &claim).await.unwrap_or_default();
            if let Some(copied) = self.copied.get(&claim)
                && !held.has(copied)
            {
                return Err(format!(
                    "OLD DATA: PVC {claim} is back on {home} without {copied:?}, which had been copied"
                ));
            }
        }
        self.restart_floor().await;
        Ok(())
    }

    /// A relocation is called off as long as it can be; else it goes forward, and loses nothing either way.
    async fn abort(&mut self) -> Outcome {
        let (home, away) = (self.here, other(self.here));
        let before = self.held().await;
        self.moved("relocate", away, &["--no-wait"])?;
        tokio::time::sleep(Duration::from_millis(u64::from(self.taken * 7 % 5) * 500)).await;
        let ran = self.fleet.app(&["abort", "--timeout", "100s"]);
        match ran.code {
            0 => self.runs(home).await?,
            4 if ran.text.contains(away) => {
                self.here = away;
                self.runs(away).await?;
            }
            code => return Err(format!("`lifeboat abort` gives {code}:\n{}", ran.text)),
        }
        for (claim, held) in before {
            let now = disks::bound(&self.fleet, self.here, &claim).await.unwrap_or_default();
            if held.found.last.as_ref().is_some_and(|last| !now.has(last)) {
                return Err(format!(
                    "DATA LOST: after a relocation that was called off, PVC {claim} on {} has {:?}, it had {:?}",
                    self.here, now.found.last, held.found.last
                ));
            }
        }
        self.restart_floor().await;
        Ok(())
    }

    /// What was copied later than the point is not used, and is kept.
    async fn failover_to_point(&mut self) -> Outcome {
        if self.fleet.way != Way::Copied {
            return self.failover(None).await;
        }
        self.records_are_copied().await?;
        let (from, to) = (self.here, other(self.here));
        let status = self.fleet.drpc().await.and_then(|drpc| drpc.status).unwrap_or_default();
        let point = status.last_group_sync_time.ok_or("no copy was reported")?.0;
        let wanted = self.copied.clone();
        // Time for a newer copy.
        tokio::time::sleep(Duration::from_secs(7)).await;
        self.records_are_copied().await?;
        let newest = std::mem::take(&mut self.copied);
        self.moved("failover", to, &["--to-point", &point.to_string()])?;
        self.here = to;
        self.runs(to).await?;
        for claim in self.claims() {
            let after = disks::bound(&self.fleet, to, &claim).await.unwrap_or_default();
            if let Some(record) = wanted.get(&claim).filter(|record| !after.has(record)) {
                return Err(format!("OLD DATA: PVC {claim} at the point {point} lacks {record:?}"));
            }
            let later = after.found.writers.iter().rev().find(|span| span.writer.starts_with(from));
            let later = later.and_then(|span| after.record(span.to));
            if let Some(record) = later.filter(|record| record.millis >= point.as_millisecond() + 1_000) {
                return Err(format!("NEWER DATA: PVC {claim} at the point {point} has {record:?}"));
            }
        }
        for (claim, record) in newest {
            if !disks::is_somewhere(&self.fleet, &record) {
                return Err(format!(
                    "DATA LOST: no disk has {record:?} of PVC {claim}, which is newer than the point"
                ));
            }
        }
        self.restart_floor().await;
        Ok(())
    }

    async fn end_and_protect(&mut self) -> Outcome {
        self.restart_floor().await;
        let hub = self.fleet.client("hub").await;
        delete::<DRPlacementControl>(&hub, NAME).await;
        let began = Instant::now();
        while self.fleet.drpc().await.is_some() {
            if began.elapsed() > PATIENCE {
                return Err("the DRPC that was deleted does not go".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // The application runs on.
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.fleet.client(self.here).await, SPACE);
        for claim in self.claims() {
            let there = claims.get_opt(&claim).await.expect("read");
            if there.is_none_or(|there| there.metadata.deletion_timestamp.is_some()) {
                return Err(format!("PVC {claim} went with its protection"));
            }
        }
        self.fleet.protect(self.here).await
    }

    async fn ten_moves(&mut self) -> Outcome {
        for number in 1..=10 {
            let done = match number % 2 {
                0 => self.relocate().await,
                _ => self.failover(None).await,
            };
            let settled = match done {
                Ok(()) => self.settle().await,
                Err(why) => Err(why),
            };
            settled.map_err(|why| format!("move {number}: {why}"))?;
        }
        Ok(())
    }
}
