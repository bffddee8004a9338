//! From a SnapshotBackupStorage and its Secret to a repository that can be opened. Pure: nothing is reached here, and no sentence
//! carries a value of the Secret.

use k8s_openapi::api::core::v1::Secret;
use lifeboat_api::topolvm::{BackupEngine, LocalStorage, S3Storage, SnapshotBackupStorage, StorageProvider};
use lifeboat_mover::{Limits, Repository, S3Store, Secret as Hidden, Store};
use std::path::{Component, Path, PathBuf};

/// Keys of the Secret that a storage names.
pub mod keys {
    /// Access key of the bucket.
    pub const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
    /// Secret key of the bucket.
    pub const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";
    /// Token of temporary credentials, where they are temporary.
    pub const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
    /// Password of the repository.
    pub const PASSWORD: &str = "RESTIC_PASSWORD";
    /// PEM certificates to trust besides the system's, as Kubernetes names such a key.
    pub const CA_BUNDLE: &str = "ca.crt";
}

/// Bounds on how fast bytes move, one for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// For what is written to the store.
    pub backup: Limits,
    /// For what is read from the store.
    pub restore: Limits,
}

/// Why a storage cannot be used as it is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The engine is not ours.
    #[error("the backup engine {0:?} is not supported: use restic, which is also the default")]
    Engine(String),
    /// The provider is not ours.
    #[error("stores of provider {0:?} are not supported: use s3 or local")]
    Provider(String),
    /// There is no store at all.
    #[error("spec.storage names no store: set spec.storage.s3 or spec.storage.local")]
    NoStore,
    /// There are several.
    #[error("spec.storage names more than one store ({0}): keep one")]
    SeveralStores(String),
    /// A field is missing.
    #[error("spec.storage.{0} is missing: set it")]
    Missing(&'static str),
    /// A field makes no sense.
    #[error("spec.storage.{field} {problem}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A key of the Secret is missing, empty or no text.
    #[error("the Secret {secret} has no usable {key}: {problem}")]
    Key {
        /// The Secret.
        secret: String,
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A flag that does nothing here.
    #[error(
        "{list} has {flag:?}, which is not supported: only --limit-upload and --limit-download (KiB/s) are, the first for backups, the second for restores"
    )]
    Flag {
        /// The list.
        list: &'static str,
        /// The flag.
        flag: String,
    },
    /// A flag without a number.
    #[error("{list}: {flag} needs a number of KiB/s, such as {flag}=10240")]
    Rate {
        /// The list.
        list: &'static str,
        /// The flag.
        flag: &'static str,
    },
}

const UPLOAD: &str = "--limit-upload";
const DOWNLOAD: &str = "--limit-download";

/// Name of the Secret that a storage needs, in the storage's own namespace.
#[must_use]
pub fn secret_name(storage: &SnapshotBackupStorage) -> Option<&str> {
    let backend = &storage.spec.storage;
    let names = [
        backend.s3.as_ref().and_then(|s3| s3.secret_name.as_deref()),
        backend.local.as_ref().and_then(|local| local.secret_name.as_deref()),
        backend.gcs.as_ref().and_then(|gcs| gcs.secret_name.as_deref()),
        backend.azure.as_ref().and_then(|azure| azure.secret_name.as_deref()),
    ];
    names.into_iter().flatten().find(|name| !name.is_empty())
}

/// What a storage and its Secret open, and how fast.
///
/// # Errors
/// When something is missing, makes no sense or is not supported; never with a value of the Secret in the sentence.
pub fn repository(
    storage: &SnapshotBackupStorage,
    secret: &Secret,
) -> Result<(Repository, Rates), StoreError> {
    let rates = plain(storage)?;
    let store = match place(storage)? {
        StorePlace::S3(s3) => Store::S3(bucket(s3, secret)?),
        StorePlace::Local(local) => Store::Local(directory(local)?),
    };
    let password = required(secret, keys::PASSWORD)?;
    Ok((Repository { store, password: Hidden::new(password) }, rates))
}

/// What can be said without the Secret; the Secret's name is part of it.
///
/// # Errors
/// As for [`repository`].
pub fn plain(storage: &SnapshotBackupStorage) -> Result<Rates, StoreError> {
    match &storage.spec.engine {
        BackupEngine::Restic => {}
        BackupEngine::Other(word) if word.is_empty() => {}
        other => return Err(StoreError::Engine(other.to_string())),
    }
    let secret_field = match place(storage)? {
        StorePlace::S3(_) => "s3.secretName",
        StorePlace::Local(_) => "local.secretName",
    };
    if secret_name(storage).is_none() {
        return Err(StoreError::Missing(secret_field));
    }
    rates(storage)
}

