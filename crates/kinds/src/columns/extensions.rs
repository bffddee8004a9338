//! The cells of the kinds that extend or tune an API server: webhooks, policies, services, flows, certificates.

use super::age::human;
use super::cells::{or, requirements};
use super::pod;
use crate::json::{list, text};
use lifeboat_schema::Reach;
use serde_json::{Value, json};

/// The cells of one object; where the age stands depends on the kind.
pub(super) fn cells(kind: &str, obj: &Value, aged: Value) -> Vec<Value> {
    let t = |pointer: &str| Value::from(text(obj, pointer));
    let name = t("/metadata/name");
    match kind {
        "APIService" => {
            let service = obj
                .reach("/spec/service")
                .map_or("Local".into(), |s| format!("{}/{}", text(s, "/namespace"), text(s, "/name")));
            vec![name, json!(service), json!(available(obj)), aged]
        }
        "CertificateSigningRequest" => {
            let duration = obj.reach("/spec/expirationSeconds").and_then(Value::as_i64);
            let duration = duration.map_or("<none>".into(), human);
            let signer = or(text(obj, "/spec/signerName"), "<none>");
            vec![name, aged, signer, t("/spec/username"), json!(duration), json!(request_state(obj))]
        }
        "FlowSchema" => {
            let precedence = crate::json::int(obj, "/spec/matchingPrecedence");
            let method = obj.reach("/spec/distinguisherMethod").map_or("<none>", |m| text(m, "/type"));
            let dangling = condition(obj, "Dangling").map_or("?", |c| text(c, "/status"));
            let level = t("/spec/priorityLevelConfiguration/name");
            vec![name, level, json!(precedence), json!(method), aged, json!(dangling)]
        }
        "PriorityLevelConfiguration" => {
            let amount = |pointer: &str| obj.reach(pointer).cloned().unwrap_or_else(|| "<none>".into());
            let queuing = |key: &str| amount(&format!("/spec/limited/limitResponse/queuing/{key}"));
            vec![
                name,
                t("/spec/type"),
                amount("/spec/limited/nominalConcurrencyShares"),
                queuing("queues"),
                queuing("handSize"),
                queuing("queueLengthLimit"),
                aged,
            ]
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![name, json!(list(obj, "/webhooks").len()), aged]
        }
        "ValidatingAdmissionPolicy" => {
            let kind = obj
                .reach("/spec/paramKind")
                .map_or("<unset>".into(), |p| format!("{}/{}", text(p, "/apiVersion"), text(p, "/kind")));
            vec![name, json!(list(obj, "/spec/validations").len()), json!(kind), aged]
        }
        "ValidatingAdmissionPolicyBinding" => {
            vec![name, t("/spec/policyName"), json!(parameters(obj)), aged]
        }
        _ => vec![name, t("/handler"), aged],
    }
}

fn condition<'a>(obj: &'a Value, name: &str) -> Option<&'a Value> {
    pod::condition(list(obj, "/status/conditions"), name)
}

fn available(obj: &Value) -> String {
    match condition(obj, "Available") {
        None => "Unknown".into(),
        Some(c) if text(c, "/status") == "True" || text(c, "/reason").is_empty() => text(c, "/status").into(),
        Some(c) => format!("{} ({})", text(c, "/status"), text(c, "/reason")),
    }
}

fn request_state(obj: &Value) -> String {
    let has = |name: &str| condition(obj, name).is_some();
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        _ => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(obj, "/status/certificate").is_empty() {
        state.push_str(",Issued");
    }
    state
}

/// What a policy's parameters are read from; without a namespace it may be any.
fn parameters(obj: &Value) -> String {
    let Some(reference) = obj.reach("/spec/paramRef") else { return "<unset>".into() };
    match (text(reference, "/name"), text(reference, "/namespace")) {
        ("", _) => reference.get("selector").map_or("<unset>".into(), |s| requirements(Some(s))),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
