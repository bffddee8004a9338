//! The kinds of the cluster, from its discovery. Read at the start and whenever a definition comes, changes or goes.
//!
//! What could not be read is not taken for absent: a group whose answer is missing keeps what was known of it, and a kind of a group
//! that never answered is unclear.

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, watcher};
use lifeboat_api::work::ResourceIdentifier;
use lifeboat_engine::Backoff;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::pin;
use tokio::sync::Notify;

/// One kind of a cluster, in one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind, such as `Pod`.
    pub kind: String,
    /// Resource, such as `pods`.
    pub resource: String,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// Namespaces, which every cluster has.
    pub fn namespace() -> Self {
        Self {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            resource: "namespaces".to_owned(),
            namespaced: false,
        }
    }

    /// Group and version as `apiVersion` has them.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.resource.clone(),
        }
    }

    /// The resource with its group, as error messages of an API server name it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// One object of a cluster, which may exist or not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, empty for cluster-wide kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Target {
    /// The namespace of this name.
    pub fn namespace(name: &str) -> Self {
        Self { kind: Kind::namespace(), namespace: String::new(), name: name.to_owned() }
    }

    pub(crate) fn api(&self, client: &kube::Client) -> Api<DynamicObject> {
        let resource = self.kind.api_resource();
        if self.namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), &self.namespace, &resource)
        }
    }

    /// Its namespace and name.
    pub(crate) fn place(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// The same object, as works name it.
    pub fn identifier(&self) -> ResourceIdentifier {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ResourceIdentifier {
            group: text(&self.kind.group),
            resource: self.kind.resource.clone(),
            name: self.name.clone(),
            namespace: text(&self.namespace),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.qualified())?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// What is known about a kind that somebody named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The cluster has it.
    Kind(Kind),
    /// The cluster does not have it.
    None,
    /// The cluster could not be asked yet.
    Unclear,
}

#[derive(Debug, Default)]
struct Table {
    read: bool,
    /// Kinds by group and version, those of the preferred version first within their group.
    groups: BTreeMap<String, Vec<Kind>>,
    silent: BTreeSet<String>,
}

type Listener = Box<dyn Fn() + Send + Sync>;

/// The kinds of a cluster.
#[derive(Default)]
pub struct Kinds {
    table: RwLock<Table>,
    listeners: Mutex<Vec<Listener>>,
}

impl Kinds {
    /// Calls this whenever the kinds have changed.
    pub fn listen(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// Whether the cluster's kinds are known.
    pub fn known(&self) -> bool {
        self.table.read().read
    }

    /// The kind of a manifest.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Found {
        self.find(Some(group), |row| row.version == version && row.kind == kind)
    }

    /// The kind of a resource, in this version or, should that be served no more, in another.
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Found {
        match self.find(Some(group), |row| row.version == version && row.resource == resource) {
            Found::None => self.find(Some(group), |row| row.resource == resource),
            found => found,
        }
    }

    /// The kind that people mean by `pods`, `pod`, `Pod`, `deployments.apps` or `deployments.v1.apps`.
    pub fn named(&self, text: &str) -> Found {
        let means = |row: &Kind, word: &str| {
            let word = word.to_lowercase();
            row.resource == word || row.kind.to_lowercase() == word
        };
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        if let [resource, version, group] = parts[..]
            && let Found::Kind(kind) =
                self.find(Some(group), |row| row.version == version && means(row, resource))
        {
            return Found::Kind(kind);
        }
        match text.split_once('.') {
            Some((resource, group)) => self.find(Some(group), |row| means(row, resource)),
            None => self.find(None, |row| means(row, text)),
        }
    }

    fn find(&self, group: Option<&str>, wanted: impl Fn(&Kind) -> bool) -> Found {
        let table = self.table.read();
        let unclear = match group {
            Some(group) => table.silent.contains(group),
            None => !table.silent.is_empty(),
        };
        let rows = table.groups.iter().filter(|(name, _)| group.is_none_or(|group| group == *name));
        match rows.flat_map(|(_, rows)| rows).find(|row| wanted(row)) {
            Some(kind) => Found::Kind(kind.clone()),
            None if unclear || !table.read => Found::Unclear,
            None => Found::None,
        }
    }

    /// Keeps the table until dropped.
    pub async fn run(&self, client: kube::Client, backoff: Backoff) {
        let news = Notify::new();
        news.notify_one();
        futures::join!(watch(&client, &news, backoff), self.keep(&client, &news, backoff));
    }

    async fn keep(&self, client: &kube::Client, news: &Notify, backoff: Backoff) {
        let mut failures = 0;
        loop {
            // However many definitions came meanwhile, one reading tells of all.
            if failures == 0 {
                news.notified().await;
            }
            if self.read(client).await {
                failures = 0;
            } else {
                failures += 1;
                tokio::time::sleep(backoff.after(failures)).await;
            }
        }
    }

    /// Reads all groups; false if something was not answered.
    async fn read(&self, client: &kube::Client) -> bool {
        let groups = match client.list_api_groups().await {
            Ok(groups) => groups.groups,
            Err(error) => {
                tracing::warn!(%error, "the cluster's kinds cannot be read");
                return false;
            }
        };
        let mut wanted: Vec<(String, Vec<String>)> = vec![(String::new(), vec!["v1".to_owned()])];
        for group in groups {
            let preferred = group.preferred_version.map(|preferred| preferred.version);
            let mut versions: Vec<String> = group.versions.into_iter().map(|row| row.version).collect();
            versions.sort_by_key(|version| Some(version) != preferred.as_ref());
            wanted.push((group.name, versions));
        }
        let read = wanted.iter().map(|(group, versions)| async move {
            (group.clone(), read_group(client, group, versions).await)
        });
        let read = futures::future::join_all(read).await;
        let whole = read.iter().all(|(_, rows)| rows.is_ok());
        let changed = {
            let mut table = self.table.write();
            let mut groups = BTreeMap::new();
            let mut silent = BTreeSet::new();
            for (group, rows) in read {
                match rows {
                    Ok(rows) => drop(groups.insert(group, rows)),
                    Err(error) => {
                        tracing::warn!(group, %error, "the kinds of a group cannot be read");
                        if let Some(known) = table.groups.remove(&group) {
                            groups.insert(group.clone(), known);
                        }
                        silent.insert(group);
                    }
                }
            }
            let changed = !table.read || table.groups != groups || table.silent != silent;
            *table = Table { read: true, groups, silent };
            changed
        };
        if changed {
            self.listeners.lock().iter().for_each(|listener| listener());
        }
        whole
    }
}

async fn read_group(
    client: &kube::Client,
    group: &str,
    versions: &[String],
) -> Result<Vec<Kind>, kube::Error> {
    let mut kinds = Vec::new();
    for version in versions {
        let list = if group.is_empty() {
            client.list_core_api_resources(version).await?
        } else {
            client.list_api_group_resources(&format!("{group}/{version}")).await?
        };
        let whole = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
        kinds.extend(whole.map(|resource| Kind {
            group: group.to_owned(),
            version: version.clone(),
            kind: resource.kind,
            resource: resource.name,
            namespaced: resource.namespaced,
        }));
    }
    Ok(kinds)
}

/// Tells of every change of a definition.
async fn watch(client: &kube::Client, news: &Notify, backoff: Backoff) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let mut events = pin!(watcher(api, watcher::Config::default()));
    let mut failures = 0;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => failures = 0,
            Ok(_) => news.notify_one(),
            Err(error) => {
                failures += 1;
                tracing::debug!(%error, "definitions cannot be watched");
                tokio::time::sleep(backoff.after(failures)).await;
            }
        }
    }
}
