//! Who is asking, and may they? Identity comes from a client certificate or a bearer token; permission from RBAC objects
//! in the cluster itself. An embedded cluster is not an open door: without credentials one is `system:anonymous`.

mod bootstrap;
mod rbac;
mod reviews;
mod tokens;

pub use bootstrap::bootstrap;
pub(crate) use rbac::Rights;
pub use rbac::{Attributes, covers};
pub use tokens::{TokenKey, TokenKeyError};

use crate::cluster::Cluster;
use crate::error::{ApiError, Result};
use http::HeaderMap;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The group whose members may do anything.
pub const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// User name.
    pub name: String,
    /// Groups.
    pub groups: Vec<String>,
    /// Uid, of service accounts.
    pub uid: String,
    /// More about them, such as the pod a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with groups, authenticated.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self { name: name.into(), groups, uid: String::new(), extra: BTreeMap::new() }
    }

    /// Somebody who may do anything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", &[MASTERS])
    }

    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", &[UNAUTHENTICATED])
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        let mut user = Self::new(&format!("system:serviceaccount:{namespace}:{name}"), &groups);
        user.uid = uid.into();
        user
    }

    /// As reviews show a user.
    pub fn to_json(&self) -> Value {
        let mut user = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            user["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            user["extra"] = json!(self.extra);
        }
        user
    }
}

/// How an unknown caller is identified.
pub struct Authenticator {
    /// Fixed tokens and whose they are.
    pub tokens: BTreeMap<String, User>,
    /// Signs and checks the tokens of service accounts.
    pub key: TokenKey,
}

impl Authenticator {
    /// Who sends this request; `certificate` is the user of a verified client certificate.
    pub fn identify(
        &self,
        cluster: &Cluster,
        headers: &HeaderMap,
        certificate: Option<&User>,
    ) -> Result<User> {
        let authorization = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = authorization.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let user = match (certificate, token) {
            (Some(user), _) => user.clone(),
            (None, Some(token)) => self.of_token(cluster, token, &[]).ok_or_else(ApiError::unauthorized)?,
            (None, None) => User::anonymous(),
        };
        Ok(user)
    }

    /// Whose token this is, if it is good for one of the audiences (for this server when none is named).
    pub fn of_token(&self, cluster: &Cluster, token: &str, audiences: &[String]) -> Option<User> {
        // Comparing every known token in full keeps the time of a miss independent of how close it was.
        let known = self.tokens.iter().find(|(known, _)| same(known.as_bytes(), token.as_bytes()));
        match known {
            Some((_, user)) => Some(user.clone()),
            None => self.key.verify(cluster, token, audiences),
        }
    }
}

fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (x, y)| differ | (x ^ y)) == 0
}

/// Takes on another identity where the headers ask for it and the user may.
pub fn impersonate(cluster: &Cluster, user: User, headers: &HeaderMap) -> Result<User> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Some(name) = header("impersonate-user") else { return Ok(user) };
    let groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .collect();
    let mut wanted = vec![("users", name.clone(), "")];
    if let Some(rest) = name.strip_prefix("system:serviceaccount:")
        && let Some((namespace, account)) = rest.split_once(':')
    {
        wanted = vec![("serviceaccounts", account.to_owned(), namespace)];
    }
    wanted.extend(groups.iter().map(|group| ("groups", group.clone(), "")));
    for (resource, name, namespace) in &wanted {
        let attributes = Attributes { verb: "impersonate", resource, name, namespace, ..Default::default() };
        authorize(cluster, &user, &attributes)?;
    }
    let mut acting = match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
        Some((namespace, account)) if groups.is_empty() => User::service_account(namespace, account, ""),
        _ => User::new(&name, &groups.iter().map(String::as_str).collect::<Vec<_>>()),
    };
    if name == "system:anonymous" {
        acting = User::anonymous();
    }
    acting.uid = header("impersonate-uid").unwrap_or(acting.uid);
    Ok(acting)
}

pub use rbac::{authorize, check_escalation};
pub use reviews::{review, token_request};
