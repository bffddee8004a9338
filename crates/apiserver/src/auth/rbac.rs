//! Role-based access control, evaluated from the roles and bindings in the store.

use super::{MASTERS, User};
use crate::cluster::Cluster;
use crate::error::{About, ApiError, Result};
use crate::object::Object;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";
const CLUSTER_BINDINGS: &str = "clusterrolebindings.rbac.authorization.k8s.io";
const ROLES: &str = "roles.rbac.authorization.k8s.io";
const BINDINGS: &str = "rolebindings.rbac.authorization.k8s.io";

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes<'a> {
    /// The verb.
    pub verb: &'a str,
    /// API group of the resource.
    pub group: &'a str,
    /// Plural resource name; empty for a path that is no resource.
    pub resource: &'a str,
    /// Subresource.
    pub subresource: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Object name.
    pub name: &'a str,
    /// The path, when it is no resource.
    pub path: &'a str,
}

impl Attributes<'_> {
    fn full_resource(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }
}

/// Refuses what no rule allows.
pub fn authorize(cluster: &Cluster, user: &User, attributes: &Attributes<'_>) -> Result<()> {
    if allowed(cluster, user, attributes) {
        return Ok(());
    }
    let Attributes { verb, group, resource, namespace, name, path, .. } = *attributes;
    let who = &user.name;
    if resource.is_empty() {
        return Err(ApiError::forbidden_path(path, &format!("User {who:?} cannot {verb} path {path:?}")));
    }
    let full = attributes.full_resource();
    let place = match namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let why = format!("User {who:?} cannot {verb} resource {full:?} in API group {group:?} {place}");
    Err(ApiError::forbidden(About { group, resource: &full, kind: "" }, name, &why))
}

/// Whether any rule allows it.
pub fn allowed(cluster: &Cluster, user: &User, attributes: &Attributes<'_>) -> bool {
    if user.groups.iter().any(|group| group == MASTERS) {
        return true;
    }
    rules_for(cluster, user, attributes.namespace).iter().any(|rule| rule_allows(rule, attributes))
}

/// The rules of users as they were at a revision of roles and bindings, by user, groups and namespace.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    at: u64,
    rules: BTreeMap<(String, Vec<String>, String), Arc<Vec<Value>>>,
}

/// More users and namespaces than this are not remembered at once.
const REMEMBERED: usize = 1024;

/// All rules that apply to a user in a namespace, those of the whole cluster included.
pub fn rules_for(cluster: &Cluster, user: &User, namespace: &str) -> Arc<Vec<Value>> {
    let key = (user.name.clone(), user.groups.clone(), namespace.to_owned());
    let at = cluster.store.changed(&[CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS]);
    {
        let mut rights = cluster.rights.lock();
        if rights.at != at || rights.rules.len() > REMEMBERED {
            *rights = Rights { at, ..Rights::default() };
        }
        if let Some(rules) = rights.rules.get(&key) {
            return rules.clone();
        }
    }
    let rules = Arc::new(read_rules(cluster, user, namespace));
    let mut rights = cluster.rights.lock();
    // What was read while somebody changed it may be half old: it serves this request, whose order is anybody's, and no other.
    if rights.at == at && cluster.store.changed(&[CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS]) == at {
        rights.rules.insert(key, rules.clone());
    }
    rules
}

fn read_rules(cluster: &Cluster, user: &User, namespace: &str) -> Vec<Value> {
    let mut rules = Vec::new();
    let mut bindings = cluster.list_all(CLUSTER_BINDINGS);
    if !namespace.is_empty() {
        bindings.extend(cluster.list_in(BINDINGS, Some(namespace)));
    }
    for binding in bindings {
        let home = binding.meta_str("namespace");
        let subjects = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !subjects.iter().any(|subject| is_subject(subject, user, home)) {
            continue;
        }
        let name = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let role = match binding["roleRef"]["kind"].as_str() {
            Some("ClusterRole") => cluster.find(CLUSTER_ROLES, "", name),
            Some("Role") if !home.is_empty() => cluster.find(ROLES, home, name),
            _ => None,
        };
        if let Some(mut role) = role
            && let Value::Array(list) = role["rules"].take()
        {
            rules.extend(list);
        }
    }
    rules
}

fn is_subject(subject: &Value, user: &User, home: &str) -> bool {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str() {
        Some("User") => user.name == name,
        Some("Group") => user.groups.iter().any(|group| group == name),
        Some("ServiceAccount") => {
            let namespace = subject["namespace"].as_str().unwrap_or(home);
            user.name == format!("system:serviceaccount:{namespace}:{name}")
        }
        _ => false,
    }
}

