//! Several embedded clusters that know each other: one may be the hub, the others its members.

use super::site::{Door, Site, Work};
use super::{hubside, managed};
use anyhow::{Context as _, bail};
use lifeboat_apiserver::serve::{kubeconfig, write_private};
use lifeboat_apiserver::{User, auth::TokenKey};
use lifeboat_s3::Credentials;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Something that works in a cluster unless it is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Part {
    /// Binds claims to volumes and keeps what is in use from being deleted.
    Binder,
    /// Makes volumes, snapshots and backups on one node, whose disks are a folder.
    Storage,
    /// Copies volumes between clusters, in the place of VolSync. Needs the storage.
    Mover,
    /// Mirrors volumes between two clusters, behind VolumeReplication. Needs the storage.
    Mirror,
    /// Starts the pods of Deployments as processes of this machine. Needs the storage.
    Runner,
    /// Protects applications' volumes.
    Protector,
    /// An S3 server for the records of a site.
    Store,
    /// Joins the hub, carries what it sends, and brings applications that are placed on the cluster.
    Agent,
    /// Lets clusters in and says which are silent; on the hub only.
    Membership,
    /// Decides where applications run; on the hub only. Without it another operator may, such as Ramen's.
    Hub,
}

/// What runs in the hub of a fleet.
const LEADER: [Part; 4] = [Part::Binder, Part::Storage, Part::Membership, Part::Hub];
/// What runs in members of a fleet.
const MEMBER: [Part; 8] = [
    Part::Binder,
    Part::Storage,
    Part::Mover,
    Part::Mirror,
    Part::Runner,
    Part::Protector,
    Part::Store,
    Part::Agent,
];

/// An object store of a site.
#[derive(Clone)]
pub struct Store {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who may come in.
    pub credentials: Credentials,
}

/// The mirrors of two members.
#[derive(Clone)]
pub struct MirrorPair {
    /// Where this one listens.
    pub listen: SocketAddr,
    /// Where the other does.
    pub peer: SocketAddr,
    /// The key that they share.
    pub key: String,
    /// What they call their relation.
    pub relation: String,
}

/// How a member gets to its hub.
#[derive(Clone)]
pub struct ToHub {
    /// As the cluster's agent, which may see its own namespace only.
    pub agent: Door,
    /// As whoever brings applications, and reads placements and manifests.
    pub reader: Door,
}

/// What a cluster is told about itself and the others.
#[derive(Clone)]
pub struct Surroundings {
    /// Its name.
    pub name: String,
    /// Its folder, for disks, logs and state.
    pub home: PathBuf,
    /// What runs in it.
    pub parts: BTreeSet<Part>,
    /// Its object store.
    pub store: Option<Store>,
    /// Its mirror, where there is one other member.
    pub mirror: Option<MirrorPair>,
    /// The hub.
    pub hub: Option<ToHub>,
    /// The other members.
    pub peers: Vec<Door>,
    /// How often its lease is renewed.
    pub lease_seconds: i32,
    /// How often its storage mirrors.
    pub interval: String,
    /// Whether the hub's decisions are another operator's.
    pub led_by_others: bool,
}

