//! Looks at every request of the hub. S31: what changes or removes anything names the object by identity and version, so that the server compares
//! and no read before it could be fresher; and what gives a role, takes one away or removes a group follows a read from the server itself of the
//! DRPlacementControl that it is done for, which the server cannot compare. S33: nothing is written outside the application's
//! namespace and those of the clusters.

use crate::drpc::fleet::DRPC;
use crate::drpc::spoke::Spoke;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

/// What one life of the hub has asked for, in order; clones share it.
#[derive(Clone, Default)]
pub struct Witness {
    broken: Arc<Mutex<Option<String>>>,
    /// The role that each work of a group says.
    roles: Arc<Mutex<BTreeMap<String, String>>>,
    /// The role that it was last told, whatever came of it: a process that dies does not learn that.
    told: Arc<Mutex<BTreeMap<String, String>>>,
    spokes: Arc<Mutex<Vec<Spoke>>>,
}

/// One request in short.
#[derive(Debug, Clone)]
struct Line {
    method: Method,
    path: String,
}

impl Witness {
    /// One that knows how the clusters really are.
    pub fn over(spokes: Arc<Mutex<Vec<Spoke>>>) -> Self {
        Self { spokes, ..Self::default() }
    }

    /// The same client, looked at.
    pub fn watch(&self, client: kube::Client) -> kube::Client {
        kube::Client::new(Watched { inner: client, witness: self.clone(), lines: Arc::default() }, "default")
    }

    /// What was wrong, if anything was.
    pub fn verdict(&self) -> Result<(), String> {
        self.broken.lock().clone().map_or(Ok(()), Err)
    }

    fn judge(&self, lines: &[Line], now: &Line, body: &Value) {
        let known = group_work(now, body).and_then(|object| self.role(&object));
        if let Err(why) = confined(now).and_then(|()| guarded(lines, now, body, known)) {
            let told = format!("{why}: {} {} {body:.2000}", now.method, now.path);
            self.broken.lock().get_or_insert(told);
        }
    }

    /// The role that a work says; where there is none, the one that its cluster has.
    fn role(&self, object: &str) -> Option<String> {
        if let Some(known) = self.roles.lock().get(object) {
            return Some(known.clone());
        }
        if let Some(told) = self.told.lock().get(object) {
            return Some(told.clone());
        }
        let spokes = self.spokes.lock();
        let spoke = spokes.iter().find(|spoke| object.contains(&format!("/namespaces/{}/", spoke.name)))?;
        Some(spoke.group()?.spec.replication_state.as_str().to_owned())
    }

    /// A write is about to be done: until it is known what came of it, both roles may be what the work says.
    fn tries(&self, line: &Line, body: &Value) {
        if let (Some(object), Some(role)) = (group_work(line, body), role_in(body)) {
            self.roles.lock().remove(&object);
            self.told.lock().insert(object, role);
        }
    }

    /// What came of it.
    fn note(&self, line: &Line, body: &Value, before: Option<String>, done: bool) {
        let Some(object) = group_work(line, body) else { return };
        let role = if done { role_in(body) } else { before };
        match role {
            Some(role) => drop(self.roles.lock().insert(object, role)),
            None if line.method == Method::DELETE && done => {
                self.roles.lock().remove(&object);
                self.told.lock().remove(&object);
            }
            None => {}
        }
    }
}

fn is_write(line: &Line) -> bool {
    line.method != Method::GET
}

/// S33, for what is written on the hub itself.
fn confined(now: &Line) -> Result<(), String> {
    let space =
        now.path.split_once("/namespaces/").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    match space {
        Some(space) if is_write(now) && !["shop", "east", "west"].contains(&space) => {
            Err(format!("S33 within the namespace: the hub writes in {space}"))
        }
        None if is_write(now) => {
            Err("S33 within the namespace: the hub writes what is everybody's".to_owned())
        }
        _ => Ok(()),
    }
}

