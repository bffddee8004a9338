//! Metrics in the words of either version. The older one says in one flat struct what the newer one sorts into an
//! object, a metric and a target; what it calls the values depends on whether they are wished for or measured.

use crate::json::{Object, object, text};
use serde_json::{Map, Value};

/// Whether a metric is wished for (in the spec) or measured (in the status).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Target,
    Current,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Target => "target",
            Side::Current => "current",
        }
    }
}

/// Where a value of the older form is found in the newer one.
enum Place {
    Top(&'static str),
    Metric(&'static str),
    /// In the target or the current values.
    Value(&'static str),
}

/// A field of the older form, where it is in the newer one, and on which sides it is always shown.
type Row = (&'static str, Place, &'static [Side]);

/// The fields of a source in the older form; `$` stands for the side, and what is always shown is `0` where there is
/// none.
const SOURCES: &[(&str, &[Row])] = &[
    (
        "object",
        &[
            ("target", Place::Top("describedObject"), &[]),
            ("metricName", Place::Metric("name"), &[]),
            ("selector", Place::Metric("selector"), &[]),
            ("$Value", Place::Value("value"), &[Side::Target, Side::Current]),
            ("averageValue", Place::Value("averageValue"), &[]),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", Place::Metric("name"), &[]),
            ("selector", Place::Metric("selector"), &[]),
            ("$AverageValue", Place::Value("averageValue"), &[Side::Target, Side::Current]),
        ],
    ),
    (
        "resource",
        &[
            ("name", Place::Top("name"), &[]),
            ("$AverageUtilization", Place::Value("averageUtilization"), &[]),
            ("$AverageValue", Place::Value("averageValue"), &[Side::Current]),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", Place::Top("name"), &[]),
            ("container", Place::Top("container"), &[]),
            ("$AverageUtilization", Place::Value("averageUtilization"), &[]),
            ("$AverageValue", Place::Value("averageValue"), &[Side::Current]),
        ],
    ),
    (
        "external",
        &[
            ("metricName", Place::Metric("name"), &[]),
            ("metricSelector", Place::Metric("selector"), &[]),
            ("$Value", Place::Value("value"), &[Side::Current]),
            ("$AverageValue", Place::Value("averageValue"), &[]),
        ],
    ),
];

/// A metric of the newer form in the older one.
pub(super) fn to_v1(metric: &Value, side: Side) -> Value {
    convert(metric, |fields, source| {
        let mut flat = Map::new();
        for (name, place, always) in fields {
            let found = match place {
                Place::Top(key) => source.get(*key),
                Place::Metric(key) => source.get("metric").and_then(|m| m.get(*key)),
                Place::Value(key) => source.get(side.name()).and_then(|t| t.get(*key)),
            };
            let zero = always.contains(&side).then(|| Value::from("0"));
            if let Some(value) = found.cloned().or(zero) {
                flat.insert(name.replace('$', side.name()), value);
            }
        }
        flat
    })
}

/// A metric of the older form in the newer one.
pub(super) fn to_v2(metric: &Value, side: Side) -> Value {
    convert(metric, |fields, flat| {
        let mut source = Map::new();
        object(&mut source, side.name());
        for (name, place, always) in fields {
            let zero = always.contains(&side).then(|| Value::from("0"));
            let Some(value) = flat.get(name.replace('$', side.name()).as_str()).cloned().or(zero) else {
                continue;
            };
            let (part, key) = match place {
                Place::Top(key) => (&mut source, key),
                Place::Metric(key) => (object(&mut source, "metric"), key),
                Place::Value(key) => (object(&mut source, side.name()), key),
            };
            part.insert((*key).to_owned(), value);
        }
        if side == Side::Target {
            target_type(object(&mut source, "target"));
        }
        source
    })
}

fn convert(metric: &Value, source: impl Fn(&[Row], &Value) -> Object) -> Value {
    let mut converted = Map::new();
    converted.insert("type".into(), text(metric, "/type").into());
    for (part, fields) in SOURCES {
        if let Some(from) = metric.get(*part) {
            converted.insert((*part).to_owned(), Value::Object(source(fields, from)));
        }
    }
    Value::Object(converted)
}

/// The newer form says which of the values counts.
fn target_type(target: &mut Object) {
    let has = |key: &str| target.contains_key(key);
    let zero = target.get("value").is_some_and(|v| v == "0");
    let name = if has("averageUtilization") {
        "Utilization"
    } else if has("value") && !(zero && has("averageValue")) {
        "Value"
    } else {
        "AverageValue"
    };
    if zero && has("averageValue") {
        target.remove("value");
    }
    target.insert("type".into(), name.into());
}

/// Behaviour travels under the names that Go has for its fields, which start with a capital.
pub(super) fn rename_keys(v: &Value, first: fn(char) -> char) -> Value {
    match v {
        Value::Object(o) => {
            let renamed = o.iter().filter(|(_, v)| !v.is_null()).map(|(key, v)| {
                let mut letters = key.chars();
                let head = letters.next().map(first);
                (head.into_iter().chain(letters).collect(), rename_keys(v, first))
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.iter().map(|v| rename_keys(v, first)).collect(),
        other => other.clone(),
    }
}