impl Surroundings {
    /// Whether a part runs.
    pub fn runs(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

/// What a fleet is to be.
pub struct Plan {
    /// Names of the clusters.
    pub names: Vec<String>,
    /// Which of them is the hub.
    pub hub: Option<String>,
    /// A folder for everything.
    pub home: PathBuf,
    /// Whether the clusters' objects are kept there too.
    pub keep: bool,
    /// Address of the first cluster; port 0 picks free ones.
    pub listen: SocketAddr,
    /// Parts that are left out.
    pub without: BTreeSet<Part>,
    /// No definitions and no parts.
    pub bare: bool,
    /// How often leases are renewed.
    pub lease_seconds: i32,
    /// How often applications are copied.
    pub interval: String,
}

/// A fleet that runs, or of which some clusters run.
pub struct Fleet {
    plan: Plan,
    sites: Vec<Site>,
    around: BTreeMap<String, Surroundings>,
    definitions: Vec<serde_json::Value>,
}

impl Fleet {
    /// Starts all clusters, then what works in them.
    pub async fn start(plan: Plan) -> anyhow::Result<Self> {
        let definitions = if plan.bare { Vec::new() } else { definitions()? };
        let mut sites = Vec::new();
        for (number, name) in plan.names.iter().enumerate() {
            let mut address = plan.listen;
            if address.port() != 0 {
                let port = usize::from(address.port()) + number;
                address
                    .set_port(u16::try_from(port).context("too many clusters for the ports after --listen")?);
            }
            let folder = plan.keep.then(|| plan.home.join(name));
            sites.push(
                Site::new(name, folder.as_deref(), address)
                    .with_context(|| format!("starting cluster {name}"))?,
            );
        }
        let mut fleet = Self { plan, sites, around: BTreeMap::new(), definitions };
        let mut waiting = Vec::new();
        for site in &mut fleet.sites {
            let give = site.start(&fleet.definitions)?;
            waiting.push((site.name.clone(), give));
        }
        if fleet.plan.bare {
            return Ok(fleet);
        }
        fleet.introduce()?;
        for (name, give) in waiting {
            // Nobody takes it where the cluster has ended meanwhile.
            let _ = give.send(fleet.work(&name)?);
        }
        if let Some(hub) = fleet.leader() {
            fleet.furnish(&fleet.client(hub).await?).await?;
        }
        Ok(fleet)
    }

    /// The hub, where this fleet's own software leads it.
    fn leader(&self) -> Option<&str> {
        self.plan.hub.as_deref().filter(|_| !self.plan.without.contains(&Part::Membership))
    }

    async fn furnish(&self, hub: &kube::Client) -> anyhow::Result<()> {
        let (lease_seconds, interval) = (self.plan.lease_seconds, &self.plan.interval);
        hubside::furnish(hub, &self.stores(), lease_seconds, interval).await.context("furnishing the hub")
    }

    /// Gives a hub that has lost everything what it began with. One that has its objects keeps what people changed in them.
    pub async fn furnish_anew(&self, name: &str) -> anyhow::Result<()> {
        if self.leader() != Some(name) {
            return Ok(());
        }
        let hub = self.client(name).await?;
        match hubside::is_furnished(&hub).await? {
            true => Ok(()),
            false => self.furnish(&hub).await,
        }
    }

    /// Tells every cluster who the others are.
    fn introduce(&mut self) -> anyhow::Result<()> {
        let hub = self.plan.hub.clone();
        let keys = Credentials { access_key: "lifeboat".to_owned(), secret_key: self.secret("store-key")? };
        let mirrors = self.mirrors()?;
        for site in &self.sites {
            let is_hub = hub.as_ref() == Some(&site.name);
            let wanted: BTreeSet<Part> = if is_hub { LEADER.into() } else { MEMBER.into() };
            let mut parts: BTreeSet<Part> = wanted.difference(&self.plan.without).copied().collect();
            if hub.is_none() {
                parts.retain(|part| !matches!(part, Part::Agent | Part::Store));
            }
            let store = match parts.contains(&Part::Store) {
                true => Some(Store { address: free_port()?, credentials: keys.clone() }),
                false => None,
            };
            let to_hub = match self.sites.iter().find(|one| !is_hub && hub.as_ref() == Some(&one.name)) {
                Some(hub) => {
                    let group = lifeboat_fleet::access::group(&site.name);
                    let user = User::new(&lifeboat_fleet::access::user(&site.name), &[&group]);
                    Some(ToHub { agent: hub.door_for(&user)?, reader: hub.door()? })
                }
                None => None,
            };
            let others =
                self.sites.iter().filter(|one| one.name != site.name && hub.as_ref() != Some(&one.name));
            let around = Surroundings {
                name: site.name.clone(),
                home: self.plan.home.join(&site.name),
                parts,
                store,
                mirror: mirrors.get(&site.name).cloned(),
                hub: to_hub,
                peers: others.map(Site::door).collect::<anyhow::Result<_>>()?,
                lease_seconds: self.plan.lease_seconds,
                interval: self.plan.interval.clone(),
                led_by_others: self.plan.without.contains(&Part::Hub),
            };
            self.around.insert(site.name.clone(), around);
        }
        Ok(())
    }

    fn work(&self, name: &str) -> anyhow::Result<Work> {
        let around = self.around.get(name).cloned().context("invariant: every cluster was introduced")?;
        Ok(Box::new(move |client| Box::pin(managed::work(client, around))))
    }

    /// A pair of mirrors, where there are two members.
    fn mirrors(&self) -> anyhow::Result<BTreeMap<String, MirrorPair>> {
        let is_member = |site: &&Site| self.plan.hub.as_ref() != Some(&site.name);
        let members: Vec<&Site> = self.sites.iter().filter(is_member).collect();
        let [one, other] = members.as_slice() else { return Ok(BTreeMap::new()) };
        let (here, there) = (free_port()?, free_port()?);
        let key = format!("lifeboat:{}", self.secret("mirror-key")?);
        let relation = format!("{}-{}", one.name, other.name);
        let pair = |listen, peer| MirrorPair { listen, peer, key: key.clone(), relation: relation.clone() };
        Ok([(one.name.clone(), pair(here, there)), (other.name.clone(), pair(there, here))].into())
    }

    /// Thirty-two bytes of chance in hexadecimal digits, the same for as long as the fleet is kept.
    fn secret(&self, name: &str) -> anyhow::Result<String> {
        let path = self.plan.home.join(name);
        if let Ok(secret) = std::fs::read_to_string(&path) {
            return Ok(secret);
        }
        let chance = TokenKey::generate()?;
        let tail = &chance[chance.len().saturating_sub(32)..];
        let secret: String = tail.iter().map(|byte| format!("{byte:02x}")).collect();
        write_private(&path, secret.as_bytes())?;
        Ok(secret)
    }

    fn stores(&self) -> BTreeMap<String, Store> {
        let stores =
            self.around.iter().filter_map(|(name, around)| Some((name.clone(), around.store.clone()?)));
        stores.collect()
    }

    fn site(&mut self, name: &str) -> anyhow::Result<&mut Site> {
        self.sites
            .iter_mut()
            .find(|site| site.name == name)
            .with_context(|| format!("there is no cluster {name}"))
    }

    /// A client of a cluster, over HTTPS as anybody has one.
    pub async fn client(&self, name: &str) -> anyhow::Result<kube::Client> {
        let site = self.sites.iter().find(|site| site.name == name);
        site.with_context(|| format!("there is no cluster {name}"))?.door()?.client().await
    }

    /// The folder of a cluster.
    pub fn home(&self, name: &str) -> PathBuf {
        self.plan.home.join(name)
    }

    /// The clusters, in order.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Whether a cluster runs.
    pub fn is_running(&self, name: &str) -> anyhow::Result<bool> {
        let site = self.sites.iter().find(|site| site.name == name);
        Ok(site.with_context(|| format!("there is no cluster {name}"))?.is_running())
    }

    /// Kills a cluster: its server, its controllers, its store and its processes.
    pub fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.site(name)?.kill();
        Ok(())
    }

    /// Brings a killed cluster back, with the disks and the objects it had.
    pub fn revive(&mut self, name: &str) -> anyhow::Result<()> {
        if !self.plan.keep {
            bail!("invariant: a cluster that is not kept cannot come back");
        }
        let definitions = self.definitions.clone();
        let give = self.site(name)?.start(&definitions)?;
        let _ = give.send(self.work(name)?);
        Ok(())
    }

    /// Writes a kubeconfig with a context for each cluster.
    pub fn write_kubeconfig(&self, path: &Path) -> anyhow::Result<()> {
        let contexts: Vec<_> = self.sites.iter().map(Site::context).collect();
        let yaml = serde_saphyr::to_string(&kubeconfig(&contexts)).context("writing the kubeconfig")?;
        write_private(path, yaml.as_bytes())?;
        Ok(())
    }

    /// Ends all clusters in order.
    pub fn stop(&mut self) {
        std::thread::scope(|scope| {
            for site in &mut self.sites {
                scope.spawn(|| site.stop());
            }
        });
    }
}

fn free_port() -> anyhow::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("finding a free port")?;
    listener.local_addr().context("finding a free port")
}

fn definitions() -> anyhow::Result<Vec<serde_json::Value>> {
    let values: Result<_, _> = lifeboat_api::crds_json().map(serde_json::from_str).collect();
    values.context("reading Lifeboat's definitions")
}
