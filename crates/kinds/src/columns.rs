//! How `kubectl get` shows a kind: the columns of its Table and the cells of one object.

mod age;
mod cells;
mod extensions;
mod parts;
mod pod;
mod storage;

use crate::Kind;
use serde_json::Value;

pub use age::age;

/// One column of a Table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The header.
    pub name: &'static str,
    /// The OpenAPI type of its cells: `string`, `integer`, `boolean` or `date`.
    pub kind: &'static str,
    /// `name` for the column that names the object, else empty.
    pub format: &'static str,
    /// What the column shows.
    pub description: &'static str,
    /// 0 is always shown, higher ones with `-o wide`.
    pub priority: i32,
}

impl Kind {
    /// The columns of this kind's Table; kinds that Kubernetes has no printer for show name and creation time.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        layout(self.kind).split('|').map(column).collect()
    }

    /// The cells of one object, one per column, with ages as of `now`.
    #[must_use]
    pub fn row(&self, obj: &Value, now: jiff::Timestamp) -> Vec<Value> {
        match (self.kind, self.version) {
            ("Pod", _) => pod::cells(obj, now),
            ("HorizontalPodAutoscaler", "v1") => {
                let mut stored = obj.clone();
                self.to_stored(&mut stored);
                cells::cells(self.kind, &stored, now)
            }
            (kind, _) => cells::cells(kind, obj, now),
        }
    }
}

/// Headers in order. A header may end in marks: `#` integer cells, `?` boolean cells, `@` a date, `=` names the object, `+` only
/// with `-o wide`.
fn layout(kind: &str) -> &'static str {
    match kind {
        "Pod" => "Name=|Ready|Status|Restarts|Age|IP+|Node+|Nominated Node+|Readiness Gates+",
        "PodTemplate" => "Name=|Containers|Images|Pod Labels",
        "PodDisruptionBudget" => "Name=|Min Available|Max Unavailable|Allowed Disruptions#|Age",
        "ReplicationController" | "ReplicaSet" => {
            "Name=|Desired#|Current#|Ready#|Age|Containers+|Images+|Selector+"
        }
        "DaemonSet" => {
            "Name=|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|Containers+|Images+|Selector+"
        }
        "Deployment" => "Name=|Ready|Up-to-date|Available|Age|Containers+|Images+|Selector+",
        "StatefulSet" => "Name=|Ready|Age|Containers+|Images+",
        "Job" => "Name=|Status|Completions|Duration|Age|Containers+|Images+|Selector+",
        "CronJob" => {
            "Name=|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|Containers+|Images+|Selector+"
        }
        "Service" => "Name=|Type|Cluster-IP|External-IP|Port(s)|Age|Selector+",
        "Ingress" => "Name=|Class|Hosts|Address|Ports|Age",
        "IngressClass" => "Name=|Controller|Parameters|Age",
        "NetworkPolicy" => "Name=|Pod-Selector|Age",
        "Endpoints" => "Name=|Endpoints|Age",
        "EndpointSlice" => "Name=|AddressType|Ports|Endpoints|Age",
        "Node" => {
            "Name=|Status|Roles|Age|Version|Internal-IP+|External-IP+|OS-Image+|Kernel-Version+|Container-Runtime+"
        }
        "Event" => "Last Seen|Type|Reason|Object|Subobject+|Source+|Message|First Seen+|Count+|Name=+",
        "Namespace" => "Name=|Status|Age",
        "Secret" => "Name=|Type|Data|Age",
        "ConfigMap" => "Name=|Data|Age",
        "ServiceAccount" => "Name=|Age",
        "PersistentVolume" => {
            "Name=|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|VolumeMode+"
        }
        "PersistentVolumeClaim" => {
            "Name=|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode+"
        }
        "StorageClass" => "Name=|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
        "VolumeAttributesClass" => "Name=|DriverName|Age",
        "VolumeAttachment" => "Name=|Attacher=|PV|Node|Attached?|Age",
        "CSIDriver" => {
            "Name=|AttachRequired?|PodInfoOnMount?|StorageCapacity?|TokenRequests|RequiresRepublish?|Modes|Age"
        }
        "CSINode" => "Name=|Drivers#|Age",
        "CSIStorageCapacity" => "Name=|StorageClassName|Capacity",
        "RoleBinding" | "ClusterRoleBinding" => "Name=|Role|Age|Users+|Groups+|ServiceAccounts+",
        "Lease" => "Name=|Holder|Age",
        "PriorityClass" => "Name=|Value#|Global-Default?|Age|PreemptionPolicy",
        "ControllerRevision" => "Name=|Controller|Revision|Age",
        "ResourceQuota" => "Name=|Request|Limit|Age",
        "HorizontalPodAutoscaler" => "Name=|Reference|Targets|MinPods|MaxPods|Replicas|Age",
        "APIService" => "Name=|Service|Available|Age",
        "CertificateSigningRequest" => "Name=|Age|SignerName|Requestor|RequestedDuration|Condition",
        "FlowSchema" => "Name=|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL",
        "PriorityLevelConfiguration" => {
            "Name=|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age"
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => "Name=|Webhooks#|Age",
        "ValidatingAdmissionPolicy" => "Name=|Validations#|ParamKind|Age",
        "ValidatingAdmissionPolicyBinding" => "Name=|PolicyName|ParamRef|Age",
        "RuntimeClass" => "Name=|Handler|Age",
        _ => "Name=|Created At@",
    }
}

