//! Discovery: which groups, versions and resources there are, in the old form (one document each) and the aggregated one
//! (everything at once).

use crate::registry::{Registry, Resource};
use serde_json::{Value, json};

/// The version that is reported; kubectl and client-go choose their behaviour by it.
pub const KUBERNETES_VERSION: (&str, &str, &str) = ("1", "36", "v1.36.3");

/// `/version`.
pub fn version() -> Value {
    let (major, minor, git) = KUBERNETES_VERSION;
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("{git}+lifeboat"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

/// `/api`.
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub fn group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, versions)| group(name, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`.
pub fn one_group(registry: &Registry, name: &str) -> Option<Value> {
    let versions = registry.groups().get(name).filter(|_| !name.is_empty())?;
    let mut one = group(name, versions);
    one["kind"] = "APIGroup".into();
    one["apiVersion"] = "v1".into();
    Some(one)
}

fn group(name: &str, versions: &[String]) -> Value {
    let version = |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

/// `/api/v1` or `/apis/GROUP/VERSION`.
pub fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let resources = registry.of_version(group, version);
    let first = resources.first()?;
    let mut list = Vec::new();
    for resource in &resources {
        let mut one = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs(),
        });
        if !resource.short_names.is_empty() {
            one["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            one["categories"] = json!(resource.categories);
        }
        if resource.is_stored() {
            one["storageVersionHash"] = version_hash(resource).into();
        }
        list.push(one);
        for subresource in resource.subresources() {
            let (group, version, kind) = subresource_kind(resource, subresource);
            let mut one = json!({
                "name": format!("{}/{subresource}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": subresource_verbs(subresource),
            });
            if (group, version) != (resource.group.as_str(), resource.version.as_str()) {
                one["group"] = group.into();
                one["version"] = version.into();
            }
            list.push(one);
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version,
        "resources": list,
    }))
}

/// `/api` and `/apis` in the aggregated form.
pub fn aggregated(registry: &Registry, core: bool, version: &str) -> Value {
    let wanted = registry.groups().iter().filter(|(name, _)| name.is_empty() == core);
    let items: Vec<Value> = wanted
        .map(|(name, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| aggregated_version(registry, name, version)).collect();
            let metadata = if name.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": name, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {}, "items": items})
}

fn aggregated_version(registry: &Registry, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = registry
        .of_version(group, version)
        .into_iter()
        .map(|resource| aggregated_resource(resource))
        .collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind =
        |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<Value> = resource
        .subresources()
        .into_iter()
        .map(|name| {
            let (group, version, of) = subresource_kind(resource, name);
            json!({"subresource": name, "responseKind": kind(group, version, of), "verbs": subresource_verbs(name)})
        })
        .collect();
    let mut one = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        one["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        one["categories"] = json!(resource.categories);
    }
    if !subresources.is_empty() {
        one["subresources"] = subresources.into();
    }
    one
}

/// The kind that a subresource speaks.
pub fn subresource_kind<'a>(resource: &'a Resource, subresource: &str) -> (&'a str, &'a str, &'a str) {
    match subresource {
        "scale" => ("autoscaling", "v1", "Scale"),
        "token" => ("authentication.k8s.io", "v1", "TokenRequest"),
        "eviction" => ("policy", "v1", "Eviction"),
        "binding" => ("", "v1", "Binding"),
        _ => (&resource.group, &resource.version, &resource.kind),
    }
}

fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "token" | "eviction" | "binding" => &["create"],
        "finalize" => &["update"],
        "log" => &["get"],
        _ => &["get", "patch", "update"],
    }
}

/// Any stable text will do: clients only compare it for change.
fn version_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("{}/{}", resource.stored_version, resource.kind));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}
