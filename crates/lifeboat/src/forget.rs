//! `lifeboat forget`: volumes that are kept on a cluster though no PVC uses them, and giving them up. A group that was deleted by accident leaves
//! them, and so does every move: they may hold the only copy of something. Nothing else ever deletes them.

use crate::cluster::{Target, is_lost_race, patched};
use crate::plan::confirmed;
use crate::status::{Format, missing, refused, say, table};
use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, ListParams, Patch};
use lifeboat_api::annotations;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

/// Options of `lifeboat forget`.
#[derive(clap::Args)]
#[command(after_help = "Without names it lists the volumes that are kept.\n\
                        Exit code: 0 it was listed or done, 1 the cluster could not be reached, 2 wrong usage, \
                        4 something was not given up, 5 there is no such volume.")]
pub struct Args {
    /// Names of the volumes (PVs) to give up, with what is on them.
    volumes: Vec<String>,
    /// Give up every volume that the deleted VRG NAMESPACE/NAME left behind.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    of: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
    #[command(flatten)]
    target: Target,
}

/// A volume that is kept and used by nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Name of the PV.
    pub volume: String,
    /// Namespace and name of the PVC that it was bound to.
    pub claim: String,
    /// Its size.
    pub size: String,
    /// The VRG that was deleted without the order to end protection, where one left it.
    pub orphaned_from: Option<String>,
}

/// What a volume is kept for; nothing where a PVC uses it, or where it is not kept by a group.
pub fn kept(volume: &PersistentVolume) -> Option<Kept> {
    let annotation = |key: &str| volume.metadata.annotations.as_ref()?.get(key).cloned();
    let orphaned_from = annotation(annotations::ORPHANED_FROM);
    let retained = [annotations::VR_RETAINED, annotations::VOLSYNC_RETAINED];
    let ours = retained.iter().any(|key| annotation(key).is_some());
    let released = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released");
    if !released || !(ours || orphaned_from.is_some()) || volume.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let spec = volume.spec.as_ref()?;
    let claim = spec.claim_ref.as_ref()?;
    let size = spec.capacity.as_ref().and_then(|capacity| capacity.get("storage"));
    Some(Kept {
        volume: volume.metadata.name.clone()?,
        claim: format!(
            "{}/{}",
            claim.namespace.as_deref().unwrap_or_default(),
            claim.name.as_deref().unwrap_or_default()
        ),
        size: size.map_or_else(|| "-".to_owned(), |size| size.0.clone()),
        orphaned_from,
    })
}

/// Lists, or asks twice and gives up.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(forget(args))
}

