//! The hub's own key, made once: its fingerprint tells fleets apart that share a store. A hub that cannot read it goes on without; groups keep the fleet
//! that they were given first.

use crate::secrets::Chance;
use crate::words::pairs;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, PostParams};
use lifeboat_api::labels;
use parking_lot::Mutex;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use std::fmt::Write as _;
use std::sync::Arc;

/// Name of the secret in the hub's namespace.
pub const SECRET: &str = "lifeboat-hub-key";
/// The key of that secret under which the 32 bytes stand that the key pair is made from.
pub const SEED: &str = "ed25519.seed";
/// How soon a key that could not be read is asked for again.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What is known of the key; clones share it.
#[derive(Clone, Default)]
pub(crate) struct FleetKey {
    /// Where it is; nobody who only looks needs one.
    home: Option<String>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    id: Option<String>,
    tried: Option<Timestamp>,
}

/// The fingerprint of the key that is made from a seed.
fn fingerprint(seed: &[u8]) -> Result<String, String> {
    let pair = Ed25519KeyPair::from_seed_unchecked(seed)
        .map_err(|_| format!("the secret {SECRET} has no {SEED} of 32 bytes"))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, pair.public_key().as_ref());
    Ok(digest.as_ref()[..16].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

impl FleetKey {
    /// The key in a namespace.
    pub(crate) fn of(home: Option<String>) -> Self {
        Self { home, known: Arc::default() }
    }

    /// The fingerprint, where it is known.
    pub(crate) fn id(&self) -> Option<String> {
        self.known.lock().id.clone()
    }

    /// Whether it shall be read now.
    pub(crate) fn is_wanting(&self, now: Timestamp) -> bool {
        let known = self.known.lock();
        let due = known.tried.is_none_or(|tried| now.duration_since(tried).abs() >= AGAIN);
        self.home.is_some() && known.id.is_none() && due
    }

    /// Reads the key, or makes it where there is none. A failure is told in the log and tried again later: it holds nothing up.
    pub(crate) async fn learn(&self, client: &kube::Client, chance: &Chance, now: Timestamp) {
        let Some(home) = &self.home else { return };
        let learned = read_or_make(client, home, chance).await;
        let mut known = self.known.lock();
        known.tried = Some(now);
        match learned {
            Ok(id) => known.id = Some(id),
            Err(why) => {
                tracing::warn!(secret = %format!("{home}/{SECRET}"), why, "the hub's key cannot be read; new groups carry no fleet");
            }
        }
    }
}

async fn read_or_make(client: &kube::Client, home: &str, chance: &Chance) -> Result<String, String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), home);
    // An answer may quote what was sent, so only its code is told.
    let said = |error: kube::Error| match error {
        kube::Error::Api(status) => format!("the server answers {}", status.code),
        _ => "the server does not answer".to_owned(),
    };
    let secret = match secrets.get_opt(SECRET).await.map_err(said)? {
        Some(secret) => secret,
        None => {
            let mut seed = vec![0u8; 32];
            chance(&mut seed);
            let made = Secret {
                metadata: ObjectMeta {
                    name: Some(SECRET.to_owned()),
                    namespace: Some(home.to_owned()),
                    // It is restored with the hub: without it the fleet would get another name.
                    labels: Some(pairs([(labels::OCM_BACKUP, labels::OCM_BACKUP_VALUE)])),
                    ..ObjectMeta::default()
                },
                data: Some([(SEED.to_owned(), ByteString(seed))].into()),
                type_: Some("Opaque".to_owned()),
                ..Secret::default()
            };
            // Another hub of the same fleet may be quicker: then its key is read the next time.
            secrets.create(&PostParams::default(), &made).await.map_err(said)?
        }
    };
    let seed = secret.data.as_ref().and_then(|data| data.get(SEED)).map(|bytes| bytes.0.clone());
    fingerprint(&seed.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_name() {
        let name = fingerprint(&[7; 32]).unwrap();
        assert_eq!((name.len(), fingerprint(&[7; 32]).unwrap()), (32, name.clone()));
        assert_ne!(fingerprint(&[8; 32]).unwrap(), name);
        assert!(fingerprint(&[7; 31]).unwrap_err().contains(SECRET));
    }

    #[test]
    fn a_key_that_cannot_be_read_is_not_asked_for_all_the_time() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert!(!FleetKey::of(None).is_wanting(at(0)));
        let key = FleetKey::of(Some("system".into()));
        assert!(key.is_wanting(at(0)));
        key.known.lock().tried = Some(at(0));
        assert!(!key.is_wanting(at(59)));
        assert!(key.is_wanting(at(60)));
    }
}