/// S31.
fn guarded(lines: &[Line], now: &Line, body: &Value, known: Option<String>) -> Result<(), String> {
    let broken = |why: &str| Err(format!("S31 preconditions: {why}"));
    let deletes = now.method == Method::DELETE;
    let named = |field: &str| {
        let place = if deletes { "/preconditions/" } else { "/metadata/" };
        body.pointer(&format!("{place}{field}")).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    };
    let changes = deletes || now.method == Method::PATCH || now.method == Method::PUT;
    let is_event = now.path.contains("/events");
    if changes && !is_event && !(named("uid") && named("resourceVersion")) {
        return broken("it names no identity and version");
    }
    let read = |wanted: &str| {
        let last = lines.iter().rev().find(|line| line.path.ends_with(wanted));
        match last.is_some_and(|line| !is_write(line)) {
            true => Ok(()),
            false => broken(&format!("{wanted} was not read from the server right before")),
        }
    };
    if group_work(now, body).is_none() {
        return Ok(());
    }
    // What only refreshes a group, and what takes one up as it is, changes no role.
    if !deletes && role_in(body).is_none_or(|role| Some(role) == known) {
        return Ok(());
    }
    read(&format!("/drplacementcontrols/{DRPC}"))
}

/// The path of the work with the group that a write is about.
fn group_work(now: &Line, body: &Value) -> Option<String> {
    let named = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let path = if now.method == Method::POST { format!("{}/{named}", now.path) } else { now.path.clone() };
    (is_write(now) && path.contains("/manifestworks/") && path.ends_with("-vrg-mw")).then_some(path)
}

fn role_in(body: &Value) -> Option<String> {
    let role = body.pointer("/spec/workload/manifests/0/spec/replicationState")?;
    role.as_str().map(str::to_owned)
}

#[derive(Clone)]
struct Watched {
    inner: kube::Client,
    witness: Witness,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Service<Request<Body>> for Watched {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { inner, witness, lines } = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let line = Line { method: head.method.clone(), path: head.uri.path().to_owned() };
            let said = serde_json::from_slice(&bytes).unwrap_or_default();
            witness.judge(&lines.lock(), &line, &said);
            lines.lock().push(line.clone());
            let before = group_work(&line, &said).and_then(|object| witness.role(&object));
            witness.tries(&line, &said);
            let answer = inner.send(Request::from_parts(head, Body::from(bytes))).await?;
            witness.note(&line, &said, before, answer.status().is_success());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WORK: &str =
        "/apis/work.open-cluster-management.io/v1/namespaces/east/manifestworks/web-shop-vrg-mw";
    const OWNER: &str = "/apis/ramendr.openshift.io/v1alpha1/namespaces/shop/drplacementcontrols/web";

    fn line(method: Method, path: &str) -> Line {
        Line { method, path: path.to_owned() }
    }

    fn says(role: &str) -> Value {
        json!({
            "metadata": { "uid": "u", "resourceVersion": "1" },
            "spec": { "workload": { "manifests": [{ "spec": { "replicationState": role } }] } },
        })
    }

    #[test]
    fn the_witness_notices() {
        let read = [line(Method::GET, OWNER)];
        let stale = [line(Method::GET, OWNER), line(Method::PATCH, OWNER)];
        let check = |lines: &[Line], now: Line, body: Value, known: &str, fine: bool| {
            let told = confined(&now).and_then(|()| guarded(lines, &now, &body, Some(known.to_owned())));
            assert_eq!(told.is_ok(), fine, "{told:?} {now:?} {body}");
        };
        let patch = || line(Method::PATCH, WORK);
        check(&read, patch(), says("primary"), "secondary", true);
        check(&[], patch(), says("primary"), "secondary", false);
        check(&stale, patch(), says("primary"), "secondary", false);
        // What stays in its role is only compared.
        check(&[], patch(), says("primary"), "primary", true);
        let mut unguarded = says("primary");
        unguarded["metadata"] = json!({ "uid": "u" });
        check(&read, patch(), unguarded, "primary", false);
        let deletes = || line(Method::DELETE, WORK);
        let this = json!({ "preconditions": { "uid": "u", "resourceVersion": "1" } });
        check(&read, deletes(), this.clone(), "secondary", true);
        check(&[], deletes(), this, "secondary", false);
        check(&read, deletes(), json!({ "preconditions": { "uid": "u" } }), "secondary", false);
        check(&read, deletes(), json!({}), "secondary", false);
        let elsewhere = |path: &str| line(Method::POST, path);
        check(&[], elsewhere("/api/v1/namespaces/bank/secrets"), json!({}), "", false);
        check(&[], elsewhere("/api/v1/namespaces/shop/secrets"), json!({}), "", true);
        check(&[], elsewhere("/api/v1/namespaces"), json!({}), "", false);
    }
}
