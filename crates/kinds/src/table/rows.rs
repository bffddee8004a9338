//! The rows of the table, and the few words that they are written in.

use super::{Kind, Storage};

impl Kind {
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

    /// A kind that extends admission.
    const fn extension(kind: &'static str, plural: &'static str, singular: &'static str) -> Kind {
        Kind::new(ADMISSION, "v1", kind, plural, singular)
            .categories(EXTENSIONS)
            .cluster()
            .generation()
            .needs_version()
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const APPS: &str = "apps";
const AUTHN: &str = "authentication.k8s.io";
const AUTHZ: &str = "authorization.k8s.io";
const BATCH: &str = "batch";
const FLOW: &str = "flowcontrol.apiserver.k8s.io";
const NET: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const EXTENSIONS: &[&str] = &["api-extensions"];
const STATUS: &[&str] = &["status"];
const SCALE: &[&str] = &["scale", "status"];

pub(super) static KINDS: &[Kind] = &[
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
    Kind::extension(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfiguration",
    ),
    Kind::extension(
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicybinding",
    ),
    Kind::extension("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy")
        .sub(STATUS),
    Kind::extension(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
    ),
    Kind::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
    )
    .short(&["crd", "crds"])
    .categories(EXTENSIONS)
    .cluster()
    .sub(STATUS)
    .generation()
    .needs_version(),
    Kind::new("apiregistration.k8s.io", "v1", "APIService", "apiservices", "apiservice")
        .categories(EXTENSIONS)
        .cluster()
        .sub(STATUS)
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
    Kind {
        storage: Storage::As { group: "autoscaling", version: "v2" },
        ..Kind::new(
            "autoscaling",
            "v1",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "horizontalpodautoscaler",
        )
        .short(&["hpa"])
        .in_all()
        .sub(STATUS)
    },
    Kind::new(BATCH, "v1", "CronJob", "cronjobs", "cronjob").short(&["cj"]).in_all().sub(STATUS).generation(),
    Kind::new(BATCH, "v1", "Job", "jobs", "job").in_all().sub(STATUS).generation(),
    Kind::new(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "certificatesigningrequest",
    )
    .short(&["csr"])
    .cluster()
    .sub(&["approval", "status"]),
    Kind::new("coordination.k8s.io", "v1", "Lease", "leases", "lease").create_on_update().needs_version(),
    Kind::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "endpointslice").generation(),
    Kind {
        storage: Storage::As { group: "", version: "v1" },
        ..Kind::new("events.k8s.io", "v1", "Event", "events", "event").short(&["ev"]).create_on_update()
    },
    Kind::new(FLOW, "v1", "FlowSchema", "flowschemas", "flowschema").cluster().sub(STATUS).generation(),
    Kind::new(
        FLOW,
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        "prioritylevelconfiguration",
    )
    .cluster()
    .sub(STATUS)
    .generation(),
    Kind::new(NET, "v1", "IngressClass", "ingressclasses", "ingressclass").cluster().generation(),
    Kind::new(NET, "v1", "Ingress", "ingresses", "ingress").short(&["ing"]).sub(STATUS).generation(),
    Kind::new(NET, "v1", "NetworkPolicy", "networkpolicies", "networkpolicy").short(&["netpol"]).generation(),
    Kind::new("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "runtimeclass")
        .cluster()
        .create_on_update()
        .needs_version(),
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