fn list<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn rule_allows(rule: &Value, attributes: &Attributes<'_>) -> bool {
    if !list(rule, "verbs").any(|verb| verb == "*" || verb == attributes.verb) {
        return false;
    }
    if attributes.resource.is_empty() {
        return list(rule, "nonResourceURLs").any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => attributes.path.starts_with(prefix),
            None => pattern == attributes.path,
        });
    }
    let full = attributes.full_resource();
    let any_sub = format!("*/{}", attributes.subresource);
    let resource_fits =
        |name: &str| name == "*" || name == full || (!attributes.subresource.is_empty() && name == any_sub);
    let mut names = list(rule, "resourceNames").peekable();
    list(rule, "apiGroups").any(|group| group == "*" || group == attributes.group)
        && list(rule, "resources").any(resource_fits)
        && (names.peek().is_none() || names.any(|name| name == attributes.name))
}

/// Whether everything that `wanted` allows is allowed by the rules in `held`.
pub fn covers(held: &[Value], wanted: &Value) -> bool {
    let none = [""];
    let or_none =
        |names: Vec<String>| if names.is_empty() { none.map(str::to_owned).to_vec() } else { names };
    let owned = |field: &str| list(wanted, field).map(str::to_owned).collect::<Vec<_>>();
    for verb in owned("verbs") {
        for url in owned("nonResourceURLs") {
            let attributes = Attributes { verb: &verb, path: &url, ..Default::default() };
            if !held.iter().any(|rule| rule_allows(rule, &attributes)) {
                return false;
            }
        }
        for group in owned("apiGroups") {
            for full in owned("resources") {
                let (resource, subresource) = full.split_once('/').unwrap_or((&full, ""));
                for name in or_none(owned("resourceNames")) {
                    let attributes = Attributes {
                        verb: &verb,
                        group: &group,
                        resource,
                        subresource,
                        name: &name,
                        ..Default::default()
                    };
                    if !held.iter().any(|rule| rule_allows(rule, &attributes)) {
                        return false;
                    }
                }
            }
        }
    }
    true
}

/// Nobody hands out permissions that they do not have, unless they hold `escalate` or `bind`.
pub fn check_escalation(
    cluster: &Cluster,
    user: &User,
    collection: &str,
    namespace: &str,
    object: &Value,
) -> Result<()> {
    let (verb, resource, rules) = match collection {
        ROLES | CLUSTER_ROLES => {
            ("escalate", if collection == ROLES { "roles" } else { "clusterroles" }, object["rules"].clone())
        }
        BINDINGS | CLUSTER_BINDINGS => {
            let name = object["roleRef"]["name"].as_str().unwrap_or_default();
            let (resource, role) = match object["roleRef"]["kind"].as_str() {
                Some("Role") => ("roles", cluster.find(ROLES, namespace, name)),
                _ => ("clusterroles", cluster.find(CLUSTER_ROLES, "", name)),
            };
            ("bind", resource, role.map(|mut role| role["rules"].take()).unwrap_or_default())
        }
        _ => return Ok(()),
    };
    let name = object.meta_str("name");
    let group = "rbac.authorization.k8s.io";
    let excuse = Attributes { verb, group, resource, namespace, name, ..Default::default() };
    if allowed(cluster, user, &excuse) {
        return Ok(());
    }
    let held = rules_for(cluster, user, namespace);
    let wanted = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    if wanted.iter().all(|rule| covers(&held, rule)) {
        return Ok(());
    }
    let plural = collection.split('.').next().unwrap_or_default();
    let why = format!(
        "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held",
        user.name, user.groups
    );
    Err(ApiError::forbidden(About { group, resource: plural, kind: "" }, name, &why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(rule: &Value, [verb, group, resource, subresource, name]: [&str; 5], expected: bool) {
        let attributes = Attributes { verb, group, resource, subresource, name, ..Default::default() };
        assert_eq!(rule_allows(rule, &attributes), expected, "{rule} {attributes:?}");
    }

    #[test]
    fn rules_allow_what_they_name_and_nothing_else() {
        let rule = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/scale"]});
        check(&rule, ["get", "", "pods", "", "a"], true);
        check(&rule, ["list", "", "pods", "", ""], false);
        check(&rule, ["get", "apps", "pods", "", ""], false);
        check(&rule, ["get", "", "pods", "log", "a"], false);
        check(&rule, ["get", "", "others", "scale", "a"], true);
        let named = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"]});
        check(&named, ["delete", "g", "x", "", "a"], true);
        check(&named, ["delete", "g", "x", "", "b"], false);
        check(&named, ["list", "g", "x", "", ""], false);
    }

    #[test]
    fn a_rule_is_covered_only_if_all_of_it_is() {
        let held = [json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]})];
        assert!(covers(&held, &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})));
        assert!(!covers(
            &held,
            &json!({"verbs": ["get", "watch"], "apiGroups": [""], "resources": ["pods"]})
        ));
        assert!(!covers(&held, &json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]})));
    }
}
