//! Reads the key that both sides share. Nobody keeps it, and no error shows it.

use crate::source::failure::{Failure, Kind};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use lifeboat_stream::Key;

/// Under what the secret holds the key.
const PSK: &str = "psk.txt";

/// The key of a secret.
///
/// # Errors
/// When it cannot be read, or holds no key.
pub async fn key(client: &kube::Client, space: &str, name: &str) -> Result<Key, Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), space);
    let found = secrets.get_opt(name).await;
    let found = found.map_err(|error| {
        Failure::new(Kind::Link, format!("the secret {space}/{name} cannot be read: {error}"))
    })?;
    let bad = |why: String| Failure::new(Kind::Key, why);
    let secret = found.ok_or_else(|| {
        bad(format!(
            "the secret {space}/{name} does not exist: make it with the key of both sides under {PSK}"
        ))
    })?;
    let text = secret.data.as_ref().and_then(|data| data.get(PSK));
    let text = text.ok_or_else(|| bad(format!("the secret {space}/{name} has no {PSK}")))?;
    let text = std::str::from_utf8(&text.0)
        .map_err(|_| bad(format!("{PSK} of the secret {space}/{name} is no text")))?;
    Key::parse(text).map_err(|error| bad(format!("in the secret {space}/{name}: {error}")))
}
