//! `lifeboat protect`: protect an application that a placement deploys, by making its DRPlacementControl on the hub.

use crate::cluster::Target;
use crate::status::{Format, missing, say};
use anyhow::{Context as _, bail};
use kube::api::{Api, ListParams, PostParams};
use lifeboat_api::annotations::SCHEDULING_DISABLE;
use lifeboat_api::cluster::Placement;
use lifeboat_api::conditions::drpolicy::TYPE_VALIDATED;
use lifeboat_api::ramen::{DRPlacementControl, DRPolicy};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Options of `lifeboat protect`.
#[derive(clap::Args)]
#[command(after_help = "Exit code: 0 its protection begins, 1 the hub could not be reached, 2 wrong usage, \
                        4 it could not work or is something else's, and nothing was made, \
                        5 there is no such policy or placement.")]
pub struct Args {
    /// Name to protect the application under.
    name: String,
    /// Namespace of the application's placement; that of the kubeconfig's context when not given.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// The DRPolicy.
    #[arg(long, value_name = "NAME")]
    policy: String,
    /// The Placement that deploys the application; the name given when not given.
    #[arg(long, value_name = "NAME")]
    placement: Option<String>,
    /// Labels of the claims to protect, as KEY=VALUE with commas; all claims of the namespace when not given.
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    claims: Vec<String>,
    /// The cluster that the application is at home on; the policy's first when not given.
    #[arg(long, value_name = "CLUSTER")]
    on: Option<String>,
    /// Copy every claim with a mover, though the storage could mirror it.
    #[arg(long)]
    by_mover: bool,
    /// Only print the object.
    #[arg(long)]
    dry_run: bool,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    target: Target,
}

/// Makes the object.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(protect(args))
}

/// Labels from `KEY=VALUE`.
pub fn labels(given: &[String]) -> anyhow::Result<Value> {
    let mut labels = serde_json::Map::new();
    for one in given {
        match one.split_once('=') {
            Some((key, value)) if !key.is_empty() => drop(labels.insert(key.to_owned(), json!(value))),
            _ => bail!("{one:?} is no label; write KEY=VALUE"),
        }
    }
    Ok(Value::Object(labels))
}

async fn protect(args: &Args) -> anyhow::Result<ExitCode> {
    let selected = labels(&args.claims)?;
    let config = args.target.config().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let policies: Api<DRPolicy> = Api::all(client.clone());
    let policy = policies.get_opt(&args.policy).await;
    let Some(policy) = policy.context("reading DRPolicies; is this the hub?")? else {
        return missing(&format!("DRPolicy {}", args.policy));
    };
    let placement = args.placement.clone().unwrap_or_else(|| args.name.clone());
    let placements: Api<Placement> = Api::namespaced(client.clone(), &namespace);
    let Some(found) = placements.get_opt(&placement).await.context("reading Placements")? else {
        return missing(&format!("Placement {namespace}/{placement}"));
    };
    let drpcs: Api<DRPlacementControl> = Api::namespaced(client, &namespace);
    let others = drpcs.list(&ListParams::default()).await.context("reading DRPlacementControls")?;
    if let Err(why) = may_protect(&args.name, &policy, &found, &others.items) {
        say(&format!("{why}\n"))?;
        return Ok(ExitCode::from(4));
    }
    let clusters = &policy.spec.dr_clusters;
    let Some(home) = args.on.as_ref().or(clusters.first()) else {
        bail!("policy {} names no cluster", args.policy)
    };
    if !clusters.contains(home) {
        say(&format!("policy {} protects {}, not {home}\n", args.policy, clusters.join(" and ")))?;
        return Ok(ExitCode::from(4));
    }
    let notes =
        if args.by_mover { json!({lifeboat_api::annotations::USE_VOLSYNC: "true"}) } else { json!({}) };
    let object = json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPlacementControl",
        "metadata": {"name": args.name, "namespace": namespace, "annotations": notes},
        "spec": {
            "placementRef": {"kind": "Placement", "name": placement},
            "drPolicyRef": {"name": args.policy},
            "preferredCluster": home,
            "pvcSelector": {"matchLabels": selected},
        },
    });
    if args.dry_run {
        return print(args.output, &object);
    }
    let wanted: DRPlacementControl =
        serde_json::from_value(object).context("invariant: it is one of its kind")?;
    match drpcs.create(&PostParams::default(), &wanted).await {
        Ok(made) => match args.output {
            Format::Json => print(Format::Json, &serde_json::to_value(&made).context("writing JSON")?),
            Format::Text => {
                let copied = &policy.spec.scheduling_interval;
                say(&format!(
                    "the protection of {namespace}/{} begins: at home on {home}, copied every {copied}; `lifeboat status` says when its data is safe\n",
                    args.name
                ))?;
                Ok(ExitCode::SUCCESS)
            }
        },
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let there = drpcs.get(&args.name).await.context("reading what is there")?;
            if there.spec.placement_ref.name == wanted.spec.placement_ref.name
                && there.spec.dr_policy_ref.name == wanted.spec.dr_policy_ref.name
            {
                if args.on.is_some() && there.spec.preferred_cluster != args.on {
                    let at = there.spec.preferred_cluster.as_deref().unwrap_or("no cluster");
                    say(&format!(
                        "{namespace}/{} is protected already, at home on {at} and not on {home}; `lifeboat relocate` moves it\n",
                        args.name
                    ))?;
                    return Ok(ExitCode::from(4));
                }
                if there.spec.pvc_selector != wanted.spec.pvc_selector {
                    say(&format!(
                        "{namespace}/{} has its DRPlacementControl already, which selects other PVCs: `kubectl get drplacementcontrol {} -n {namespace} -o yaml` shows pvcSelector; nothing was changed\n",
                        args.name, args.name
                    ))?;
                    return Ok(ExitCode::from(4));
                }
                say(&format!(
                    "{namespace}/{} has its DRPlacementControl already; `lifeboat status` says how it is\n",
                    args.name
                ))?;
                return Ok(ExitCode::SUCCESS);
            }
            say(&format!(
                "another application is protected as {namespace}/{}; choose another name\n",
                args.name
            ))?;
            Ok(ExitCode::from(4))
        }
        Err(error) => Err(error).context("making the DRPlacementControl"),
    }
}

