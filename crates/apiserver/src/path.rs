//! What a request line asks for: the path taken apart into group, version, resource, namespace, name and subresource,
//! and the verb that HTTP method and path mean together. Whether such a resource exists is left to the registry.

use http::Method;
use percent_encoding::percent_decode_str;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An object, a collection, or a subresource of an object.
    Resource(ResourcePath),
    /// Anything else: discovery, OpenAPI, health, version.
    Other(Vec<String>),
}

/// A path below `/api/v1` or `/apis/GROUP/VERSION`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group, empty for core.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, empty for cluster-wide requests.
    pub namespace: String,
    /// Plural resource name.
    pub resource: String,
    /// Object name, empty for collections.
    pub name: String,
    /// Subresource, empty for the object itself.
    pub subresource: String,
    /// The old `/watch/` prefix was used.
    pub watch: bool,
}

/// Kubernetes' request verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The word used in RBAC rules and audit.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether the verb changes anything.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// The verb of a resource request; `None` for methods Kubernetes does not know.
    pub fn of(method: &Method, path: &ResourcePath, wants_watch: bool) -> Option<Self> {
        let collection = path.name.is_empty();
        Some(match *method {
            Method::GET | Method::HEAD if path.watch || (wants_watch && path.subresource.is_empty()) => {
                Self::Watch
            }
            Method::GET | Method::HEAD if collection => Self::List,
            Method::GET | Method::HEAD => Self::Get,
            Method::POST => Self::Create,
            Method::PUT => Self::Update,
            Method::PATCH => Self::Patch,
            Method::DELETE if collection => Self::DeleteCollection,
            Method::DELETE => Self::Delete,
            _ => return None,
        })
    }
}

/// Takes a path apart.
pub fn parse(path: &str) -> Target {
    let segments: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
        .collect();
    let words: Vec<&str> = segments.iter().map(String::as_str).collect();
    let parsed = match words.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => resource("", version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => resource(group, version, rest),
        _ => None,
    };
    match parsed {
        Some(path) => Target::Resource(path),
        None => Target::Other(segments),
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Option<ResourcePath> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let base = ResourcePath { group: group.into(), version: version.into(), watch, ..Default::default() };
    let (namespace, rest) = match rest {
        // `namespaces/x/status` and `namespaces/x/finalize` are subresources of the Namespace itself.
        ["namespaces", name, sub @ ("status" | "finalize")] => {
            return Some(ResourcePath {
                namespace: (*name).into(),
                resource: "namespaces".into(),
                name: (*name).into(),
                subresource: (*sub).into(),
                ..base
            });
        }
        ["namespaces", name] => {
            return Some(ResourcePath {
                namespace: (*name).into(),
                resource: "namespaces".into(),
                name: (*name).into(),
                ..base
            });
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", String::new()),
        [resource, name] => (*resource, *name, String::new()),
        [resource, name, sub @ ..] => (*resource, *name, sub.join("/")),
        [] => return None,
    };
    Some(ResourcePath {
        namespace: namespace.into(),
        resource: resource.into(),
        name: name.into(),
        subresource,
        ..base
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: [&str; 6]) {
        let [group, version, namespace, resource, name, subresource] = expected.map(str::to_owned);
        let want = ResourcePath { group, version, namespace, resource, name, subresource, watch: false };
        assert_eq!(parse(path), Target::Resource(want), "{path}");
    }

    #[test]
    fn paths_are_taken_apart_as_kubernetes_does() {
        check("/api/v1/nodes", ["", "v1", "", "nodes", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "a", "namespaces", "a", ""]);
        check("/api/v1/namespaces/a/status", ["", "v1", "a", "namespaces", "a", "status"]);
        check("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]);
        check("/api/v1/namespaces/a/pods/p/log", ["", "v1", "a", "pods", "p", "log"]);
        check("/apis/g/v1/things/x%2Fy", ["g", "v1", "", "things", "x/y", ""]);
        check("/apis/g/v1/namespaces/n/things/x/status", ["g", "v1", "n", "things", "x", "status"]);
    }

    #[test]
    fn what_names_no_resource_is_other() {
        for path in
            ["/", "/api", "/api/v1", "/apis", "/apis/g", "/apis/g/v1", "/version", "/openapi/v3/api/v1"]
        {
            assert!(matches!(parse(path), Target::Other(_)), "{path}");
        }
    }
}
