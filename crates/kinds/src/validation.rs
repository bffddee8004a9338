//! The rules an object must keep, in the words of Kubernetes: the fields named and the texts are part of its API, and
//! clients and tests compare them.
//!
//! Covered in full are metadata and what storage and disaster recovery touch; of the other kinds, the rules that keep objects
//! consistent (selectors, immutable fields, enumerations). Of a pod's many rules about its containers only the basic ones are
//! here: nothing in an embedded cluster runs them.

mod certificates;
mod claims;
mod core;
mod crd;
mod extensions;
mod meta;
mod names;
mod pod;
mod rbac;
mod storage;
mod volumes;
mod workloads;

use crate::Kind;
use crate::json::{blank, text};
use lifeboat_schema::pointer::step;
use lifeboat_schema::{FieldError, Reach};
use serde_json::{Value, json};

pub use meta::{validate_meta, validate_meta_update};

impl Kind {
    /// What is wrong with a new object (after [`Kind::default`], [`Kind::prepare_create`] and [`Kind::stamp`]).
    #[must_use]
    pub fn validate_create(&self, obj: &Value) -> Vec<FieldError> {
        let mut check = Check::default();
        if self.has_strict_meta() {
            check.errors = meta::create_built_in(obj, self.namespaced, self.name_rule());
        }
        self.validate(&mut check, obj, None);
        check.errors
    }

    /// What is wrong with a changed object (after [`Kind::default`] and [`Kind::prepare_update`]).
    #[must_use]
    pub fn validate_update(&self, new: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
        let mut check = Check::default();
        if self.has_strict_meta() {
            check.errors = validate_meta_update(new, old);
        }
        match subresource {
            "status" => self.validate_status(&mut check, new, old),
            "approval" => certificates::request(&mut check, new, Some(old), subresource),
            "finalize" => core::finalize(&mut check, new),
            // The server itself puts the pod on its node, which no other way of writing may.
            "binding" => {}
            _ => self.validate(&mut check, new, Some(old)),
        }
        check.errors
    }

    fn validate(&self, check: &mut Check, obj: &Value, old: Option<&Value>) {
        match self.kind {
            "PersistentVolumeClaim" => claims::claim(check, obj, old),
            "PersistentVolume" => volumes::volume(check, obj, old),
            "StorageClass" => storage::storage_class(check, obj, old),
            "VolumeAttachment" => storage::attachment(check, obj, old),
            "VolumeAttributesClass" => storage::attributes_class(check, obj, old),
            "CSIDriver" => storage::driver(check, obj, old),
            "CSINode" => storage::node(check, obj, old),
            "CSIStorageCapacity" => storage::capacity(check, obj, old),
            "ConfigMap" => core::config_map(check, obj, old),
            "Secret" => core::secret(check, obj, old),
            "Node" => core::node(check, obj, old),
            "Service" => core::service(check, obj, old),
            "Event" => core::event(check, obj, old, self.group),
            "Lease" => core::lease(check, obj),
            "ResourceQuota" => core::quota(check, obj),
            "PriorityClass" => core::priority_class(check, obj, old),
            "PodDisruptionBudget" => core::disruption_budget(check, obj),
            "EndpointSlice" => core::endpoint_slice(check, obj, old),
            "Pod" => pod::pod(check, obj, old),
            "PodTemplate" => pod::template(check, obj, "template"),
            "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "ReplicationController" => {
                workloads::replicated(check, self.kind, obj, old);
            }
            "Job" => workloads::job(check, obj, old),
            "CronJob" => workloads::cron_job(check, obj),
            "ControllerRevision" => workloads::revision(check, obj, old),
            "Role" | "ClusterRole" => rbac::role(check, obj, self.namespaced),
            "RoleBinding" | "ClusterRoleBinding" => rbac::binding(check, obj, old, self.namespaced),
            "CustomResourceDefinition" => crd::definition(check, obj, old),
            "CertificateSigningRequest" => certificates::request(check, obj, old, ""),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                extensions::webhooks(check, obj);
            }
            "ValidatingAdmissionPolicy" => extensions::policy(check, obj),
            "ValidatingAdmissionPolicyBinding" => extensions::policy_binding(check, obj),
            "APIService" => extensions::api_service(check, obj),
            "FlowSchema" => extensions::flow_schema(check, obj),
            "PriorityLevelConfiguration" => extensions::priority_level(check, obj),
            "RuntimeClass" => extensions::runtime_class(check, obj, old),
            _ => {}
        }
    }

    fn validate_status(&self, check: &mut Check, new: &Value, old: &Value) {
        match self.kind {
            "Namespace" => core::namespace_phase(check, new),
            "PersistentVolumeClaim" => claims::claim_status(check, new),
            "VolumeAttachment" => storage::attachment(check, new, Some(old)),
            "CustomResourceDefinition" => crd::stored_versions(check, new),
            "CertificateSigningRequest" => certificates::request(check, new, Some(old), "status"),
            "APIService" | "FlowSchema" | "PriorityLevelConfiguration" => {
                extensions::conditions(check, new, self.kind);
            }
            "Pod" => pod::status(check, new, old),
            _ => {}
        }
    }

    /// Events written through core/v1 have ever been taken with any name.
    fn has_strict_meta(&self) -> bool {
        !(self.kind == "Event" && self.group.is_empty())
    }

    fn name_rule(&self) -> names::Rule {
        match self.kind {
            "Namespace" | "Service" => names::label,
            "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => names::path_segment,
            "APIService" | "CertificateSigningRequest" => names::path_segment,
            "CronJob" => names::cron_job,
            _ => names::subdomain,
        }
    }
}

