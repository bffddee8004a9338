//! The fields that a field selector may name.

use crate::Kind;
use crate::json::{int, text};
use lifeboat_schema::Reach;
use serde_json::Value;

impl Kind {
    /// The selectable fields of an object with their values; a selector that names any other field is refused. `obj` is in
    /// its stored form: an events.k8s.io Event is read as the core Event that it is kept as.
    #[must_use]
    pub fn selectable_fields(&self, obj: &Value) -> Vec<(&'static str, String)> {
        let mut fields = vec![("metadata.name", text(obj, "/metadata/name").to_owned())];
        if self.namespaced {
            fields.push(("metadata.namespace", text(obj, "/metadata/namespace").to_owned()));
        }
        let mut add = |name, value: &str| fields.push((name, value.to_owned()));
        match (self.group, self.kind) {
            ("", "Pod") => {
                add("spec.nodeName", text(obj, "/spec/nodeName"));
                add("spec.restartPolicy", text(obj, "/spec/restartPolicy"));
                add("spec.schedulerName", text(obj, "/spec/schedulerName"));
                add("spec.serviceAccountName", text(obj, "/spec/serviceAccountName"));
                add("spec.hostNetwork", flag(obj, "/spec/hostNetwork"));
                add("status.phase", text(obj, "/status/phase"));
                add("status.podIP", text(obj, "/status/podIPs/0/ip"));
                add("status.podIPs", "");
                add("status.nominatedNodeName", text(obj, "/status/nominatedNodeName"));
            }
            ("", "Node") => add("spec.unschedulable", flag(obj, "/spec/unschedulable")),
            ("", "Namespace") => add("status.phase", text(obj, "/status/phase")),
            ("", "Secret") => add("type", text(obj, "/type")),
            ("", "Service") => {
                add("spec.clusterIP", text(obj, "/spec/clusterIP"));
                add("spec.type", text(obj, "/spec/type"));
            }
            ("", "ReplicationController") | ("apps", "ReplicaSet") => {
                add("status.replicas", &int(obj, "/status/replicas").to_string());
            }
            ("certificates.k8s.io", "CertificateSigningRequest") => {
                add("spec.signerName", text(obj, "/spec/signerName"));
            }
            ("batch", "Job") => add("status.successful", &int(obj, "/status/succeeded").to_string()),
            (group, "Event") => {
                let core = group.is_empty();
                let mut both =
                    |core_name, new_name, value: &str| add(if core { core_name } else { new_name }, value);
                for (core_name, new_name, pointer) in [
                    ("involvedObject.kind", "regarding.kind", "/involvedObject/kind"),
                    ("involvedObject.namespace", "regarding.namespace", "/involvedObject/namespace"),
                    ("involvedObject.name", "regarding.name", "/involvedObject/name"),
                    ("involvedObject.uid", "regarding.uid", "/involvedObject/uid"),
                    ("involvedObject.apiVersion", "regarding.apiVersion", "/involvedObject/apiVersion"),
                    (
                        "involvedObject.resourceVersion",
                        "regarding.resourceVersion",
                        "/involvedObject/resourceVersion",
                    ),
                    ("involvedObject.fieldPath", "regarding.fieldPath", "/involvedObject/fieldPath"),
                    ("reason", "reason", "/reason"),
                    ("reportingComponent", "reportingController", "/reportingComponent"),
                    ("type", "type", "/type"),
                ] {
                    both(core_name, new_name, text(obj, pointer));
                }
                if core {
                    let component = text(obj, "/source/component");
                    let source =
                        if component.is_empty() { text(obj, "/reportingComponent") } else { component };
                    add("source", source);
                }
            }
            _ => {}
        }
        fields
    }
}

fn flag(obj: &Value, pointer: &str) -> &'static str {
    if obj.reach(pointer) == Some(&Value::Bool(true)) { "true" } else { "false" }
}
