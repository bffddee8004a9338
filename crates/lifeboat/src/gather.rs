//! `lifeboat gather`: what somebody needs who looks at a problem from afar, in one folder. Never a Secret's content.

use crate::cluster::Target;
use crate::status::say;
use anyhow::{Context as _, bail};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use lifeboat_api::ramen::config::{CLUSTER_CONFIG_MAP, HUB_CONFIG_MAP};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `lifeboat gather`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder to write; it must not exist.
    #[arg(long, value_name = "DIR", default_value = "lifeboat-gathered")]
    into: PathBuf,
    /// Clusters of the kubeconfig to look at, by context, with commas; the current one when not given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    contexts: Vec<String>,
    /// Kubeconfig to read.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Kinds beside our own that tell how things are.
const OTHERS: [(&str, &str, &str); 12] = [
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "Pod"),
    ("", "v1", "Event"),
    ("", "v1", "Node"),
    ("", "v1", "Namespace"),
    ("apps", "v1", "Deployment"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("storage.k8s.io", "v1", "StorageClass"),
    ("storage.k8s.io", "v1", "VolumeAttachment"),
    ("storage.k8s.io", "v1", "CSIDriver"),
    ("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass"),
];

/// ConfigMaps that we read, by name. Of the others, nobody knows what people keep in them.
const CONFIG_MAPS: [&str; 4] = [HUB_CONFIG_MAP, CLUSTER_CONFIG_MAP, "lifeboat-agent", "lifeboat-lvmd"];

/// Writes the folder.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.into.exists() {
        bail!("{} is there already; name another folder with --into", args.into.display());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(async {
        let contexts: Vec<Option<String>> = match args.contexts.as_slice() {
            [] => vec![None],
            named => named.iter().cloned().map(Some).collect(),
        };
        let mut unread = 0;
        for context in contexts {
            let folder = args.into.join(context.as_deref().unwrap_or("cluster"));
            let target = Target::new(args.kubeconfig.clone(), context.clone());
            // A dead cluster is what one gathers for: the others are read all the same.
            let gathered = async { gather(&crate::process::client(&target).await?, &folder).await };
            match gathered.await {
                Ok(count) => say(&format!("{}: {count} objects\n", folder.display()))?,
                Err(error) => {
                    unread += 1;
                    say(&format!("{}: not read: {}\n", folder.display(), crate::causes(&error).join(": ")))?;
                }
            }
        }
        Ok(if unread == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

async fn gather(client: &kube::Client, folder: &Path) -> anyhow::Result<usize> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut count = 0;
    for resource in resources() {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let listed = match api.list(&ListParams::default()).await {
            Ok(listed) => listed.items,
            // A kind that the cluster lacks has no objects.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error).with_context(|| format!("reading {}", resource.plural)),
        };
        let name = if resource.group.is_empty() {
            resource.plural.clone()
        } else {
            format!("{}.{}", resource.plural, resource.group)
        };
        count += write(folder, &name, listed)?;
    }
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let maps: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut read = Vec::new();
    for name in CONFIG_MAPS {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        read.extend(maps.list(&named).await.context("reading ConfigMaps")?.items);
    }
    Ok(count + write(folder, &resource.plural, read)?)
}

fn write(folder: &Path, name: &str, objects: Vec<DynamicObject>) -> anyhow::Result<usize> {
    let count = objects.len();
    if count == 0 {
        return Ok(0);
    }
    let path = folder.join(format!("{name}.yaml"));
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&redacted(object)).context("writing YAML")?);
    }
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(count)
}

fn resources() -> Vec<ApiResource> {
    let ours = lifeboat_api::crds().into_iter().filter_map(|definition| {
        let spec = definition.spec;
        let version = spec.versions.iter().find(|version| version.storage)?;
        Some(ApiResource {
            api_version: format!("{}/{}", spec.group, version.name),
            version: version.name.clone(),
            kind: spec.names.kind,
            plural: spec.names.plural,
            group: spec.group,
        })
    });
    let others = OTHERS
        .iter()
        .map(|(group, version, kind)| ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)));
    ours.chain(others).collect()
}

/// Works can carry Secrets: their content is left out wherever it stands. The record of who set which field is only long.
fn redacted(mut object: DynamicObject) -> DynamicObject {
    object.metadata.managed_fields = None;
    if let Some(notes) = object.metadata.annotations.as_mut() {
        notes.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    redact(&mut object.data);
    object
}

fn redact(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            let secret = fields.get("kind").and_then(|kind| kind.as_str()) == Some("Secret");
            for (name, field) in fields.iter_mut() {
                if secret && matches!(name.as_str(), "data" | "stringData") {
                    *field = serde_json::json!("left out");
                } else {
                    redact(field);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::embedded;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::api::PostParams;
    use serde_json::json;

    #[test]
    fn secrets_are_left_out_wherever_they_stand() {
        let work = json!({"spec": {"workload": {"manifests": [
            {"kind": "Secret", "metadata": {"name": "s"}, "data": {"psk.txt": "eA=="}, "stringData": {"a": "b"}},
            {"kind": "ConfigMap", "data": {"a": "b"}},
        ]}}});
        let mut seen = work;
        redact(&mut seen);
        let manifests = &seen["spec"]["workload"]["manifests"];
        assert_eq!(
            (&manifests[0]["data"], &manifests[0]["stringData"]),
            (&json!("left out"), &json!("left out"))
        );
        assert_eq!(manifests[1]["data"]["a"], "b");
        assert!(resources().iter().all(|resource| resource.kind != "Secret"));
    }

    #[tokio::test]
    async fn only_config_maps_of_ours_are_gathered() {
        let server = embedded::server();
        let client = embedded::client(&server);
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        for name in [HUB_CONFIG_MAP, "lifeboat-lvmd", "of-an-application"] {
            let map = json!({"metadata": {"name": name}, "data": {"file": format!("canary of {name}")}});
            maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
        }
        let secret = json!({"metadata": {"name": HUB_CONFIG_MAP}, "stringData": {"key": "canary"}});
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let count = gather(&client, folder.path()).await.unwrap();
        let text = std::fs::read_to_string(folder.path().join("configmaps.yaml")).unwrap();
        assert!(text.contains(&format!("canary of {HUB_CONFIG_MAP}")), "{text}");
        assert!(text.contains("canary of lifeboat-lvmd") && !text.contains("of-an-application"), "{text}");
        assert!(count >= 2 && !folder.path().join("secrets.yaml").exists());
    }
}