/// What is said of a field that may not change.
const IMMUTABLE: &str = "field is immutable";

/// Gathers what is wrong.
#[derive(Default)]
struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    fn invalid(&mut self, field: impl Into<String>, bad: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(field, bad, detail));
    }

    fn required(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.push(FieldError::required(field, detail));
    }

    fn forbidden(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.push(FieldError::forbidden(field, detail));
    }

    /// A field that has to have one of a few values; missing is fine.
    fn one_of(&mut self, obj: &Value, field: &str, supported: &[&str]) {
        let Some(value) = at(obj, field) else { return };
        if !value.as_str().is_some_and(|v| supported.contains(&v)) {
            self.push(FieldError::not_supported(field, value.clone(), supported));
        }
    }

    /// A string that has to be there.
    fn need(&mut self, obj: &Value, field: &str) {
        if blank(at(obj, field)) {
            self.required(field, "");
        }
    }

    /// A number that may not be negative.
    fn not_negative(&mut self, obj: &Value, field: &str) {
        if let Some(n) = at(obj, field).and_then(Value::as_i64).filter(|n| *n < 0) {
            self.invalid(field, n, "must be greater than or equal to 0");
        }
    }

    /// A field that may not change; `shown` is its name in the message.
    fn immutable(&mut self, new: &Value, old: &Value, field: &str, shown: &str) {
        let (new, old) = (at(new, field), at(old, field));
        if new != old {
            self.invalid(shown, new.cloned().unwrap_or(Value::Null), IMMUTABLE);
        }
    }

    /// A string that has to keep to a naming rule, where it is set.
    fn named(&mut self, obj: &Value, field: &str, rule: names::Rule) {
        let value = at(obj, field).and_then(Value::as_str).unwrap_or_default();
        if !value.is_empty() {
            for problem in rule(value) {
                self.invalid(field, value, problem);
            }
        }
    }

    /// A label selector's syntax.
    fn selector(&mut self, obj: &Value, field: &str) {
        let Some(selector) = at(obj, field) else { return };
        meta::labels(self, selector.get("matchLabels"), &format!("{field}.matchLabels"));
        for (i, e) in crate::json::list(selector, "/matchExpressions").iter().enumerate() {
            let path = format!("{field}.matchExpressions[{i}]");
            let values = crate::json::list(e, "/values");
            match text(e, "/operator") {
                "In" | "NotIn" if values.is_empty() => self.required(
                    format!("{path}.values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ),
                "Exists" | "DoesNotExist" if !values.is_empty() => self.forbidden(
                    format!("{path}.values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ),
                "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
                other => self.invalid(format!("{path}.operator"), other, "not a valid selector operator"),
            }
            for problem in names::qualified(text(e, "/key")) {
                self.invalid(format!("{path}.key"), text(e, "/key"), problem);
            }
            for (n, value) in values.iter().enumerate() {
                for problem in names::label_value(value.as_str().unwrap_or_default()) {
                    self.invalid(format!("{path}.values[{n}]"), value.clone(), problem);
                }
            }
        }
    }
}

/// The value of a field named as messages name it, such as `spec.a.b`.
fn at<'a>(obj: &'a Value, field: &str) -> Option<&'a Value> {
    field.split(['.', '/']).try_fold(obj, step)
}

/// A copy of `spec` without some of its fields, to compare the rest.
fn without(obj: &Value, pointer: &str, fields: &[&str]) -> Value {
    let mut copy = obj.reach(pointer).cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(o) = &mut copy {
        for field in fields {
            o.remove(*field);
        }
    }
    copy
}
