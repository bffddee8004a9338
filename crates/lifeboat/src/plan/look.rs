//! Reads from the hub what its own controller decides on.

use anyhow::Context as _;
use lifeboat_engine::{Clock, ObjectKey};
use lifeboat_hub::drpc::world::World;
use std::time::Duration;

/// The world of a DRPlacementControl; `None` where there is none of the name.
pub async fn world(client: &kube::Client, key: &ObjectKey) -> anyhow::Result<Option<World>> {
    Ok(look(client, Some(key.clone())).await?.pop())
}

/// The worlds of all DRPlacementControls.
pub async fn worlds(client: &kube::Client) -> anyhow::Result<Vec<World>> {
    look(client, None).await
}

async fn look(client: &kube::Client, of: Option<ObjectKey>) -> anyhow::Result<Vec<World>> {
    let kinds = lifeboat_hub::drpc::kinds(client)
        .await
        .context("reading the hub; --context names another cluster")?;
    let look = lifeboat_hub::drpc::glance::look(client.clone(), Clock::system(), kinds, of);
    let looked = tokio::time::timeout(Duration::from_secs(30), look).await;
    looked.context("the hub did not show everything within 30 seconds; are its definitions installed?")
}
