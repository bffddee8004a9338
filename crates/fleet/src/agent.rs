//! Puts the agent together: two engines, one for each side, and the watches between them, as one future.

use crate::allowed::Allowed;
use crate::cluster::ground::Ground;
use crate::cluster::kinds::Kinds;
use crate::cluster::sight::{Follower, Sight};
use crate::member::{Heartbeat, Membership};
use crate::view::Views;
use crate::work::{Failures, Works};
use k8s_openapi::api::coordination::v1::Lease;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::{AppliedManifestWork, ManifestWork};
use lifeboat_engine::{
    Backoff, Change, Clock, Engine, FeedSettings, Listed, Metrics, ObjectKey, Selection, Settings, Waits,
};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How an agent behaves.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// How its controllers run.
    pub engine: Settings,
    /// How often the lease shall be renewed, in seconds, for a ManagedCluster that the agent registers itself; a silence of five times
    /// this is told by the hub.
    pub lease_seconds: i32,
    /// The first part of every record's name on the cluster. Keep it when the hub moves: what was made before is known by it. `None` follows
    /// from the cluster's name.
    pub hub_hash: Option<String>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        // A hub or a cluster that comes back should find the agent soon: these pauses are all that stands between.
        let backoff = Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };
        // The lease vouches for what is seen, so a watch whose connection died in silence must be noticed before the lease has run out.
        let watch_for = Duration::from_secs(35);
        let feed = FeedSettings { backoff, watch_for, ..FeedSettings::default() };
        let pauses = Backoff { first: Duration::from_millis(10), longest: Duration::from_secs(5) };
        Self {
            engine: Settings { feed, backoff: pauses, ..Settings::default() },
            lease_seconds: 10,
            hub_hash: None,
        }
    }
}

/// What an agent is made of.
pub struct Agent {
    /// A client of the hub.
    pub hub: kube::Client,
    /// A client of the managed cluster.
    pub cluster: kube::Client,
    /// Name of the cluster, which is that of its namespace on the hub.
    pub name: String,
    /// The clock.
    pub clock: Clock,
    /// How it behaves.
    pub settings: AgentSettings,
    /// What it carries.
    pub allowed: Allowed,
}

/// An agent, ready to run.
pub struct Running {
    hub: Engine,
    cluster: Engine,
    records_known: Listed,
    ground: Ground,
    feed: FeedSettings,
}