/// The store that a storage names.
enum StorePlace<'a> {
    S3(&'a S3Storage),
    Local(&'a LocalStorage),
}

fn place(storage: &SnapshotBackupStorage) -> Result<StorePlace<'_>, StoreError> {
    let backend = &storage.spec.storage;
    let named = [
        ("s3", backend.s3.is_some()),
        ("gcs", backend.gcs.is_some()),
        ("azure", backend.azure.is_some()),
        ("local", backend.local.is_some()),
    ];
    let named: Vec<&str> = named.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
    if named.len() > 1 {
        return Err(StoreError::SeveralStores(named.join(", ")));
    }
    let provider = backend.provider.as_ref().filter(|provider| !provider.as_str().is_empty());
    if let (Some(provider), [named]) = (provider, named.as_slice())
        && provider.as_str() != *named
    {
        return Err(StoreError::Invalid {
            field: "provider",
            problem: format!("says {provider}, but the store given is {named}: make them agree"),
        });
    }
    match (&backend.s3, &backend.local, named.first(), provider) {
        (Some(s3), ..) => Ok(StorePlace::S3(s3)),
        (_, Some(local), ..) => Ok(StorePlace::Local(local)),
        (_, _, Some(other), _) => Err(StoreError::Provider((*other).to_owned())),
        (_, _, None, Some(StorageProvider::S3)) => Err(StoreError::Missing("s3")),
        (_, _, None, Some(StorageProvider::Local)) => Err(StoreError::Missing("local")),
        (_, _, None, Some(other)) => Err(StoreError::Provider(other.to_string())),
        (_, _, None, None) => Err(StoreError::NoStore),
    }
}

fn bucket(s3: &S3Storage, secret: &Secret) -> Result<S3Store, StoreError> {
    let given = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
    let bucket = given(&s3.bucket);
    if bucket.is_empty() {
        return Err(StoreError::Missing("s3.bucket"));
    }
    if bucket.contains('/') {
        let problem = "must be the name of the bucket alone: put the rest into prefix".to_owned();
        return Err(StoreError::Invalid { field: "s3.bucket", problem });
    }
    let region = given(&s3.region);
    let max_connections = usize::try_from(s3.max_connections.unwrap_or_default()).map_err(|_| {
        let problem = "must not be negative: 0 or nothing means the default".to_owned();
        StoreError::Invalid { field: "s3.maxConnections", problem }
    })?;
    // Surrounding space is what is left of a file or a shell that a Secret was made with; no key has any.
    let trimmed = |key| required(secret, key).map(|value| Hidden::new(value.trim()));
    Ok(S3Store {
        endpoint: endpoint(&given(&s3.endpoint), &region)?,
        bucket,
        prefix: given(&s3.prefix).trim_matches('/').to_owned(),
        access_key: trimmed(keys::ACCESS_KEY)?,
        secret_key: trimmed(keys::SECRET_KEY)?,
        session_token: optional(secret, keys::SESSION_TOKEN)?.map(|value| Hidden::new(value.trim())),
        ca_bundle: optional(secret, keys::CA_BUNDLE)?,
        insecure_tls: s3.insecure_tls,
        max_connections,
        region,
    })
}

/// An address with a scheme: as with restic, none means https, and none at all Amazon's.
fn endpoint(given: &str, region: &str) -> Result<String, StoreError> {
    let given = given.trim_end_matches('/');
    let (scheme, host) = given.split_once("://").unwrap_or(("https", given));
    if !matches!(scheme, "http" | "https") {
        let problem = "must begin with http:// or https://".to_owned();
        return Err(StoreError::Invalid { field: "s3.endpoint", problem });
    }
    if host.contains('@') {
        let problem = "must not carry credentials: put them into the Secret".to_owned();
        return Err(StoreError::Invalid { field: "s3.endpoint", problem });
    }
    Ok(match (host, region) {
        ("", "") => "https://s3.us-east-1.amazonaws.com".to_owned(),
        ("", region) => format!("https://s3.{region}.amazonaws.com"),
        (host, _) => format!("{scheme}://{host}"),
    })
}

