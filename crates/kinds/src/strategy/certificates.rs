//! Certificate requests: who asked is the server's word, and approval is written apart from everything else.

use crate::Kind;
use crate::json::{Object, carry, fill, list, object, text};
use serde_json::Value;

/// What the server says about who asked.
const REQUESTER: [&str; 4] = ["username", "uid", "groups", "extra"];

impl Kind {
    /// Writes who asks for a certificate; other kinds do not say who created them. `user` has the form of `userInfo` in a
    /// review: username, uid, groups and extra. To be called after [`Kind::prepare_create`], which drops what a body
    /// says about that.
    pub fn record_requester(&self, obj: &mut Value, user: &Value) {
        if let (Value::Object(o), "CertificateSigningRequest") = (obj, self.kind) {
            let spec = object(o, "spec");
            REQUESTER.iter().for_each(|key| carry(spec, user, key));
        }
    }
}

/// A body cannot name another requester.
pub(super) fn anonymous(spec: &mut Object) {
    spec.retain(|key, _| !REQUESTER.contains(&key.as_str()));
}

/// An approval changes conditions and nothing else of the status.
pub(super) fn approval(o: &mut Object, old: &Value) {
    let wanted = o.get("status").cloned().unwrap_or_default();
    for key in ["spec", "status"] {
        carry(o, old, key);
    }
    carry(object(o, "status"), &wanted, "conditions");
}

/// A status write cannot change an approval: as long as as many are there as before, they stay what they were.
pub(super) fn keep_approval(o: &mut Object, old: &Value) {
    let Some(Value::Array(conditions)) = object(o, "status").get_mut("conditions") else { return };
    for name in ["Approved", "Denied"] {
        let is = |c: &&Value| text(c, "/type") == name;
        let before: Vec<&Value> = list(old, "/status/conditions").iter().filter(is).collect();
        if conditions.iter().filter(is).count() == before.len() {
            let same = conditions.iter_mut().filter(|c| text(c, "/type") == name);
            same.zip(before).for_each(|(new, old)| *new = old.clone());
        }
    }
}

/// Conditions carry when they were written and when they last changed.
pub(super) fn condition_times(o: &mut Object, old: &Value, now: jiff::Timestamp) {
    let now = format!("{now:.0}");
    let conditions = object(o, "status").get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        fill(condition, "lastUpdateTime", now.as_str());
        let same = |c: &&Value| ["type", "status"].iter().all(|k| c.get(k) == condition.get(*k));
        let before =
            list(old, "/status/conditions").iter().find(same).map(|c| text(c, "/lastTransitionTime"));
        let since = before.filter(|t| !t.is_empty()).unwrap_or(&now).to_owned();
        fill(condition, "lastTransitionTime", since);
    }
}
