//! The table of kinds: one row each, with the facts that discovery shows and that storage needs.

/// Where objects of a kind are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Under the kind's own group and version.
    Own,
    /// As objects of another group and version with the same plural (events).
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

    const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
    ) -> Kind {
        Kind {
            group,
            version,
            kind,
            plural,
            singular,
            short_names: &[],
            categories: &[],
            namespaced: true,
            subresources: &[],
            storage: Storage::Own,
            generation: false,
            unconditional_update: true,
            create_on_update: false,
        }
    }

    const fn short(mut self, names: &'static [&'static str]) -> Kind {
        self.short_names = names;
        self
    }

    const fn categories(mut self, names: &'static [&'static str]) -> Kind {
        self.categories = names;
        self
    }

    const fn in_all(self) -> Kind {
        self.categories(&["all"])
    }

    const fn cluster(mut self) -> Kind {
        self.namespaced = false;
        self
    }

    const fn sub(mut self, names: &'static [&'static str]) -> Kind {
        self.subresources = names;
        self
    }

    const fn generation(mut self) -> Kind {
        self.generation = true;
        self
    }

    const fn needs_version(mut self) -> Kind {
        self.unconditional_update = false;
        self
    }

    const fn create_on_update(mut self) -> Kind {
        self.create_on_update = true;
        self
    }

    const fn virtual_only(mut self) -> Kind {
        self.storage = Storage::Virtual;
        self
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

const APPS: &str = "apps";
const AUTHN: &str = "authentication.k8s.io";
const AUTHZ: &str = "authorization.k8s.io";
const BATCH: &str = "batch";
const NET: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const STATUS: &[&str] = &["status"];
const SCALE: &[&str] = &["scale", "status"];

static KINDS: &[Kind] = &[
    Kind::new("", "v1", "ConfigMap", "configmaps", "configmap").short(&["cm"]),
    Kind::new("", "v1", "Endpoints", "endpoints", "endpoints").short(&["ep"]).create_on_update(),
    Kind::new("", "v1", "Event", "events", "event").short(&["ev"]).create_on_update(),
    Kind::new("", "v1", "LimitRange", "limitranges", "limitrange").short(&["limits"]).create_on_update(),
    Kind::new("", "v1", "Namespace", "namespaces", "namespace")
        .short(&["ns"])
        .cluster()
        .sub(&["finalize", "status"]),
    Kind::new("", "v1", "Node", "nodes", "node").short(&["no"]).cluster().sub(STATUS),
    Kind::new("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim")
        .short(&["pvc"])
        .sub(STATUS),
    Kind::new("", "v1", "PersistentVolume", "persistentvolumes", "persistentvolume")
        .short(&["pv"])
        .cluster()
        .sub(STATUS),
    Kind::new("", "v1", "Pod", "pods", "pod")
        .short(&["po"])
        .in_all()
        .sub(&["binding", "ephemeralcontainers", "eviction", "resize", "status"])
        .generation(),
    Kind::new("", "v1", "PodTemplate", "podtemplates", "podtemplate").generation(),
    Kind::new("", "v1", "ReplicationController", "replicationcontrollers", "replicationcontroller")
        .short(&["rc"])
        .in_all()
        .sub(SCALE)
        .generation(),
    Kind::new("", "v1", "ResourceQuota", "resourcequotas", "resourcequota").short(&["quota"]).sub(STATUS),
    Kind::new("", "v1", "Secret", "secrets", "secret"),
    Kind::new("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount").short(&["sa"]).sub(&["token"]),
    Kind::new("", "v1", "Service", "services", "service")
        .short(&["svc"])
        .in_all()
        .sub(STATUS)
        .create_on_update(),
    Kind::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
    )
    .short(&["crd", "crds"])
    .categories(&["api-extensions"])
    .cluster()
    .sub(STATUS)
    .generation()
    .needs_version(),
    Kind::new(APPS, "v1", "ControllerRevision", "controllerrevisions", "controllerrevision"),
    Kind::new(APPS, "v1", "DaemonSet", "daemonsets", "daemonset")
        .short(&["ds"])
        .in_all()
        .sub(STATUS)
        .generation(),
    Kind::new(APPS, "v1", "Deployment", "deployments", "deployment")
        .short(&["deploy"])
        .in_all()
        .sub(SCALE)
        .generation(),
    Kind::new(APPS, "v1", "ReplicaSet", "replicasets", "replicaset")
        .short(&["rs"])
        .in_all()
        .sub(SCALE)
        .generation(),
    Kind::new(APPS, "v1", "StatefulSet", "statefulsets", "statefulset")
        .short(&["sts"])
        .in_all()
        .sub(SCALE)
        .generation(),
    Kind::new(AUTHN, "v1", "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview")
        .cluster()
        .virtual_only(),
    Kind::new(AUTHN, "v1", "TokenReview", "tokenreviews", "tokenreview").cluster().virtual_only(),
    Kind::new(
        AUTHZ,
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
    )
    .virtual_only(),
    Kind::new(AUTHZ, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview")
        .cluster()
        .virtual_only(),
    Kind::new(AUTHZ, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview")
        .cluster()
        .virtual_only(),
    Kind::new(AUTHZ, "v1", "SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview")
        .cluster()
        .virtual_only(),
    Kind::new(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "horizontalpodautoscaler",
    )
    .short(&["hpa"])
    .in_all()
    .sub(STATUS),
    Kind::new(BATCH, "v1", "CronJob", "cronjobs", "cronjob").short(&["cj"]).in_all().sub(STATUS).generation(),
    Kind::new(BATCH, "v1", "Job", "jobs", "job").in_all().sub(STATUS).generation(),
    Kind::new("coordination.k8s.io", "v1", "Lease", "leases", "lease").create_on_update().needs_version(),
    Kind::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice").generation(),
    Kind {
        storage: Storage::As { group: "", version: "v1" },
        ..Kind::new("events.k8s.io", "v1", "Event", "events", "event").short(&["ev"]).create_on_update()
    },
    Kind::new(NET, "v1", "IngressClass", "ingressclasses", "ingressclass").cluster().generation(),
    Kind::new(NET, "v1", "Ingress", "ingresses", "ingress").short(&["ing"]).sub(STATUS).generation(),
    Kind::new(NET, "v1", "NetworkPolicy", "networkpolicies", "networkpolicy").short(&["netpol"]).generation(),
    Kind::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget")
        .short(&["pdb"])
        .sub(STATUS)
        .generation()
        .needs_version(),
    Kind::new(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding")
        .cluster()
        .create_on_update(),
    Kind::new(RBAC, "v1", "ClusterRole", "clusterroles", "clusterrole").cluster().create_on_update(),
    Kind::new(RBAC, "v1", "RoleBinding", "rolebindings", "rolebinding").create_on_update(),
    Kind::new(RBAC, "v1", "Role", "roles", "role").create_on_update(),
    Kind::new("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "priorityclass")
        .short(&["pc"])
        .cluster()
        .generation(),
    Kind::new(STORAGE, "v1", "CSIDriver", "csidrivers", "csidriver").cluster().generation().needs_version(),
    Kind::new(STORAGE, "v1", "CSINode", "csinodes", "csinode").cluster().needs_version(),
    Kind::new(STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity")
        .needs_version(),
    Kind::new(STORAGE, "v1", "StorageClass", "storageclasses", "storageclass").short(&["sc"]).cluster(),
    Kind::new(STORAGE, "v1", "VolumeAttachment", "volumeattachments", "volumeattachment")
        .cluster()
        .sub(STATUS)
        .needs_version(),
    Kind::new(STORAGE, "v1", "VolumeAttributesClass", "volumeattributesclasses", "volumeattributesclass")
        .short(&["vac"])
        .cluster(),
];
