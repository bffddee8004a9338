//! What a write may change: the fields that each way of writing keeps, drops or carries over, and the generation.
//!
//! The rules follow the registry strategies of Kubernetes. Metadata that the server owns for every kind (uid, creationTimestamp,
//! resourceVersion, deletionTimestamp, managedFields) is not handled here, except that the generation is.
//!
//! A status write takes the metadata of the body too: Kubernetes lets labels, annotations, finalizers and owner references through
//! there. Exceptions: VolumeAttachment and the kinds that tune the server keep all of it, Deployment keeps its labels, Pod
//! keeps its owner references.

mod certificates;
mod per_kind;

use crate::Kind;
use crate::defaults::{labels_from_template, name_label, stored_version};
use crate::json::{Object, blank, carry, fill, int, object, text};
use lifeboat_schema::Reach;
pub(crate) use per_kind::string_data;
use per_kind::{
    cluster_ips, coordinated, data_sources, default_tolerations, job_selector, legacy_data_source,
    namespace_finalizer, qos_class, secret_references, service, take_resources, template_generation,
    transition_time,
};
use serde_json::{Value, json};

impl Kind {
    /// Drops what a client may not set at creation and starts the generation. To be called after [`Kind::default`].
    pub fn prepare_create(&self, obj: &mut Value) {
        let Value::Object(o) = obj else { return };
        if self.resets_status() {
            o.remove("status");
        }
        let metadata = object(o, "metadata");
        // CSIDriver counts its changes but does not start at one.
        if self.generation && self.kind != "CSIDriver" {
            metadata.insert("generation".into(), 1.into());
        } else {
            metadata.remove("generation");
        }
        match self.kind {
            "Namespace" => namespace_finalizer(object(o, "spec")),
            "PersistentVolumeClaim" => {
                let spec = object(o, "spec");
                legacy_data_source(spec, None);
                data_sources(spec);
            }
            "Pod" => {
                let class = qos_class(o);
                let mut status = json!({ "phase": "Pending", "qosClass": class });
                if !blank(o.get("spec").and_then(|s| s.get("schedulingGates"))) {
                    let message = "Scheduling is blocked due to non-empty scheduling gates";
                    status["conditions"] = json!([{ "type": "PodScheduled", "status": "False",
                        "reason": "SchedulingGated", "message": message }]);
                }
                o.insert("status".into(), status);
                let spec = object(o, "spec");
                default_tolerations(spec);
                if !spec.contains_key("priorityClassName") {
                    fill(spec, "priority", 0);
                    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
                }
            }
            "Service" => cluster_ips(object(o, "spec"), None),
            "Lease" => coordinated(object(o, "spec"), None),
            "DaemonSet" => template_generation(o, 1),
            "CustomResourceDefinition" => {
                let stored = stored_version(object(o, "spec"));
                o.insert("status".into(), json!({ "storedVersions": stored.as_slice() }));
            }
            "ServiceAccount" => secret_references(o),
            "CertificateSigningRequest" => certificates::anonymous(object(o, "spec")),
            _ => {}
        }
        // What every answer shows (an empty status, a phase) comes back in its stored form.
        self.default(obj);
    }

