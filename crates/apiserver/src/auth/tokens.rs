//! Tokens of service accounts: JSON web tokens, signed with a key of the cluster's own (ES256), bound to the account and,
//! where asked, to a pod, secret or node, and worthless when what they are bound to is gone.

use super::User;
use crate::cluster::Cluster;
use crate::object::Object;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};

/// The issuer named in tokens, and the audience of those meant for this server.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The key could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("the signing key of service account tokens is unusable: {0}")]
pub struct TokenKeyError(String);

/// Signs and checks tokens.
pub struct TokenKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

/// What a token is bound to beside its account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// Kind: Pod, Secret or Node.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

impl TokenKey {
    /// A new key, as PKCS#8.
    pub fn generate() -> Result<Vec<u8>, TokenKeyError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Ok(document.map_err(|_| TokenKeyError("no random numbers to make it from".into()))?.as_ref().to_vec())
    }

    /// A key from PKCS#8.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, TokenKeyError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random);
        let pair = pair.map_err(|error| TokenKeyError(error.to_string()))?;
        Ok(Self { pair, random })
    }

    /// A token for an account.
    pub fn sign(&self, claims: &Value) -> Result<String, TokenKeyError> {
        let head = json!({"alg": "ES256", "kid": "lifeboat", "typ": "JWT"});
        let text =
            format!("{}.{}", encode(head.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let signature = self.pair.sign(&self.random, text.as_bytes());
        let signature = signature.map_err(|_| TokenKeyError("no random numbers to sign with".into()))?;
        Ok(format!("{text}.{}", encode(signature.as_ref())))
    }

    /// Whose token it is, if it is one of ours, still good, and meant for one of the audiences.
    pub fn verify(&self, cluster: &Cluster, token: &str, audiences: &[String]) -> Option<User> {
        let claims = self.claims(token)?;
        let now = cluster.now().as_second();
        let time = |name: &str| claims[name].as_i64();
        if time("exp").is_none_or(|end| end <= now) || time("nbf").is_some_and(|start| start > now + 10) {
            return None;
        }
        let meant_for: Vec<&str> = claims["aud"].as_array()?.iter().filter_map(Value::as_str).collect();
        let accepted = if audiences.is_empty() {
            meant_for.contains(&ISSUER)
        } else {
            audiences.iter().any(|audience| meant_for.contains(&audience.as_str()))
        };
        let bound = &claims["kubernetes.io"];
        let namespace = bound["namespace"].as_str()?;
        let name = bound["serviceaccount"]["name"].as_str()?;
        let account = cluster.find("serviceaccounts", namespace, name)?;
        let uid = account.meta_str("uid");
        if !accepted || claims["iss"] != ISSUER || bound["serviceaccount"]["uid"] != uid {
            return None;
        }
        let mut user = User::service_account(namespace, name, uid);
        for (field, collection, home) in
            [("pod", "pods", namespace), ("secret", "secrets", namespace), ("node", "nodes", "")]
        {
            let Some(name) = bound[field]["name"].as_str() else { continue };
            let found = cluster.find(collection, home, name)?;
            if bound[field]["uid"] != found.meta_str("uid") {
                return None;
            }
            let key = |part: &str| format!("authentication.kubernetes.io/{field}-{part}");
            user.extra.insert(key("name"), vec![name.to_owned()]);
            user.extra.insert(key("uid"), vec![found.meta_str("uid").to_owned()]);
        }
        if let Some(id) = claims["jti"].as_str() {
            user.extra.insert("authentication.kubernetes.io/credential-id".into(), vec![format!("JTI={id}")]);
        }
        Some(user)
    }

    fn claims(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let (head, body) = text.split_once('.')?;
        let head: Value = serde_json::from_slice(&decode(head)?).ok()?;
        if head["alg"] != "ES256" {
            return None;
        }
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        public.verify(text.as_bytes(), &decode(signature)?).ok()?;
        serde_json::from_slice(&decode(body)?).ok()
    }
}

/// The claims of a token for an account.
pub fn claims(
    account: &Value,
    bound: Option<&Bound>,
    audiences: &[String],
    now: i64,
    until: i64,
    id: &str,
) -> Value {
    let (namespace, name, uid) =
        (account.meta_str("namespace"), account.meta_str("name"), account.meta_str("uid"));
    let mut about = json!({"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}});
    if let Some(bound) = bound {
        about[bound.kind.to_ascii_lowercase()] = json!({"name": bound.name, "uid": bound.uid});
    }
    let audiences = if audiences.is_empty() { vec![ISSUER.to_owned()] } else { audiences.to_vec() };
    json!({
        "iss": ISSUER, "sub": format!("system:serviceaccount:{namespace}:{name}"), "aud": audiences,
        "iat": now, "nbf": now, "exp": until, "jti": id, "kubernetes.io": about,
    })
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