/// The agent of one managed cluster, ready to run.
pub fn agent(agent: Agent) -> Running {
    let settings = &agent.settings;
    let mut cluster = Engine::new(NAME, agent.cluster.clone(), agent.clock.clone(), settings.engine);
    let mut hub = Engine::new(NAME, agent.hub.clone(), agent.clock.clone(), settings.engine);
    let records = cluster.objects::<AppliedManifestWork>(Selection::all());

    let own = || Selection::namespace(agent.name.clone());
    let named = |name: &str| format!("metadata.name={name}");
    let works = hub.objects::<ManifestWork>(own());
    let views = hub.objects::<ManagedClusterView>(own());
    let leases = hub.objects::<Lease>(own().fields(named(words::CLUSTER_LEASE)));
    let clusters = hub.objects::<ManagedCluster>(Selection::all().fields(named(&agent.name)));
    let ground = Ground {
        name: agent.name.clone(),
        client: agent.cluster.clone(),
        kinds: Arc::new(Kinds::default()),
        sight: Arc::new(Sight::default()),
        allowed: Arc::new(agent.allowed.clone()),
        clock: agent.clock.clone(),
        clusters: clusters.clone(),
        seen_id: Arc::default(),
    };
    ground.sight.follow(&Follower::Member, BTreeSet::from([Ground::identity()]));

    let hub_hash = settings.hub_hash.clone().unwrap_or_else(|| hash(&agent.name));
    let prefix = format!("{hub_hash}-");
    let name = agent.name.clone();
    let work_wiring = hub
        .controller(Works {
            ground: ground.clone(),
            works: works.clone(),
            records: records.clone(),
            hub_hash,
            failures: Failures::default(),
        })
        .woken_by(&works, |change: &Change<ManifestWork>| [change.key()])
        .woken_by(&records, move |change: &Change<AppliedManifestWork>| {
            let work = change.key().name.strip_prefix(&prefix).map(str::to_owned);
            work.map(|work| ObjectKey::new(name.clone(), work))
        });
    let view_wiring = hub
        .controller(Views { ground: ground.clone(), views: views.clone() })
        .woken_by(&views, |change: &Change<ManagedClusterView>| [change.key()]);
    let me = ObjectKey::cluster_wide(agent.name.clone());
    let my_lease = ObjectKey::new(agent.name.clone(), words::CLUSTER_LEASE);
    let membership = hub
        .controller(Membership { ground: ground.clone(), lease_seconds: settings.lease_seconds })
        .woken_by(&clusters, |change: &Change<ManagedCluster>| [change.key()]);
    membership.wake(me.clone());
    let lease_key = my_lease.clone();
    let beats =
        Heartbeat { ground: ground.clone(), leases: leases.clone(), answer_within: Duration::from_secs(5) };
    let heartbeat = hub
        .controller(beats)
        .woken_by(&leases, |change: &Change<Lease>| [change.key()])
        .woken_by(&clusters, move |_: &Change<ManagedCluster>| [lease_key.clone()]);
    heartbeat.wake(my_lease.clone());

    // Another cluster of our name, or the end of that, concerns every work and view.
    let (all_works, all_views) = (works.clone(), views.clone());
    let (wake_works, wake_views) = (work_wiring.clone(), view_wiring.clone());
    let everything = move || {
        all_works.all().iter().for_each(|work| wake_works.wake(ObjectKey::of(&**work)));
        all_views.all().iter().for_each(|view| wake_views.wake(ObjectKey::of(&**view)));
    };
    let everything = Arc::new(everything);
    let on_kinds = everything.clone();
    ground.kinds.listen(move || on_kinds());
    let on_claims = everything.clone();
    clusters.listen(move |change: &Change<ManagedCluster>| {
        let [old, new] = [&change.old, &change.new].map(|one| one.as_deref().and_then(ManagedCluster::id));
        if old != new {
            on_claims();
        }
    });
    let name = agent.name.clone();
    ground.sight.listen(move |follower| match follower {
        Follower::Work(work) => work_wiring.wake(ObjectKey::new(name.clone(), work.clone())),
        Follower::View(view) => view_wiring.wake(ObjectKey::new(name.clone(), view.clone())),
        Follower::Member => {
            membership.wake(me.clone());
            heartbeat.wake(my_lease.clone());
            everything();
        }
    });
    let records_known = cluster.listed();
    Running { hub, cluster, records_known, ground, feed: settings.engine.feed }
}

/// The name that the agent's writes and events carry.
const NAME: &str = "lifeboat-agent";

fn hash(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    digest.iter().take(8).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

impl Running {
    /// What is counted on the hub's side.
    pub fn metrics(&self) -> Metrics {
        self.hub.metrics()
    }

    /// Who waits for what.
    pub fn waits(&self) -> Waits {
        self.hub.waits()
    }

    /// Runs until `stop`: then nothing new is begun, and what is under way is finished. Dropping the future stops it at once, which is
    /// harmless.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { hub, cluster, mut records_known, ground, feed } = self;
        let kinds = ground.kinds.run(ground.client.clone(), feed.backoff);
        let sight = ground.sight.run(ground.client.clone(), feed);
        let serve = async {
            let stop = std::pin::pin!(stop);
            let mut stop = futures::FutureExt::fuse(stop);
            // A work that goes is let go when its record is empty; so first the records must be known.
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = records_known.wait() => {}
            }
            hub.run(stop).await;
        };
        tokio::select! {
            biased;
            () = serve => {}
            () = async { futures::join!(kinds, sight, cluster.run(std::future::pending())); } => {}
        }
    }
}