/// Why protecting an application by this policy and Placement could not work, where that can be told beforehand.
fn may_protect(
    name: &str,
    policy: &DRPolicy,
    placement: &Placement,
    others: &[DRPlacementControl],
) -> Result<(), String> {
    let policy_name = policy.metadata.name.as_deref().unwrap_or_default();
    let conditions = policy.status.as_ref().map_or(&[][..], |status| &status.conditions);
    match conditions.iter().find(|one| one.type_ == TYPE_VALIDATED) {
        Some(one) if one.status == "True" => {}
        Some(one) => return Err(format!("policy {policy_name} is not valid: {}", one.message)),
        None => {
            return Err(format!(
                "policy {policy_name} was not validated yet; does `lifeboat hub` run? Try again in a moment"
            ));
        }
    }
    let placed = placement.metadata.name.as_deref().unwrap_or_default();
    let disabled = placement.metadata.annotations.as_ref().and_then(|all| all.get(SCHEDULING_DISABLE));
    if disabled.map(String::as_str) != Some("true") {
        return Err(format!(
            "Placement {placed} is decided by a scheduler: give it the annotation {SCHEDULING_DISABLE}: \"true\", so that the hub decides"
        ));
    }
    if placement.spec.number_of_clusters != Some(1) {
        return Err(format!(
            "Placement {placed} does not say numberOfClusters: 1, so the application could run twice; set it"
        ));
    }
    let other = others.iter().find(|one| {
        one.metadata.name.as_deref() != Some(name) && one.spec.placement_ref.name.as_deref() == Some(placed)
    });
    match other.and_then(|one| one.metadata.name.as_deref()) {
        Some(other) => Err(format!("Placement {placed} is protected by DRPlacementControl {other} already")),
        None => Ok(()),
    }
}

fn print(output: Format, object: &Value) -> anyhow::Result<ExitCode> {
    let text = match output {
        Format::Json => serde_json::to_string_pretty(object).context("writing JSON")? + "\n",
        Format::Text => serde_saphyr::to_string(object).context("writing YAML")?,
    };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_work_is_refused_beforehand() {
        let policy = |status: &str| -> DRPolicy {
            serde_json::from_value(json!({
                "metadata": {"name": "p"}, "spec": {"schedulingInterval": "1m", "drClusters": ["east", "west"]},
                "status": {"conditions": [{"type": "Validated", "status": status, "reason": "R", "message": "a store is away",
                    "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
            }))
            .unwrap()
        };
        let placement = |disabled: &str, number: i32| -> Placement {
            serde_json::from_value(json!({
                "metadata": {"name": "web", "annotations": {SCHEDULING_DISABLE: disabled}},
                "spec": {"numberOfClusters": number},
            }))
            .unwrap()
        };
        let drpc = |name: &str| -> DRPlacementControl {
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"placementRef": {"name": "web"}, "drPolicyRef": {}, "pvcSelector": {}},
            }))
            .unwrap()
        };
        let check = |rule: &str,
                     policy: &DRPolicy,
                     placement: &Placement,
                     others: &[DRPlacementControl],
                     part: Option<&str>| {
            let found = may_protect("web", policy, placement, others);
            match part {
                None => assert_eq!(found, Ok(()), "{rule}"),
                Some(part) => {
                    assert!(found.clone().is_err_and(|why| why.contains(part)), "{rule}: {found:?}");
                }
            }
        };
        let (good, fine) = (policy("True"), placement("true", 1));
        check("all is well", &good, &fine, &[drpc("web")], None);
        check("a policy that is not valid", &policy("False"), &fine, &[], Some("a store is away"));
        let unseen = DRPolicy { status: None, ..good.clone() };
        check("a policy that nobody has looked at", &unseen, &fine, &[], Some("not validated yet"));
        check("a scheduler decides", &good, &placement("false", 1), &[], Some(SCHEDULING_DISABLE));
        check("two clusters", &good, &placement("true", 2), &[], Some("numberOfClusters: 1"));
        check("somebody else's", &good, &fine, &[drpc("other")], Some("DRPlacementControl other"));
    }

    #[test]
    fn labels_are_keys_and_values() {
        let check = |given: &[&str], expected: Option<Value>| {
            let given: Vec<String> = given.iter().map(ToString::to_string).collect();
            assert_eq!(labels(&given).ok(), expected);
        };
        check(&[], Some(json!({})));
        check(&["a=b", "c=d=e", "f="], Some(json!({"a": "b", "c": "d=e", "f": ""})));
        check(&["a"], None);
        check(&["=b"], None);
    }
}