fn directory(local: &LocalStorage) -> Result<PathBuf, StoreError> {
    let given = local.path.as_deref().unwrap_or_default();
    if given.is_empty() {
        return Err(StoreError::Missing("local.path"));
    }
    let path = Path::new(given);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || climbs {
        let problem = "must be an absolute path without \"..\"".to_owned();
        return Err(StoreError::Invalid { field: "local.path", problem });
    }
    Ok(path.to_owned())
}

fn rates(storage: &SnapshotBackupStorage) -> Result<Rates, StoreError> {
    let spec = &storage.spec;
    let mut rates = Rates::default();
    for (list, flags, allowed) in [
        ("globalFlags", &spec.global_flags, &[UPLOAD, DOWNLOAD][..]),
        ("backupFlags", &spec.backup_flags, &[UPLOAD][..]),
        ("restoreFlags", &spec.restore_flags, &[DOWNLOAD][..]),
    ] {
        let mut words = flags.iter().flat_map(|flag| flag.split_whitespace());
        while let Some(word) = words.next() {
            let (name, value) =
                word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let Some(flag) = allowed.iter().find(|flag| **flag == name) else {
                return Err(StoreError::Flag { list, flag: name.to_owned() });
            };
            let number = value.or_else(|| words.next()).and_then(|value| value.parse::<u64>().ok());
            let number = number.and_then(|number| number.checked_mul(1024));
            let rate = number.ok_or(StoreError::Rate { list, flag })?;
            let bound = if *flag == UPLOAD { &mut rates.backup } else { &mut rates.restore };
            bound.bytes_per_second = tightest(bound.bytes_per_second, rate);
        }
    }
    Ok(rates)
}

/// The smaller of two bounds, 0 being none.
fn tightest(one: u64, other: u64) -> u64 {
    match (one, other) {
        (0, bound) | (bound, 0) => bound,
        (one, other) => one.min(other),
    }
}

fn optional(secret: &Secret, key: &'static str) -> Result<Option<String>, StoreError> {
    let named = |problem| {
        let meta = &secret.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let secret = format!("{namespace}/{}", meta.name.as_deref().unwrap_or_default());
        StoreError::Key { secret, key, problem }
    };
    let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(key)) else { return Ok(None) };
    let text = std::str::from_utf8(&bytes.0).map_err(|_| named("it is not text"))?;
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}

