//! `lifeboat protect`: protect an application that a placement deploys, by making its DRPlacementControl on the hub.

use crate::cluster::{Target, posted};
use crate::plan::words;
use crate::status::{Format, missing, missing_on_hub, misused, refused, say};
use anyhow::{Context as _, bail};
use kube::api::{Api, ListParams};
use lifeboat_api::annotations::{EPOCH_HOLDER, LAST_APP_DEPLOYMENT_CLUSTER, SCHEDULING_DISABLE};
use lifeboat_api::cluster::Placement;
use lifeboat_api::conditions::drpolicy::TYPE_VALIDATED;
use lifeboat_api::ramen::{DRPlacementControl, DRPolicy};
use lifeboat_engine::Words as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Options of `lifeboat protect`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 its protection begins or has begun, 1 the hub could not be reached, 2 wrong usage, \
                        4 it could not work or is something else's, and nothing was made, \
                        5 there is no such policy or placement."
)]
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
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label)]
    claims: Vec<(String, String)>,
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

/// A label from `KEY=VALUE`. The API server takes any text in a selector, and one that is no label would select nothing.
fn label(given: &str) -> Result<(String, String), String> {
    let (key, value) = given.split_once('=').ok_or("write KEY=VALUE")?;
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if !is_label_part(name) || !prefix.is_none_or(is_domain) {
        return Err(format!("{key:?} is no key of a label; write KEY=VALUE"));
    }
    if !value.is_empty() && !is_label_part(value) {
        return Err(format!("{value:?} is no value of a label; write KEY=VALUE"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn is_label_part(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().all(|byte| inside(*byte)) && ends(bytes.first()) && ends(bytes.last())
}

fn is_domain(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let part = |part: &str| {
        part.bytes().all(inside) && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

async fn protect(args: &Args) -> anyhow::Result<ExitCode> {
    let selected: BTreeMap<&String, &String> = args.claims.iter().map(|(key, value)| (key, value)).collect();
    let config = args.target.config().await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = kube::Client::try_from(config).context("making a client of the hub")?;
    let policies: Api<DRPolicy> = Api::all(client.clone());
    let policy = policies.get_opt(&args.policy).await;
    let Some(policy) = policy.context("reading DRPolicies; is this the hub?")? else {
        return missing_on_hub(&client, &format!("DRPolicy {}", args.policy)).await;
    };
    let placement = args.placement.clone().unwrap_or_else(|| args.name.clone());
    let placements: Api<Placement> = Api::namespaced(client.clone(), &namespace);
    let Some(found) = placements.get_opt(&placement).await.context("reading Placements")? else {
        return missing(&format!("Placement {namespace}/{placement}"));
    };
    let drpcs: Api<DRPlacementControl> = Api::namespaced(client, &namespace);
    let others = drpcs.list(&ListParams::default()).await.context("reading DRPlacementControls")?;
    if let Err(why) = may_protect(&args.name, &policy, &found, &others.items) {
        return refused(&why);
    }
    let clusters = &policy.spec.dr_clusters;
    let Some(home) = args.on.as_ref().or(clusters.first()) else {
        bail!("policy {} names no cluster", args.policy)
    };
    let members: Vec<&str> = clusters.iter().map(String::as_str).collect();
    if let Err(why) = words::known(home, &members) {
        return misused(&why);
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
    match drpcs.create(&posted(), &wanted).await {
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
            let Some(there) = drpcs.get_opt(&args.name).await.context("reading what is there")? else {
                return refused("nothing was made: somebody deleted what was there meanwhile; ask again");
            };
            match already(&there, &wanted, args.on.as_deref()) {
                Ok(said) => {
                    say(&(said + "\n"))?;
                    Ok(ExitCode::SUCCESS)
                }
                Err(why) => refused(&why),
            }
        }
        Err(error) => Err(error).context("making the DRPlacementControl"),
    }
}

/// What is said of an application that is protected already, or why that is not what is asked for now.
fn already(
    there: &DRPlacementControl,
    wanted: &DRPlacementControl,
    on: Option<&str>,
) -> Result<String, String> {
    let (name, namespace) = (there.name(), there.space());
    let same = there.spec.placement_ref.name == wanted.spec.placement_ref.name
        && there.spec.dr_policy_ref.name == wanted.spec.dr_policy_ref.name;
    if !same {
        return Err(format!("another application is protected as {namespace}/{name}; choose another name"));
    }
    // After a failover an application is not at home: where it is counts.
    let placed = there.note(EPOCH_HOLDER).or_else(|| there.note(LAST_APP_DEPLOYMENT_CLUSTER));
    let at = placed.or(there.spec.preferred_cluster.as_deref()).unwrap_or("no cluster");
    if let Some(on) = on.filter(|on| *on != at) {
        return Err(format!(
            "{namespace}/{name} is protected already and is on cluster {at}, not on {on}; \
             `lifeboat relocate {name} -n {namespace} --to {on}` moves it and loses nothing"
        ));
    }
    if there.spec.pvc_selector != wanted.spec.pvc_selector {
        return Err(format!(
            "{namespace}/{name} has its DRPlacementControl already, which selects other PVCs: \
             `kubectl get drplacementcontrol {name} -n {namespace} -o yaml` shows pvcSelector; nothing was changed"
        ));
    }
    Ok(format!("{namespace}/{name} has its DRPlacementControl already; `lifeboat status` says how it is"))
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
        let check = |given: &str, expected: Option<(&str, &str)>| {
            let read = label(given).ok();
            let read = read.as_ref().map(|(key, value)| (key.as_str(), value.as_str()));
            assert_eq!(read, expected, "{given}");
        };
        check("a=b", Some(("a", "b")));
        check("f=", Some(("f", "")));
        check("app.kubernetes.io/name=a_B-c.9", Some(("app.kubernetes.io/name", "a_B-c.9")));
        check("a", None);
        check("=b", None);
        check("c=d=e", None);
        check("app=two words", None);
        check("app==web", None);
        check("app!=web", None);
        check("-a=b", None);
        check("a=b-", None);
        check("Upper.io/a=b", None);
        check("/a=b", None);
        let longest = "a".repeat(63);
        check(&format!("{longest}=b"), Some((&longest, "b")));
        check(&format!("{longest}a=b"), None);
    }

    #[test]
    fn what_is_protected_already_is_told_where_it_is() {
        let drpc = |home: &str, holder: Option<&str>, placement: &str, label: &str| -> DRPlacementControl {
            let notes = holder.map(|holder| json!({EPOCH_HOLDER: holder}));
            serde_json::from_value(json!({
                "metadata": {"name": "web", "namespace": "shop", "annotations": notes},
                "spec": {
                    "placementRef": {"name": placement}, "drPolicyRef": {"name": "p"}, "preferredCluster": home,
                    "pvcSelector": {"matchLabels": {"app": label}},
                },
            }))
            .unwrap()
        };
        let check = |rule: &str, there: DRPlacementControl, on: Option<&str>, refused: Option<&str>| {
            let wanted = drpc(on.unwrap_or("east"), None, "web", "web");
            let found = already(&there, &wanted, on);
            match refused {
                None => {
                    assert!(found.clone().is_ok_and(|said| said.contains("already")), "{rule}: {found:?}");
                }
                Some(part) => {
                    assert!(found.clone().is_err_and(|why| why.contains(part)), "{rule}: {found:?}");
                }
            }
        };
        let home = || drpc("east", Some("east"), "web", "web");
        check("the same", home(), Some("east"), None);
        check("no cluster is named", home(), None, None);
        let moves = "on cluster east, not on west; `lifeboat relocate web -n shop --to west` moves it";
        check("another cluster", home(), Some("west"), Some(moves));
        check("not deployed yet", drpc("east", None, "web", "web"), Some("west"), Some("on cluster east"));
        let away = || drpc("east", Some("west"), "web", "web");
        check("failed over, its home is named", away(), Some("east"), Some("on cluster west, not on east"));
        check("failed over, where it is", away(), Some("west"), None);
        check("other PVCs", drpc("east", Some("east"), "web", "db"), None, Some("selects other PVCs"));
        check("another placement", drpc("east", None, "db", "web"), None, Some("another application"));
    }
}
