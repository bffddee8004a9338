//! What a bare control plane does by itself: garbage collection, the life and death of namespaces, what every namespace
//! gets, the clean-up behind deleted definitions. One loop, woken by writes, that looks at the state and not at the
//! event; it makes the same writes a client could make.

mod garbage;
mod namespaces;

use crate::cluster::Cluster;
use crate::crd;
use crate::object::{self, Object};
use crate::store::{Entry, Event, EventKind, Key};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Bring a namespace to what its spec says.
    Namespace(String),
    /// Delete the instances of a deleted definition.
    Definition(String),
    /// Check the owners of an object, and its dependents when it is going.
    Object(Key),
}

/// The loop of one cluster.
pub struct Control {
    cluster: Arc<Cluster>,
    root_ca: String,
    tasks: BTreeSet<Task>,
}

impl Control {
    /// A control loop; `root_ca` is what every namespace is told to trust.
    pub fn new(cluster: Arc<Cluster>, root_ca: String) -> Self {
        Self { cluster, root_ca, tasks: BTreeSet::new() }
    }

    /// Runs until the cluster is dropped by everybody else, or the future is.
    pub async fn run(mut self) {
        let (existing, mut events) = self.cluster.store.observe();
        for entry in existing {
            self.enqueue_entry(&entry);
        }
        loop {
            while let Some(task) = self.tasks.pop_first() {
                self.perform(&task);
                while let Ok(event) = events.try_recv() {
                    self.enqueue(&event);
                }
                // One task at a time, so that requests are served in between.
                tokio::task::yield_now().await;
            }
            match events.recv().await {
                Some(event) => self.enqueue(&event),
                None => return,
            }
        }
    }

    fn enqueue(&mut self, event: &Event) {
        let key = &event.entry.key;
        if event.kind == EventKind::Deleted {
            let dependents = self.cluster.store.dependents(&event.entry.index.uid);
            self.tasks.extend(dependents.into_iter().map(Task::Object));
            // An owner that waits for its dependents hears of the last one going.
            for owner in &event.entry.index.owners {
                if let Some(owner) = self.cluster.store.by_uid(owner) {
                    self.tasks.insert(Task::Object(owner.key.clone()));
                }
            }
            if !key.namespace.is_empty() {
                self.wake_terminating(&key.namespace);
            }
            if &*key.collection != "namespaces"
                && let Some(definition) = self.definition_of(&key.collection)
            {
                self.tasks.insert(Task::Definition(definition));
            }
            return;
        }
        if let Some(before) = &event.before {
            // A dependent that stopped blocking, or that let go of an owner, may be what the owner waits for.
            for owner in &before.index.owners {
                if let Some(owner) = self.cluster.store.by_uid(owner) {
                    self.tasks.insert(Task::Object(owner.key.clone()));
                }
            }
        }
        self.enqueue_entry(&event.entry);
        if event.before.is_some() && !key.namespace.is_empty() {
            self.wake_terminating(&key.namespace);
        }
    }

    fn enqueue_entry(&mut self, entry: &Arc<Entry>) {
        let key = &entry.key;
        match &*key.collection {
            "namespaces" => {
                self.tasks.insert(Task::Namespace(key.name.to_string()));
            }
            crd::COLLECTION => {
                self.tasks.insert(Task::Definition(key.name.to_string()));
            }
            "serviceaccounts" | "configmaps" => self.wake_namespace_content(key),
            _ => {}
        }
        let owns = !self.cluster.store.dependents(&entry.index.uid).is_empty();
        if owns || !entry.index.owners.is_empty() || entry.index.deleting {
            self.tasks.insert(Task::Object(key.clone()));
        }
    }

    /// What every namespace gets is put back when somebody changes it.
    fn wake_namespace_content(&mut self, key: &Key) {
        if matches!(&*key.name, "default" | namespaces::ROOT_CA) {
            self.tasks.insert(Task::Namespace(key.namespace.to_string()));
        }
    }

    fn wake_terminating(&mut self, namespace: &str) {
        self.tasks.insert(Task::Namespace(namespace.to_owned()));
    }

    fn definition_of(&self, collection: &str) -> Option<String> {
        let known = self.cluster.store.get(crd::COLLECTION, "", collection)?;
        object::parse(&known.json).is_deleting().then(|| collection.to_owned())
    }

    fn perform(&self, task: &Task) {
        match task {
            Task::Namespace(name) => namespaces::tend(&self.cluster, name, &self.root_ca),
            Task::Definition(name) => self.tend_definition(name),
            Task::Object(key) => garbage::tend(&self.cluster, key),
        }
    }

    /// A deleted definition takes its instances along and goes last.
    fn tend_definition(&self, name: &str) {
        let Some(definition) = self.cluster.find(crd::COLLECTION, "", name) else { return };
        if !definition.is_deleting() || !definition.finalizers().contains(&crd::CLEANUP_FINALIZER) {
            return;
        }
        let Some(resource) = self.cluster.registry().of_collection(name).cloned() else {
            return self.cluster.release_definition(name);
        };
        namespaces::delete_all(&self.cluster, &resource, None);
        if self.cluster.store.count(name) == 0 {
            self.cluster.release_definition(name);
        }
    }
}