fn column(header: &'static str) -> Column {
    let name = header.trim_end_matches(['#', '?', '@', '=', '+']);
    let marks = &header[name.len()..];
    let kind = if marks.contains('#') {
        "integer"
    } else if marks.contains('?') {
        "boolean"
    } else if marks.contains('@') {
        "date"
    } else {
        "string"
    };
    Column {
        name,
        kind,
        format: if marks.contains('=') { "name" } else { "" },
        description: describe(name),
        priority: i32::from(marks.contains('+')),
    }
}

/// What a header means; the same words wherever it stands.
fn describe(name: &str) -> &'static str {
    match name {
        "Name" => "Name of the object, unique among its kind in its namespace.",
        "Age" => "Time since the object was created.",
        "Created At" => "When the object was created.",
        "Status" => "The state it is in.",
        "Ready" => "How many parts are ready.",
        "Restarts" => "How often its containers were started again.",
        "Node" => "The node it is on.",
        "IP" => "Its address.",
        "Capacity" => "How much it holds.",
        "Access Modes" => "How many nodes or pods may mount it, and whether they may write.",
        "Reclaim Policy" | "ReclaimPolicy" => "What happens to the volume when its claim is deleted.",
        "Claim" => "The claim that the volume is bound to.",
        "Volume" => "The volume that the claim is bound to.",
        "StorageClass" | "StorageClassName" => "The class of storage.",
        "VolumeAttributesClass" => "The class of changeable attributes.",
        "VolumeMode" => "Whether it is a file system or a block device.",
        "Provisioner" => "Who makes volumes of the class.",
        "VolumeBindingMode" => "When a claim gets its volume.",
        "AllowVolumeExpansion" => "Whether claims may grow.",
        "Attacher" | "DriverName" => "The driver in charge.",
        "Attached" => "Whether the volume is attached.",
        "Drivers" => "How many drivers run on the node.",
        "Data" => "How many entries it has.",
        "Selector" | "Pod-Selector" | "Node Selector" => "Which labels it looks for.",
        "Containers" => "The names of its containers.",
        "Images" => "The images of its containers.",
        "Holder" => "Who holds the lease.",
        "Role" => "The role that is granted.",
        "Message" => "What happened, in words.",
        "Reason" => "What happened, in one word.",
        "Last Seen" => "Time since it happened last.",
        "First Seen" => "Time since it happened first.",
        "Object" => "What it is about.",
        _ => "",
    }
}
