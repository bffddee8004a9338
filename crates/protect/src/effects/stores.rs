//! Handing work to the clerk: with the keys of a store, which are read anew for every piece of work, so that new ones are used at once.

use crate::decide::records::record;
use crate::ledger::{Credentials, Orphan, Record, Store};
use crate::view::Groups;
use crate::words::{GroupWords as _, Words as _};
use crate::world::World;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use lifeboat_engine::{Class, EffectError, ObjectKey};
use std::collections::BTreeSet;

/// Where the keys are in a store's secret.
const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";

impl Groups {
    fn now_world(&self, key: &ObjectKey) -> Result<World, EffectError> {
        self.world(key, None).ok_or_else(|| super::stale(format!("VolumeReplicationGroup {key} is gone")))
    }

    /// A store and its keys; why not, in words that name no key.
    async fn store(&self, world: &World, name: &str) -> Result<Store, String> {
        let Some(profile) = world.config.profiles.get(name).cloned() else {
            return Err(world.config.missing(name).unwrap_or_default());
        };
        store(&self.client, &self.setup.namespace, profile).await
    }

    fn own_record(&self, world: &World) -> Record {
        Record { cluster: self.setup.cluster.clone(), ..record(world) }
    }

    pub(super) async fn keep(
        &self,
        key: &ObjectKey,
        names: Vec<String>,
        verify: bool,
    ) -> Result<(), EffectError> {
        let world = self.now_world(key)?;
        let record = self.own_record(&world);
        let mut stores = Vec::new();
        for name in names {
            match self.store(&world, &name).await {
                Ok(store) => stores.push(store),
                Err(why) => self.desk.cannot(key, &name, &record, why, self.clock.now()),
            }
        }
        self.desk.keep(key, stores, record, verify);
        Ok(())
    }

    pub(super) async fn erase(&self, key: &ObjectKey, name: &str, epoch: i64) -> Result<(), EffectError> {
        let world = self.now_world(key)?;
        match self.store(&world, name).await {
            Ok(store) => self.desk.erase(key, store, self.setup.cluster.clone(), fleet(&world), epoch),
            Err(why) => self.desk.cannot(key, name, &self.own_record(&world), why, self.clock.now()),
        }
        Ok(())
    }

    pub(super) async fn mark_orphan(
        &self,
        key: &ObjectKey,
        name: &str,
        epoch: i64,
        volumes: BTreeSet<String>,
    ) -> Result<(), EffectError> {
        let world = self.now_world(key)?;
        let uid = world.group.uid().to_owned();
        match self.store(&world, name).await {
            Ok(store) => {
                let orphan = Orphan { epoch, cluster: self.setup.cluster.clone(), uid, volumes };
                self.desk.orphan(key, store, fleet(&world), orphan);
            }
            Err(why) => self.desk.cannot(key, name, &self.own_record(&world), why, self.clock.now()),
        }
        Ok(())
    }

    pub(super) async fn read_stores(&self, key: &ObjectKey, question: String) -> Result<(), EffectError> {
        let world = self.now_world(key)?;
        let mut stores = Vec::new();
        let mut missing = Vec::new();
        for name in world.store_names() {
            match self.store(&world, &name).await {
                Ok(store) => stores.push(store),
                Err(why) => missing.push((name, why)),
            }
        }
        self.desk.read(key, stores, missing, fleet(&world), question);
        Ok(())
    }
}

fn fleet(world: &World) -> Option<String> {
    world.group.fleet().map(str::to_owned)
}

/// A store and the keys to it, read from its secret.
pub(crate) async fn store(
    client: &kube::Client,
    namespace: &str,
    profile: crate::settings::Profile,
) -> Result<Store, String> {
    let space = match profile.secret.namespace.as_str() {
        "" => namespace,
        named => named,
    };
    let (name, of) = (profile.secret.name.clone(), &profile.name);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), space);
    let secret = match secrets.get_opt(&name).await {
        Ok(Some(secret)) => secret,
        Ok(None) => return Err(format!("the secret {space}/{name} of the store {of} does not exist")),
        Err(error) => {
            let error =
                EffectError::caused(Class::Transient, format!("reading the secret {space}/{name}"), error);
            return Err(error.sentence());
        }
    };
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key)).map(|bytes| bytes.0.clone());
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned())
    };
    match (text(ACCESS_KEY), text(SECRET_KEY)) {
        (Some(access_key), Some(secret_key)) => {
            Ok(Store { profile, credentials: Credentials { access_key, secret_key } })
        }
        _ => Err(format!("the secret {space}/{name} of the store {of} has no {ACCESS_KEY} and {SECRET_KEY}")),
    }
}