fn required(secret: &Secret, key: &'static str) -> Result<String, StoreError> {
    optional(secret, key)?.ok_or_else(|| {
        let meta = &secret.metadata;
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let secret = format!("{namespace}/{}", meta.name.as_deref().unwrap_or_default());
        StoreError::Key { secret, key, problem: "add it to the Secret" }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const CANARY: &str = "canary-9f31";

    fn storage(spec: &Value) -> SnapshotBackupStorage {
        serde_json::from_value(json!({
            "apiVersion": "topolvm.io/v1", "kind": "SnapshotBackupStorage",
            "metadata": { "namespace": "ns", "name": "store" }, "spec": spec,
        }))
        .unwrap()
    }

    fn secret(pairs: &[(&str, &str)]) -> Secret {
        let mut secret = Secret::default();
        secret.metadata.namespace = Some("ns".into());
        secret.metadata.name = Some("keys".into());
        let data = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), k8s_openapi::ByteString(value.as_bytes().to_vec())));
        secret.data = Some(data.collect());
        secret
    }

    fn full() -> Secret {
        secret(&[
            ("AWS_ACCESS_KEY_ID", "id-canary-9f31\n"),
            ("AWS_SECRET_ACCESS_KEY", "key-canary-9f31"),
            ("RESTIC_PASSWORD", "word-canary-9f31\n"),
        ])
    }

    fn s3(more: &Value) -> Value {
        let mut s3 = json!({ "endpoint": "http://here:9000/", "bucket": "b", "prefix": "/a/b/", "secretName": "keys" });
        s3.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "engine": "restic", "storage": { "provider": "s3", "s3": s3 } })
    }

    fn local(flags: &Value) -> Value {
        let mut spec = json!({ "storage": { "provider": "local", "local": { "path": "/backups", "secretName": "keys" } } });
        spec.as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
        spec
    }

    #[test]
    fn a_bucket_is_taken_over_whole() {
        let (repository, rates) =
            repository(&storage(&s3(&json!({ "insecureTLS": true, "maxConnections": 3 }))), &full()).unwrap();
        assert_eq!(rates, Rates::default());
        // Keys lose the line end that tools leave, a password is what it is.
        assert_eq!(repository.password.reveal(), "word-canary-9f31\n");
        let Store::S3(store) = &repository.store else { panic!("{repository:?}") };
        assert_eq!(store.access_key.reveal(), "id-canary-9f31");
        assert_eq!((store.endpoint.as_str(), store.prefix.as_str()), ("http://here:9000", "a/b"));
        assert_eq!((store.insecure_tls, store.max_connections), (true, 3));
        assert!(!format!("{repository:?}").contains(CANARY));
    }

    #[test]
    fn addresses_are_completed() {
        let check = |endpoint: &str, region: &str, expected: &str| {
            let spec = s3(&json!({ "endpoint": endpoint, "region": region }));
            let (repository, _) = repository(&storage(&spec), &full()).unwrap();
            let Store::S3(store) = repository.store else { panic!() };
            assert_eq!(store.endpoint, expected);
        };
        check("", "", "https://s3.us-east-1.amazonaws.com");
        check("", "eu-west-1", "https://s3.eu-west-1.amazonaws.com");
        check("minio:9000", "", "https://minio:9000");
        check("http://minio:9000/", "", "http://minio:9000");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let check = |spec: Value, secret: &Secret, expected: &str| {
            let error = repository(&storage(&spec), secret).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(CANARY), "{error}");
        };
        let none = json!({});
        check(json!({ "engine": "kopia", "storage": {} }), &full(), "\"kopia\" is not supported");
        check(json!({ "storage": {} }), &full(), "names no store");
        check(json!({ "storage": { "provider": "s3" } }), &full(), "spec.storage.s3 is missing");
        check(json!({ "storage": { "provider": "gcs" } }), &full(), "\"gcs\" are not supported");
        check(
            json!({ "storage": { "azure": { "secretName": "keys" } } }),
            &full(),
            "\"azure\" are not supported",
        );
        check(json!({ "storage": { "s3": {}, "local": {} } }), &full(), "more than one store (s3, local)");
        check(json!({ "storage": { "provider": "gcs", "s3": {} } }), &full(), "make them agree");
        check(s3(&json!({ "bucket": "" })), &full(), "s3.bucket is missing");
        check(s3(&json!({ "bucket": "b/c" })), &full(), "prefix");
        check(s3(&json!({ "secretName": "" })), &full(), "s3.secretName is missing");
        check(s3(&json!({ "maxConnections": -1 })), &full(), "must not be negative");
        check(s3(&json!({ "endpoint": "ftp://x" })), &full(), "http://");
        check(s3(&json!({ "endpoint": "https://a:canary-9f31@x" })), &full(), "must not carry credentials");
        check(s3(&none), &secret(&[("RESTIC_PASSWORD", CANARY)]), "no usable AWS_ACCESS_KEY_ID");
        check(local(&none), &secret(&[("RESTIC_PASSWORD", " ")]), "no usable RESTIC_PASSWORD");
        check(
            local(&json!({ "storage": { "local": { "secretName": "keys" } } })),
            &full(),
            "local.path is missing",
        );
        check(
            json!({ "storage": { "local": { "path": "backups", "secretName": "k" } } }),
            &full(),
            "absolute",
        );
        check(
            json!({ "storage": { "local": { "path": "/a/../b", "secretName": "k" } } }),
            &full(),
            "absolute",
        );
        check(local(&json!({ "globalFlags": ["--verbose"] })), &full(), "globalFlags has \"--verbose\"");
        check(local(&json!({ "backupFlags": ["--limit-download=1"] })), &full(), "backupFlags has");
        check(local(&json!({ "restoreFlags": ["--limit-upload=1"] })), &full(), "restoreFlags has");
        check(local(&json!({ "globalFlags": ["--limit-upload"] })), &full(), "needs a number");
        check(local(&json!({ "globalFlags": ["--limit-upload=canary"] })), &full(), "needs a number");
    }

    #[test]
    fn rates_are_those_of_restic() {
        let check = |flags: Value, backup: u64, restore: u64| {
            let (_, rates) = repository(&storage(&local(&flags)), &full()).unwrap();
            assert_eq!((rates.backup.bytes_per_second, rates.restore.bytes_per_second), (backup, restore));
        };
        check(json!({}), 0, 0);
        check(json!({ "globalFlags": ["--limit-upload=1", "--limit-download", "2"] }), 1024, 2048);
        check(json!({ "globalFlags": ["--limit-upload 8"], "backupFlags": ["--limit-upload=4"] }), 4096, 0);
        check(json!({ "restoreFlags": ["--limit-download=3"] }), 0, 3072);
        check(json!({ "backupFlags": ["--limit-upload=0"] }), 0, 0);
    }
}
