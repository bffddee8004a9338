//! Where objects are kept, and the secrets that open the place.

use base64::Engine as _;
use std::fmt;
use std::path::PathBuf;

/// A value that must not be shown: it prints as dots.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value from being shown.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that has to send it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("••••")
    }
}

/// Where objects are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// A bucket behind the S3 protocol.
    S3(S3Store),
    /// A directory that every reader and writer can reach.
    Local(PathBuf),
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S3(s3) if s3.prefix.is_empty() => write!(f, "s3:{}/{}", s3.address(), s3.bucket),
            Self::S3(s3) => write!(f, "s3:{}/{}/{}", s3.address(), s3.bucket, s3.prefix),
            Self::Local(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A bucket behind the S3 protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S3Store {
    /// Address of the server, such as `https://s3.example.com:9000`.
    pub endpoint: String,
    /// Name of the bucket.
    pub bucket: String,
    /// Put before every key; no slash at either end.
    pub prefix: String,
    /// Region that requests are signed for; empty for `us-east-1`.
    pub region: String,
    /// Access key.
    pub access_key: Secret,
    /// Secret key.
    pub secret_key: Secret,
    /// Token of temporary credentials.
    pub session_token: Option<Secret>,
    /// PEM certificates to trust besides the system's.
    pub ca_bundle: Option<String>,
    /// Accept any certificate.
    pub insecure_tls: bool,
    /// Requests in flight at most; 0 for the default.
    pub max_connections: usize,
}

impl S3Store {
    /// The endpoint without a user name, password, query or closing slash: what may be shown.
    #[must_use]
    pub fn address(&self) -> String {
        let (scheme, rest) = self.endpoint.split_once("://").unwrap_or(("", &self.endpoint));
        let rest = rest.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let (authority, path) =
            rest.split_once('/').map_or((rest, String::new()), |(a, p)| (a, format!("/{p}")));
        let host = authority.rsplit('@').next().unwrap_or_default();
        if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
    }
}

/// The certificates of a store as a profile gives them, base64 of PEM; none where it says nothing.
///
/// # Errors
/// When they are something else.
pub fn certificates(text: Option<&str>) -> Result<Option<String>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok();
    let pem = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    pem.map(Some).ok_or_else(|| "its caCertificates are not base64 of PEM".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_without_its_secrets() {
        let check = |endpoint: &str, prefix: &str, expected: &str| {
            let store = S3Store {
                endpoint: endpoint.into(),
                bucket: "b".into(),
                prefix: prefix.into(),
                access_key: Secret::new("canary"),
                secret_key: Secret::new("canary"),
                session_token: Some(Secret::new("canary")),
                ..S3Store::default()
            };
            assert_eq!(Store::S3(store.clone()).to_string(), expected);
            assert!(!format!("{store:?}").contains("\"canary\""), "{store:?}");
        };
        check("https://s3.example.com:9000", "", "s3:https://s3.example.com:9000/b");
        check("https://s3.example.com/", "x/y", "s3:https://s3.example.com/b/x/y");
        check("https://user:canary@s3.example.com/base", "", "s3:https://s3.example.com/base/b");
        check("http://host?token=canary", "p", "s3:http://host/b/p");
    }
}
