//! Agreement with Kubernetes: the same stories are told to the embedded server and to a real kube-apiserver, and what they
//! answer must be the same, word for word, once uids, versions and times have been given neutral names. No answer
//! is written down here: the real server is the judge.

mod differs;
mod stories;

use differs::DIFFERS;

use crate::support::{Answer, Embedded, send};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One request of a story. `{ns}` in paths and bodies is the story's own namespace.
pub struct Step {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    body: Make,
    /// Asked again until this holds: what the real server does in the background takes a moment.
    until: Option<fn(&Value) -> bool>,
}

type Make = Box<dyn Fn(&[Value]) -> Vec<u8>>;

impl Step {
    fn new(method: &'static str, path: &str, body: impl Fn(&[Value]) -> Vec<u8> + 'static) -> Self {
        Self {
            method,
            path: path.to_owned(),
            headers: vec![("user-agent", "agree/1")],
            body: Box::new(body),
            until: None,
        }
    }

    fn until(mut self, holds: fn(&Value) -> bool) -> Self {
        self.until = Some(holds);
        self
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

pub fn get(path: &str) -> Step {
    Step::new("GET", path, |_| Vec::new())
}

pub fn get_as(path: &str, accept: &'static str) -> Step {
    get(path).header("accept", accept)
}

pub fn delete(path: &str) -> Step {
    Step::new("DELETE", path, |_| Vec::new())
}

pub fn delete_with(path: &str, options: Value) -> Step {
    Step::new("DELETE", path, move |_| options.to_string().into_bytes())
        .header("content-type", "application/json")
}

pub fn post(path: &str, body: Value) -> Step {
    Step::new("POST", path, move |_| body.to_string().into_bytes()).header("content-type", "application/json")
}

pub fn post_text(path: &str, body: &'static str) -> Step {
    Step::new("POST", path, move |_| body.as_bytes().to_vec()).header("content-type", "application/json")
}

pub fn put(path: &str, body: Value) -> Step {
    Step::new("PUT", path, move |_| body.to_string().into_bytes()).header("content-type", "application/json")
}

/// Puts back the answer of an earlier step, edited.
pub fn put_edited(path: &str, step: usize, edit: impl Fn(&mut Value) + 'static) -> Step {
    Step::new("PUT", path, move |answers| {
        let mut body = answers[step].clone();
        edit(&mut body);
        body.to_string().into_bytes()
    })
    .header("content-type", "application/json")
}

fn patch(path: &str, kind: &'static str, body: Value) -> Step {
    Step::new("PATCH", path, move |_| body.to_string().into_bytes()).header("content-type", kind)
}

pub fn json_patch(path: &str, body: Value) -> Step {
    patch(path, "application/json-patch+json", body)
}

pub fn merge_patch(path: &str, body: Value) -> Step {
    patch(path, "application/merge-patch+json", body)
}

pub fn strategic(path: &str, body: Value) -> Step {
    patch(path, "application/strategic-merge-patch+json", body)
}

pub fn apply(path: &str, body: Value) -> Step {
    patch(path, "application/apply-patch+yaml", body)
}

/// A named story.
pub struct Story {
    name: &'static str,
    steps: Vec<Step>,
}

pub fn story(name: &'static str, steps: Vec<Step>) -> Story {
    Story { name, steps }
}

/// Tells a story and gives the answers with neutral names.
async fn tell(client: &kube::Client, story: &Story, namespace: &str) -> Vec<Value> {
    let make = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let made = send(
        client,
        "POST",
        "/api/v1/namespaces",
        &[("content-type", "application/json")],
        make.to_string().into_bytes(),
    )
    .await;
    assert_eq!(made.code, 201, "{}", made.body);
    let mut raw = Vec::new();
    let mut told = Vec::new();
    let mut names = Names::default();
    for step in &story.steps {
        let body =
            String::from_utf8((step.body)(&raw)).expect("text").replace("{ns}", namespace).into_bytes();
        let path = step.path.replace("{ns}", namespace);
        let mut answer = send(client, step.method, &path, &step.headers, body.clone()).await;
        for _ in 0..500 {
            if step.until.is_none_or(|holds| holds(&answer.body)) {
                break;
            }
            tokio::task::yield_now().await;
            answer = send(client, step.method, &path, &step.headers, body.clone()).await;
        }
        let Answer { code, warnings, body } = answer;
        raw.push(body.clone());
        let (mut warnings, mut body) = (warnings, body);
        // The version of a list is that of the whole server, which others move meanwhile.
        let kind = body["kind"].as_str().unwrap_or_default();
        if (kind.ends_with("List") || kind == "Table") && !body["metadata"]["resourceVersion"].is_null() {
            body["metadata"]["resourceVersion"] = "".into();
        }
        warnings.sort();
        told.push(json!({"code": code, "warnings": warnings, "body": names.neutral(body)}));
    }
    told
}

/// Gives every uid, version and time a name by the order in which it was first seen.
#[derive(Default)]
struct Names {
    seen: BTreeMap<(&'static str, String), usize>,
}

impl Names {
    fn name(&mut self, what: &'static str, value: &str) -> Value {
        let next = self.seen.keys().filter(|(kind, _)| *kind == what).count();
        let n = *self.seen.entry((what, value.to_owned())).or_insert(next);
        format!("<{what} {n}>").into()
    }

    fn neutral(&mut self, value: Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut out = serde_json::Map::new();
                for (field, below) in map {
                    let below = match (field.as_str(), &below) {
                        (
                            "uid" | "controller-uid" | "batch.kubernetes.io/controller-uid",
                            Value::String(uid),
                        ) => self.name("uid", uid),
                        ("resourceVersion", Value::String(version)) if !version.is_empty() => {
                            self.name("version", version)
                        }
                        (_, Value::String(text)) if is_about_now(text) => "<time>".into(),
                        ("continue" | "token", Value::String(_)) => "<opaque>".into(),
                        ("cells", Value::Array(cells)) => cells.iter().map(without_age).collect(),
                        ("message", Value::String(text)) => self.plain(text).into(),
                        // Go walks maps in no order; neither server promises one. Managers are ordered by the second of
                        // their last write, which may tick on either server between two steps.
                        ("causes" | "managedFields", Value::Array(list)) => {
                            let mut list = list.clone();
                            list.sort_by_key(Value::to_string);
                            self.neutral(Value::Array(list))
                        }
                        _ => self.neutral(below),
                    };
                    out.insert(field, below);
                }
                Value::Object(out)
            }
            Value::Array(list) => list.into_iter().map(|value| self.neutral(value)).collect(),
            other => other,
        }
    }

    /// Uids inside sentences get their names too.
    fn plain(&self, text: &str) -> String {
        let named = self.seen.iter().fold(text.to_owned(), |text, ((kind, value), n)| match *kind {
            "uid" => text.replace(value, &format!("<uid {n}>")),
            _ => text.replace(&format!("({value})"), &format!("(<version {n}>)")),
        });
        // Lists of faults come in no order.
        let mut parts: Vec<&str> = named.split([',', '[', ']', ':']).map(str::trim).collect();
        parts.sort_unstable();
        if named.contains(", ") { parts.join(" | ") } else { named }
    }
}

/// A time that a server took from its clock: the second may tick between two answers, whatever the field is called. A
/// time that a story gave lies years back and is compared as it is.
fn is_about_now(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok_and(|time| {
        time.duration_since(jiff::Timestamp::now()).abs() < jiff::SignedDuration::from_hours(24)
    })
}

/// An age in a table depends on when it is looked at.
fn without_age(cell: &Value) -> Value {
    let is_age = cell.as_str().is_some_and(|text| {
        text.strip_suffix('s')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    });
    if is_age { "<age>".into() } else { cell.clone() }
}

fn differences(place: &str, real: &Value, ours: &Value, out: &mut Vec<(String, String)>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let fields: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for field in fields {
                let null = Value::Null;
                let (x, y) = (a.get(field).unwrap_or(&null), b.get(field).unwrap_or(&null));
                differences(&format!("{place}/{field}"), x, y, out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                differences(&format!("{place}/{i}"), x, y, out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push((place.to_owned(), format!("kubernetes {a}\n      lifeboat   {b}"))),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_server_answers_as_kubernetes_does() {
    let Some(real) = lifeboat_testbed::real::shared("apiserver: agreement with kube-apiserver") else {
        return;
    };
    let real = real.client().await.expect("a client of the real server");
    let embedded = Embedded::start();
    let ours = embedded.client();
    let only = std::env::var("LIFEBOAT_STORY").unwrap_or_default();
    let mut report = String::new();
    let mut count = 0;
    for (i, story) in stories::all().into_iter().enumerate() {
        if !story.name.contains(&only) {
            continue;
        }
        count += 1;
        let namespace = format!("agree-{i}");
        let (theirs, ours) = (tell(&real, &story, &namespace).await, tell(&ours, &story, &namespace).await);
        let mut found = Vec::new();
        for (n, (real, ours)) in theirs.iter().zip(&ours).enumerate() {
            differences(&n.to_string(), real, ours, &mut found);
        }
        for (_, place, _) in DIFFERS.iter().filter(|(name, _, _)| *name == story.name) {
            let before = found.len();
            found.retain(|(found, _)| !found.starts_with(place));
            if found.len() == before {
                let _ = writeln!(
                    report,
                    "
{}: nothing differs at {place} any more, take the row away",
                    story.name
                );
            }
        }
        if !found.is_empty() {
            let _ = writeln!(report, "\n{}:", story.name);
            for (place, what) in found {
                let _ = writeln!(report, "  at {place}\n      {what}");
            }
        }
    }
    assert!(count > 0, "no story is named {only:?}");
    assert!(report.is_empty(), "the embedded server and kube-apiserver disagree:\n{report}");
}
