//! Kinds that are stored and served for the sake of clients that expect them, but that nothing in this server acts on.

use crate::Kind;

impl Kind {
    /// Why objects of this kind have no effect here, in one sentence for whoever creates one; `None` for all others.
    #[must_use]
    pub fn inert(&self) -> Option<&'static str> {
        Some(match (self.group, self.kind) {
            (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
            ) => "this server does not call admission webhooks: the object is stored but has no effect",
            ("admissionregistration.k8s.io", _) => {
                "this server does not evaluate admission policies: the object is stored but has no effect"
            }
            ("apiregistration.k8s.io", "APIService") => {
                "this server does not forward requests to other API servers: the object is stored but has no effect"
            }
            ("flowcontrol.apiserver.k8s.io", _) => {
                "this server does not queue requests by priority: the object is stored but has no effect"
            }
            ("", "ResourceQuota") => {
                "this server does not enforce quotas: the object is stored but has no effect"
            }
            ("", "LimitRange") => {
                "this server does not apply limit ranges to pods and claims: the object is stored but has no effect"
            }
            ("autoscaling", "HorizontalPodAutoscaler") => {
                "this server does not scale workloads by load: the object is stored but has no effect"
            }
            _ => return None,
        })
    }
}
