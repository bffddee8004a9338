//! What is at work in a cluster: the controllers that a bare API server lacks, and those that make it a member of a fleet.

use super::fleet::{Part, Surroundings};
use super::storage;
use crate::hub::Membership;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use lifeboat_api::conditions::fleet::IDENTITY_NAMESPACE;
use lifeboat_binder::Neighbours;
use lifeboat_engine::{Clock, Settings};
use lifeboat_fleet::{Agent, AgentSettings, Allowed};
use lifeboat_runner::subscribe;
use lifeboat_store::Directory;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Runs until it is dropped.
pub async fn work(client: kube::Client, around: Surroundings) {
    let mut tasks = JoinSet::new();
    let name = around.name.clone();
    if around.runs(Part::Binder) {
        let engine = lifeboat_binder::engine(
            client.clone(),
            Clock::system(),
            crate::binder::settings(),
            Neighbours::Here,
        );
        tasks.spawn(engine.run(std::future::pending()));
    }
    // One part that cannot start leaves the others to work, and says why.
    let told = |what: &str, error: &anyhow::Error| {
        let _ = crate::status::say(&format!("  {name} has no {what}: {error:#}\n"));
    };
    if around.runs(Part::Storage) {
        match storage::parts(&client, &around).await {
            Ok(parts) => parts.into_iter().for_each(|part| drop(tasks.spawn(part))),
            Err(error) => told("storage", &error),
        }
    }
    if around.runs(Part::Store)
        && let Some(error) = store(&around, &mut tasks).err()
    {
        told("object store", &error);
    }
    if around.runs(Part::Protector)
        && let Some(error) = protector(&client, &mut tasks).await.err()
    {
        told("protector", &error);
    }
    if around.runs(Part::Agent)
        && let Some(error) = agent(&client, &around, &mut tasks).await.err()
    {
        told("agent", &error);
    }
    match (around.runs(Part::Hub), around.runs(Part::Membership)) {
        (true, here) => {
            let membership = if here { Membership::Here } else { Membership::Elsewhere };
            let namespace = super::hubside::NAMESPACE.to_owned();
            tasks.spawn(crate::hub::serve(client, namespace, membership, CancellationToken::new()));
        }
        (false, true) => {
            let engine = lifeboat_fleet::availability(client, Clock::system(), Settings::default());
            tasks.spawn(engine.run(std::future::pending()));
        }
        (false, false) => {}
    }
    while let Some(ended) = tasks.join_next().await {
        if ended.is_err_and(|error| error.is_panic()) {
            let _ =
                crate::status::say(&format!("  a controller of {name} panicked; it is not started again\n"));
        }
    }
}

/// The object store of a site: it lives and dies with its cluster.
fn store(around: &Surroundings, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let Some(store) = &around.store else { return Ok(()) };
    let folder = around.home.join("objects").join(&around.name);
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let listener = std::net::TcpListener::bind(store.address).context("listening")?;
    listener.set_nonblocking(true).context("listening")?;
    let listener = tokio::net::TcpListener::from_std(listener).context("listening")?;
    let content: Arc<dyn lifeboat_s3::Content> = Arc::new(Directory::new(folder));
    let service = lifeboat_s3::service(BTreeMap::from([(around.name.clone(), content)]), &store.credentials);
    tasks.spawn(lifeboat_s3::serve(listener, service));
    Ok(())
}

async fn protector(client: &kube::Client, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = loop {
        // Made by the server's own control loop, a moment after the server.
        if let Some(system) =
            namespaces.get_opt(IDENTITY_NAMESPACE).await.context("reading the cluster's identity")?
        {
            break system;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let setup = lifeboat_protect::view::Setup {
        namespace: super::hubside::NAMESPACE.to_owned(),
        cluster: system.metadata.uid.unwrap_or_default(),
        only: None,
    };
    tasks.spawn(crate::protector::serve(client.clone(), setup, CancellationToken::new()));
    Ok(())
}

/// The agent of the fleet, and what brings applications: both look at the hub from here.
async fn agent(client: &kube::Client, around: &Surroundings, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let Some(hub) = &around.hub else { return Ok(()) };
    let agent = Agent {
        hub: hub.agent.client().await?,
        cluster: client.clone(),
        name: around.name.clone(),
        clock: Clock::system(),
        settings: AgentSettings { lease_seconds: around.lease_seconds, ..AgentSettings::default() },
        allowed: if around.led_by_others { Allowed::default().for_ramen() } else { Allowed::default() },
    };
    tasks.spawn(lifeboat_fleet::agent(agent).run(std::future::pending()));
    let settings = AgentSettings::default().engine;
    let (engine, view) = subscribe::hub_view(hub.reader.client().await?, Clock::system(), settings);
    let subscriber = subscribe::subscriber(&view, &around.name, client.clone(), Clock::system(), settings);
    tasks.spawn(engine.run(std::future::pending()));
    tasks.spawn(subscriber.run(std::future::pending()));
    Ok(())
}
