//! The table of kinds: one row each, with the facts that discovery shows and that storage needs.

mod rows;

use rows::KINDS;

/// Where objects of a kind are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Under the kind's own group and version.
    Own,
    /// As objects of another group or version with the same plural (events, autoscalers).
    As {
        /// The group of the stored form.
        group: &'static str,
        /// The version of the stored form.
        version: &'static str,
    },
    /// Nowhere: a request that is answered at once (reviews).
    Virtual,
}

/// A built-in kind.
#[derive(Debug)]
pub struct Kind {
    /// API group; empty for core.
    pub group: &'static str,
    /// The version served.
    pub version: &'static str,
    /// The kind, as in `kind: Pod`.
    pub kind: &'static str,
    /// The resource name in paths.
    pub plural: &'static str,
    /// The name for one object.
    pub singular: &'static str,
    /// Abbreviations that kubectl takes.
    pub short_names: &'static [&'static str],
    /// Groups of resources that kubectl takes, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Subresources by their last path segment.
    pub subresources: &'static [&'static str],
    /// Where objects are kept.
    pub storage: Storage,
    pub(crate) generation: bool,
    pub(crate) unconditional_update: bool,
    pub(crate) create_on_update: bool,
}

const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Kind {
    /// `v1` or `group/version`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The kind of a list of these, such as `PodList`.
    #[must_use]
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The verbs that discovery shows, sorted.
    #[must_use]
    pub fn verbs(&self) -> &'static [&'static str] {
        match (self.storage, self.plural) {
            (Storage::Virtual, _) => &["create"],
            // A namespace collection cannot be deleted at one stroke.
            (_, "namespaces") => &["create", "delete", "get", "list", "patch", "update", "watch"],
            _ => ALL_VERBS,
        }
    }

    /// Whether the subresource is served.
    #[must_use]
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.contains(&name)
    }

    /// Whether Kubernetes keeps `metadata.generation` for this kind ([`Kind::prepare_create`] and
    /// [`Kind::prepare_update`] write it).
    #[must_use]
    pub fn bumps_generation(&self) -> bool {
        self.generation
    }

    /// Whether an update without a resourceVersion overwrites whatever is stored.
    #[must_use]
    pub fn allows_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    /// Whether an update of a missing object creates it.
    #[must_use]
    pub fn allows_create_on_update(&self) -> bool {
        self.create_on_update
    }
}

/// Every kind served, grouped by API group, in the order of discovery.
#[must_use]
pub fn all() -> &'static [Kind] {
    KINDS
}

/// The kind behind a resource path.
#[must_use]
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.plural == plural && k.group == group && k.version == version)
}

/// The kind named by an object's `apiVersion` and `kind`.
#[must_use]
pub fn find_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    KINDS.iter().find(|k| k.kind == kind && k.group == group && k.version == version)
}