async fn forget(args: &Args) -> anyhow::Result<ExitCode> {
    let client = crate::process::client(&args.target).await?;
    let volumes: Api<PersistentVolume> = Api::all(client);
    let listed = volumes.list(&ListParams::default()).await.context("reading PersistentVolumes")?;
    let all: Vec<Kept> = listed.items.iter().filter_map(kept).collect();
    if args.volumes.is_empty() && args.of.is_none() {
        list(&all, args.output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let named = |one: &&Kept| {
        args.volumes.contains(&one.volume) || (args.of.is_some() && one.orphaned_from == args.of)
    };
    let chosen: Vec<&Kept> = all.iter().filter(named).collect();
    if let Some(unknown) = args.volumes.iter().find(|name| !chosen.iter().any(|one| one.volume == **name)) {
        return missing(&format!(
            "kept volume {unknown}: it does not exist, is bound to a PVC, or is not one that a VRG keeps"
        ));
    }
    if chosen.is_empty() {
        return missing(&format!("volume that {} left behind", args.of.as_deref().unwrap_or_default()));
    }
    let mine: Vec<Kept> = chosen.into_iter().cloned().collect();
    list(&mine, args.output)?;
    if !args.yes {
        let question = format!("Delete {} and everything on them?", plural(mine.len()));
        if !confirmed(&question)? || !confirmed("This cannot be undone. Delete them?")? {
            say("nothing was deleted\n")?;
            return Ok(ExitCode::from(4));
        }
    }
    let mut changed = Vec::new();
    for one in &mine {
        if !give_up(&volumes, &listed.items, one).await? {
            changed.push(one.volume.as_str());
        } else if args.output == Format::Text {
            say(&format!("{} is being deleted\n", one.volume))?;
        }
    }
    if !changed.is_empty() {
        return refused(&format!(
            "somebody else changed {} meanwhile, which was not given up; list the volumes again",
            changed.join(" and ")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn plural(count: usize) -> String {
    if count == 1 { "1 volume".to_owned() } else { format!("{count} volumes") }
}

fn list(all: &[Kept], output: Format) -> anyhow::Result<()> {
    if output == Format::Json {
        return say(&(serde_json::to_string_pretty(all).context("writing JSON")? + "\n"));
    }
    if all.is_empty() {
        return say("no volume is kept without a PVC\n");
    }
    let lines: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            let why = match &one.orphaned_from {
                Some(group) => format!("VRG {group} was deleted by accident"),
                None => "the application moved away".to_owned(),
            };
            vec![one.volume.clone(), one.claim.clone(), one.size.clone(), why]
        })
        .collect();
    say(&table(&["VOLUME", "PVC", "SIZE", "KEPT BECAUSE"], &lines))
}

/// The policy is changed on exactly what was shown; the volume's own provisioner deletes it then. Says whether it was still what was shown.
async fn give_up(
    api: &Api<PersistentVolume>,
    listed: &[PersistentVolume],
    one: &Kept,
) -> anyhow::Result<bool> {
    let seen = listed.iter().find(|volume| volume.metadata.name.as_deref() == Some(&one.volume));
    let Some(seen) = seen else { bail!("invariant: {} was listed", one.volume) };
    let patch = json!({
        "metadata": {
            "uid": seen.metadata.uid, "resourceVersion": seen.metadata.resource_version,
            "annotations": {
                annotations::ORPHANED_FROM: null, annotations::VR_RETAINED: null, annotations::VOLSYNC_RETAINED: null,
            },
        },
        "spec": {"persistentVolumeReclaimPolicy": "Delete"},
    });
    match api.patch(&one.volume, &patched(), &Patch::Merge(patch)).await {
        Ok(_) => Ok(true),
        Err(error) if is_lost_race(&error) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("giving up {}", one.volume)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use kube::api::{PatchParams, PostParams};
    use serde_json::Value;

    fn volume(phase: &str, annotations: Value) -> PersistentVolume {
        let object = json!({
            "metadata": {"name": "pv-1", "annotations": annotations},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "claimRef": {"namespace": "shop", "name": "db"},
            },
            "status": {"phase": phase},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn only_what_nobody_uses_and_a_group_keeps_can_be_given_up() {
        let orphan = json!({annotations::ORPHANED_FROM: "shop/web"});
        let moved = json!({annotations::VOLSYNC_RETAINED: "retained"});
        let found = kept(&volume("Released", orphan.clone())).unwrap();
        assert_eq!((found.claim.as_str(), found.orphaned_from.as_deref()), ("shop/db", Some("shop/web")));
        assert_eq!(kept(&volume("Released", moved.clone())).unwrap().orphaned_from, None);
        assert_eq!(kept(&volume("Bound", orphan)), None, "a PVC uses it");
        assert_eq!(kept(&volume("Bound", moved)), None, "a PVC uses it");
        assert_eq!(kept(&volume("Released", json!({}))), None, "somebody else keeps it");
    }

    #[tokio::test]
    async fn a_volume_that_changed_since_it_was_shown_is_not_given_up() {
        let server = embedded::server();
        let api: Api<PersistentVolume> = Api::all(embedded::client(&server));
        let object = json!({
            "metadata": {"name": "pv-1", "annotations": {annotations::ORPHANED_FROM: "shop/web"}},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "shop", "name": "db"},
                "csi": {"driver": "none.example.io", "volumeHandle": "pv-1"},
            },
        });
        let object = serde_json::from_value(object).unwrap();
        let shown = vec![api.create(&PostParams::default(), &object).await.unwrap()];
        let one = Kept {
            volume: "pv-1".to_owned(),
            claim: "shop/db".to_owned(),
            size: "1Gi".to_owned(),
            orphaned_from: Some("shop/web".to_owned()),
        };
        let label = Patch::Merge(json!({"metadata": {"labels": {"seen": "again"}}}));
        let now = vec![api.patch("pv-1", &PatchParams::default(), &label).await.unwrap()];
        let policy = async || {
            api.get("pv-1").await.unwrap().spec.and_then(|spec| spec.persistent_volume_reclaim_policy)
        };
        assert!(!give_up(&api, &shown, &one).await.unwrap(), "it is not what was shown");
        assert_eq!(policy().await.as_deref(), Some("Retain"));
        assert!(give_up(&api, &now, &one).await.unwrap());
        assert_eq!(policy().await.as_deref(), Some("Delete"));
    }
}
