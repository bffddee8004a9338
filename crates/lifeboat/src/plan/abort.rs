//! `lifeboat abort`: takes an action back as long as it can be taken back. The hub then brings the application to rest where it was.

use super::words;
use crate::cluster::Target;
use crate::status::{missing_on_hub, say};
use anyhow::Context as _;
use kube::api::Api;
use lifeboat_api::annotations::EPOCH_HOLDER;
use lifeboat_api::ramen::{DRAction, DRPlacementControl, DRState};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Options of `lifeboat abort`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 the application rests where it was, 1 the hub could not be reached, 2 wrong usage, \
                        3 it is not at rest yet, 4 there is nothing to take back, or it is too late, 5 there is no such application."
)]
pub struct Args {
    /// Name of the application's DRPlacementControl.
    name: String,
    /// Its namespace; that of the kubeconfig's context when not given.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// How long to follow it, such as 90s, 10m or 1h30m; a bare number is seconds.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = words::duration)]
    timeout: Duration,
    #[command(flatten)]
    target: Target,
}

/// Why an action cannot be taken back; nothing where it can.
fn too_late(drpc: &DRPlacementControl) -> Option<String> {
    let Some(action) = &drpc.spec.action else {
        return Some("no action is asked for".to_owned());
    };
    let target = match action {
        DRAction::Failover => drpc.spec.failover_cluster.as_deref(),
        _ => drpc.spec.preferred_cluster.as_deref(),
    };
    let target = target.unwrap_or("no cluster");
    let holder = drpc.metadata.annotations.as_ref().and_then(|all| all.get(EPOCH_HOLDER));
    let status = drpc.status.clone().unwrap_or_default();
    let rests = is_at_rest(&status.phase) && status.observed_generation >= drpc.metadata.generation;
    match holder {
        Some(holder) if holder == target && rests => {
            Some(format!("nothing is under way: the application runs on {target}"))
        }
        Some(holder) if holder == target => Some(format!(
            "the point of no return is passed: {target} is primary, and the {} goes forward; to go back, ask for the other cluster when it is done",
            action.as_str()
        )),
        _ => None,
    }
}

fn is_at_rest(phase: &Option<DRState>) -> bool {
    matches!(phase, Some(DRState::Deployed | DRState::FailedOver | DRState::Relocated))
}

/// Takes it back and waits until the application rests.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    super::runtime()?.block_on(abort(args))
}

async fn abort(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.target.config().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let api: Api<DRPlacementControl> = Api::namespaced(client.clone(), &namespace);
    let found = api.get_opt(&args.name).await.context("reading the DRPlacementControl; is this the hub?")?;
    let Some(drpc) = found else {
        let what = format!("DRPlacementControl {namespace}/{}", args.name);
        return missing_on_hub(&client, &what).await;
    };
    if let Some(why) = too_late(&drpc) {
        say(&format!("nothing was changed: {why}\n"))?;
        return Ok(ExitCode::from(4));
    }
    let Some(changed) = super::order(&api, drpc, &json!({"action": null}), None).await? else {
        say(
            "nothing was changed: somebody else changed the DRPlacementControl meanwhile; look and ask again\n",
        )?;
        return Ok(ExitCode::from(4));
    };
    let held = holder(&changed);
    match tokio::time::timeout(args.timeout, rest(&api, &changed)).await {
        Ok(Rest::Reached(on)) if on != held => {
            let on = on.unwrap_or_else(|| "no cluster".to_owned());
            say(&format!("it was too late: the action went forward, and the application runs on {on}\n"))?;
            Ok(ExitCode::from(4))
        }
        Ok(Rest::Reached(_)) => {
            say("the action is taken back; the application rests where it was\n")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Rest::Deleted) => {
            say(words::DELETED)?;
            Ok(ExitCode::from(3))
        }
        Err(_) => {
            say(
                "the action is taken back; the application is not at rest yet, `lifeboat status` tells why\n",
            )?;
            Ok(ExitCode::from(3))
        }
    }
}

/// The cluster that the application is meant to run on.
fn holder(drpc: &DRPlacementControl) -> Option<String> {
    drpc.metadata.annotations.as_ref()?.get(EPOCH_HOLDER).cloned()
}

/// How waiting for rest ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rest {
    /// The application rests on this cluster.
    Reached(Option<String>),
    /// The object that was changed is gone.
    Deleted,
}

/// Waits until the hub has brought the application to rest.
async fn rest(api: &Api<DRPlacementControl>, changed: &DRPlacementControl) -> Rest {
    let name = changed.metadata.name.clone().unwrap_or_default();
    loop {
        match api.get_opt(&name).await {
            Ok(Some(now)) if now.metadata.uid == changed.metadata.uid => {
                let on = holder(&now);
                let status = now.status.unwrap_or_default();
                if status.observed_generation >= changed.metadata.generation && is_at_rest(&status.phase) {
                    return Rest::Reached(on);
                }
            }
            Ok(_) => return Rest::Deleted,
            // A hub that does not answer is asked again.
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};

    #[tokio::test]
    async fn who_waits_for_rest_notices_that_the_object_is_gone() {
        let server = embedded::server();
        let api: Api<DRPlacementControl> = Api::default_namespaced(embedded::client(&server));
        let object = json!({
            "metadata": {"name": "web"}, "spec": {"placementRef": {}, "drPolicyRef": {}, "pvcSelector": {}},
        });
        let object = serde_json::from_value(object).unwrap();
        let made = api.create(&PostParams::default(), &object).await.unwrap();
        let status = json!({"status": {"phase": "Deployed", "observedGeneration": made.metadata.generation}});
        api.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        assert_eq!(rest(&api, &made).await, Rest::Reached(None));
        api.delete("web", &DeleteParams::default()).await.unwrap();
        assert_eq!(rest(&api, &made).await, Rest::Deleted);
        api.create(&PostParams::default(), &object).await.unwrap();
        assert_eq!(rest(&api, &made).await, Rest::Deleted, "another one of the name");
    }

    #[test]
    fn what_has_changed_its_holder_goes_forward() {
        let drpc = |action: Option<&str>, holder: &str, phase: &str| -> DRPlacementControl {
            serde_json::from_value(json!({
                "metadata": {"name": "web", "generation": 2, "annotations": {EPOCH_HOLDER: holder}},
                "spec": {
                    "action": action, "failoverCluster": "west", "preferredCluster": "west",
                    "placementRef": {}, "drPolicyRef": {}, "pvcSelector": {},
                },
                "status": {"phase": phase, "observedGeneration": 2},
            }))
            .unwrap()
        };
        let check = |rule: &str, drpc: DRPlacementControl, part: Option<&str>| {
            let found = too_late(&drpc);
            match part {
                None => assert_eq!(found, None, "{rule}"),
                Some(part) => {
                    assert!(found.as_deref().is_some_and(|why| why.contains(part)), "{rule}: {found:?}");
                }
            }
        };
        check("the last copy is being made", drpc(Some("Relocate"), "east", "Relocating"), None);
        check("the target is not ready", drpc(Some("Failover"), "east", "FailingOver"), None);
        check("roles have changed", drpc(Some("Relocate"), "west", "Relocating"), Some("point of no return"));
        check("it is done", drpc(Some("Failover"), "west", "FailedOver"), Some("nothing is under way"));
        check("nobody asked", drpc(None, "east", "Deployed"), Some("no action"));
    }
}
