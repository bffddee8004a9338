//! Certificate requests: what may be asked for, and who may change which part of the answer.
//!
//! That a request is signed by the key it names is left to whoever signs it: reading X.509 is not this crate's work.

use super::{Check, names};
use crate::json::{blank, int, list, text};
use base64::Engine as _;
use lifeboat_schema::{FieldError, Reach};
use serde_json::Value;
use std::collections::BTreeSet;

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

const CONDITIONS: &str = "status.conditions";
const CERTIFICATE: &str = "status.certificate";

/// A request, whole or in part; `subresource` says which part a write may change.
pub(super) fn request(check: &mut Check, obj: &Value, old: Option<&Value>, subresource: &str) {
    spec(check, obj);
    conditions(check, obj);
    if let Some(old) = old {
        changes(check, obj, old, subresource);
    }
}

fn spec(check: &mut Check, obj: &Value) {
    let request = text(obj, "/spec/request");
    if !is_request(request) {
        check.invalid("spec.request", request, "PEM block type must be CERTIFICATE REQUEST");
    }
    let usages = list(obj, "/spec/usages");
    if usages.is_empty() {
        check.required("spec.usages", "");
    }
    let mut seen = BTreeSet::new();
    for (i, usage) in usages.iter().enumerate() {
        let (field, name) = (format!("spec.usages[{i}]"), usage.as_str().unwrap_or_default());
        if !USAGES.contains(&name) {
            check.push(FieldError::not_supported(field.as_str(), usage.clone(), USAGES));
        }
        if !seen.insert(name) {
            check.push(FieldError::duplicate(field, usage.clone()));
        }
    }
    signer(check, text(obj, "/spec/signerName"));
    let seconds = obj.reach("/spec/expirationSeconds");
    if seconds.is_some() && int(obj, "/spec/expirationSeconds") < 600 {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        check.invalid("spec.expirationSeconds", int(obj, "/spec/expirationSeconds"), detail);
    }
}

fn is_request(encoded: &str) -> bool {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE REQUEST-----")
}

fn signer(check: &mut Check, name: &str) {
    let field = "spec.signerName";
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        return if name.is_empty() {
            check.required(field, "");
        } else {
            check.invalid(
                field,
                name,
                "must be a fully qualified domain and path of the form 'example.com/signer-name'",
            );
        };
    };
    if name == "kubernetes.io/legacy-unknown" {
        return check.invalid(field, name, "the legacy signerName is not allowed via this API version");
    }
    for problem in names::subdomain(domain) {
        check.invalid(field, domain, problem);
    }
    if !domain.contains('.') {
        check.invalid(field, domain, "should be a domain with at least two segments separated by dots");
    }
    for problem in names::subdomain(path) {
        check.invalid(field, path, problem);
    }
}

fn conditions(check: &mut Check, obj: &Value) {
    let mut seen = BTreeSet::new();
    for (i, condition) in list(obj, "/status/conditions").iter().enumerate() {
        let path = format!("{CONDITIONS}[{i}]");
        let name = text(condition, "/type");
        if name.is_empty() {
            check.required(format!("{path}.type"), "");
        }
        let supported: &[&str] = match name {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        match text(condition, "/status") {
            "" => check.required(format!("{path}.status"), ""),
            status if !supported.contains(&status) => {
                check.push(FieldError::not_supported(format!("{path}.status"), status, supported));
            }
            _ => {}
        }
        let other = if name == "Approved" { "Denied" } else { "Approved" };
        if ["Approved", "Denied"].contains(&name) && seen.contains(other) {
            check.invalid(CONDITIONS, name, "Approved and Denied conditions are mutually exclusive");
        }
        if !seen.insert(name) {
            check.push(FieldError::duplicate(format!("{path}.type"), name));
        }
    }
}

fn changes(check: &mut Check, obj: &Value, old: &Value, subresource: &str) {
    let named = |obj: &Value, name: &str| -> Vec<Value> {
        list(obj, "/status/conditions").iter().filter(|c| text(c, "/type") == name).cloned().collect()
    };
    for name in ["Approved", "Denied", "Failed"] {
        let (now, before) = (named(obj, name), named(old, name));
        let detail = if now.len() < before.len() {
            "remove"
        } else if name == "Failed" || subresource == "approval" || now == before {
            continue;
        } else if now.len() > before.len() {
            "add"
        } else {
            "modify"
        };
        check.forbidden(CONDITIONS, format!("updates may not {detail} a condition of type {name:?}"));
    }
    let (now, before) = (obj.reach("/status/certificate"), old.reach("/status/certificate"));
    if now != before && subresource != "status" {
        check.forbidden(CERTIFICATE, "updates may not set certificate content");
    } else if now != before && !blank(before) {
        check.forbidden(CERTIFICATE, "updates may not modify existing certificate content");
    }
}
