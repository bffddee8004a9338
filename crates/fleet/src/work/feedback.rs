//! Values of an object that a work asks to read back: those known for its kind, or those at paths. Pure.

use kube::api::DynamicObject;
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::work::{
    FeedbackRule, FeedbackRuleType, FeedbackValue, FieldValue, FieldValueType, ManifestConfig,
};
use lifeboat_engine::conditions::Holds;
use lifeboat_schema::jsonpath::JsonPath;
use serde_json::Value;

/// A value is no longer than this as JSON text.
const LONGEST: usize = 1024;

/// What was read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// The values that are there.
    pub values: Vec<FeedbackValue>,
    /// Whether all could be read.
    pub holds: Holds,
    /// One word on that.
    pub reason: &'static str,
    /// A sentence on that.
    pub message: String,
}

/// Reads back what the rules ask for.
pub fn read(object: &DynamicObject, config: &ManifestConfig) -> Feedback {
    if config.feedback_rules.is_empty() {
        let (reason, message) = (words::REASON_NO_FEEDBACK, String::new());
        return Feedback { values: Vec::new(), holds: Holds::True, reason, message };
    }
    let content = serde_json::to_value(object).unwrap_or_default();
    let mut values: Vec<FeedbackValue> = Vec::new();
    let mut faults = Vec::new();
    let mut asked = Vec::new();
    for rule in &config.feedback_rules {
        asked.extend(paths(rule, &content, &mut faults));
    }
    for (name, path) in asked {
        match value(&name, &path, &content) {
            // One of each name, as the list has it.
            Ok(Some(value)) if values.iter().all(|known| known.name != value.name) => values.push(value),
            Ok(_) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        let (reason, message) = (words::REASON_FEEDBACK_SYNCED, String::new());
        return Feedback { values, holds: Holds::True, reason, message };
    }
    let message = format!("Sync status feedback failed with error {}", faults.join(", "));
    Feedback { values, holds: Holds::False, reason: words::REASON_FEEDBACK_FAILED, message }
}

fn paths(rule: &FeedbackRule, content: &Value, faults: &mut Vec<String>) -> Vec<(String, String)> {
    let text = |field: &str| content.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    match rule.type_ {
        FeedbackRuleType::WellKnownStatus => {
            let known = well_known(api_version, kind);
            if known.is_empty() {
                faults.push(format!(
                    "cannot find the wellknown statuses for resource with gvk {api_version}, Kind={kind}"
                ));
            }
            known.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())).collect()
        }
        FeedbackRuleType::JsonPaths => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let mut paths = Vec::new();
            for path in &rule.json_paths {
                match &path.version {
                    Some(wanted) if !wanted.is_empty() && wanted != version => faults.push(format!(
                        "version set in the path {} is not matched for the related resource",
                        path.name
                    )),
                    _ => paths.push((path.name.clone(), path.path.clone())),
                }
            }
            paths
        }
        FeedbackRuleType::Other(_) => Vec::new(),
    }
}

fn well_known(api_version: &str, kind: &str) -> &'static [(&'static str, &'static str)] {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
        ("apps/v1", "DaemonSet") => &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
        ("batch/v1", "Job") => &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            ("JobSucceeded", ".status.succeeded"),
        ],
        ("v1", "Pod") => {
            &[("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#), ("PodPhase", ".status.phase")]
        }
        _ => &[],
    }
}

fn value(name: &str, path: &str, content: &Value) -> Result<Option<FeedbackValue>, String> {
    let parsed = JsonPath::parse(path)
        .map_err(|error| format!("failed to parse json path {path} of {name} with error: {error}"))?;
    let found = parsed.find(content);
    let field_value = match found.as_slice() {
        [] | [Value::Null] => return Ok(None),
        [one] => field(name, one)?,
        many => raw(name, &Value::Array(many.iter().map(|value| (*value).clone()).collect()))?,
    };
    Ok(Some(FeedbackValue { name: name.to_owned(), field_value }))
}

fn field(name: &str, value: &Value) -> Result<FieldValue, String> {
    let empty = FieldValue::default();
    Ok(match value {
        Value::Bool(flag) => FieldValue { type_: FieldValueType::Boolean, boolean: Some(*flag), ..empty },
        Value::String(text) => {
            FieldValue { type_: FieldValueType::String, string: Some(text.clone()), ..empty }
        }
        Value::Number(number) if number.is_i64() => {
            FieldValue { type_: FieldValueType::Integer, integer: number.as_i64(), ..empty }
        }
        other => raw(name, other)?,
    })
}

fn raw(name: &str, value: &Value) -> Result<FieldValue, String> {
    let text = value.to_string();
    if text.len() > LONGEST {
        return Err(format!(
            "the length of returned json raw string for name {name} is larger than the maximum length {LONGEST}"
        ));
    }
    Ok(FieldValue { type_: FieldValueType::JsonRaw, json_raw: Some(text), ..FieldValue::default() })
}