    /// Puts back what this way of writing may not change and moves the generation on. `subresource` is empty for the
    /// object itself. To be called after [`Kind::default`].
    pub fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        let Value::Object(o) = new else { return };
        match subresource {
            "" => self.main_write(o, old),
            "status" => self.status_write(o, old),
            "finalize" => carry(o, old, "status"),
            "approval" => certificates::approval(o, old),
            "ephemeralcontainers" | "resize" => {
                let wanted = object(o, "spec").clone();
                for key in ["spec", "status"] {
                    carry(o, old, key);
                }
                keep_metadata(o, old);
                let spec = object(o, "spec");
                if subresource == "resize" {
                    take_resources(spec, &wanted);
                } else {
                    let wanted = Value::Object(wanted);
                    carry(spec, &wanted, "ephemeralContainers");
                }
            }
            _ => {}
        }
        if self.kind == "Namespace" {
            name_label(o);
        }
        self.move_generation(o, old, subresource);
    }

    /// Writes what depends on the clock or on the uid and name that the server gave: a volume's phase transition time, a
    /// job's selector, the name label of a namespace with a generated name. To be called once those are in place,
    /// before validation.
    pub fn stamp(&self, new: &mut Value, old: Option<&Value>, now: jiff::Timestamp) {
        let Value::Object(o) = new else { return };
        match (self.kind, old) {
            ("PersistentVolume", old) => transition_time(o, old, now),
            ("Job", None) => {
                job_selector(o);
                labels_from_template(o);
            }
            ("Pod", None) => {
                let conditions = object(o, "status").get_mut("conditions").and_then(Value::as_array_mut);
                for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
                    fill(condition, "lastTransitionTime", format!("{now:.0}"));
                }
            }
            ("Namespace", None) => name_label(o),
            ("CertificateSigningRequest", Some(old)) => certificates::condition_times(o, old, now),
            _ => {}
        }
    }

    /// Whether creation starts with an empty status. A Node may bring its own.
    fn resets_status(&self) -> bool {
        self.has_subresource("status") && self.kind != "Node"
    }

    fn main_write(&self, o: &mut Object, old: &Value) {
        if self.has_subresource("status") {
            carry(o, old, "status");
        }
        match self.kind {
            "Namespace" => {
                if let Some(spec) = old.get("spec") {
                    carry(object(o, "spec"), spec, "finalizers");
                }
            }
            "PersistentVolumeClaim" => {
                let spec = object(o, "spec");
                legacy_data_source(spec, old.get("spec"));
                data_sources(spec);
            }
            "CertificateSigningRequest" => carry(o, old, "spec"),
            "Pod" => default_tolerations(object(o, "spec")),
            "Lease" => coordinated(object(o, "spec"), old.get("spec")),
            "Service" => {
                cluster_ips(object(o, "spec"), old.get("spec"));
                service(o, old);
            }
            "ServiceAccount" => secret_references(o),
            "DaemonSet" => {
                let before = text(old, "/metadata/annotations/deprecated.daemonset.template.generation");
                let before = before.parse().unwrap_or_else(|_| int(old, "/spec/templateGeneration").max(1));
                let same = o.get("spec").and_then(|s| s.get("template")) == old.reach("/spec/template");
                template_generation(o, if same { before } else { before.saturating_add(1) });
            }
            "CustomResourceDefinition" => {
                if let Some(version) = stored_version(object(o, "spec")) {
                    let stored = object(o, "status").entry("storedVersions").or_insert_with(|| json!([]));
                    if let Value::Array(stored) = stored
                        && !stored.iter().any(|v| *v == version.as_str())
                    {
                        stored.push(version.into());
                    }
                }
            }
            _ => {}
        }
    }

    fn status_write(&self, o: &mut Object, old: &Value) {
        carry(o, old, "spec");
        match self.kind {
            "APIService"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "ValidatingAdmissionPolicy"
            | "VolumeAttachment" => keep_metadata(o, old),
            "CertificateSigningRequest" => certificates::keep_approval(o, old),
            "Deployment" => {
                if let Some(metadata) = old.get("metadata") {
                    carry(object(o, "metadata"), metadata, "labels");
                }
            }
            "DaemonSet" => {
                let before = text(old, "/metadata/annotations/deprecated.daemonset.template.generation");
                template_generation(o, before.parse().unwrap_or(1));
            }
            "Pod" => {
                if let Some(metadata) = old.get("metadata") {
                    carry(object(o, "metadata"), metadata, "ownerReferences");
                }
                if let Some(class) = old.reach("/status/qosClass") {
                    fill(object(o, "status"), "qosClass", class.clone());
                }
            }
            _ => {}
        }
    }

    fn move_generation(&self, o: &mut Object, old: &Value, subresource: &str) {
        let before = int(old, "/metadata/generation");
        let changed = self.generation && subresource != "status" && self.counts(o, old);
        let now = if changed { before.saturating_add(1) } else { before };
        let metadata = object(o, "metadata");
        if now == 0 {
            metadata.remove("generation");
        } else {
            metadata.insert("generation".into(), now.into());
        }
    }

    /// Whether what the generation is about differs.
    fn counts(&self, o: &Object, old: &Value) -> bool {
        let differs = |key: &str| o.get(key) != old.get(key);
        let meta_differs = |key: &str| {
            let new = o.get("metadata").and_then(|m| m.get(key));
            new != old.get("metadata").and_then(|m| m.get(key))
        };
        match self.kind {
            "PriorityClass" => false,
            "PodTemplate" => differs("template"),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => differs("webhooks"),
            "Deployment" => differs("spec") || meta_differs("annotations"),
            "EndpointSlice" => {
                differs("addressType") || differs("endpoints") || differs("ports") || meta_differs("labels")
            }
            _ => differs("spec"),
        }
    }
}

/// Keeps the metadata that a status write may not touch.
fn keep_metadata(o: &mut Object, old: &Value) {
    let Some(before) = old.get("metadata") else { return };
    let metadata = object(o, "metadata");
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        carry(metadata, before, key);
    }
}
