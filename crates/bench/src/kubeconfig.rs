//! As much of a kubeconfig as the client needs: the first cluster and the first user.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct File {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Debug, Deserialize)]
struct NamedCluster {
    cluster: Cluster,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NamedUser {
    user: User,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
}

/// What a kubeconfig says, with the files that it names read in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// Host and port of the server.
    pub(crate) authority: String,
    /// Certificate of its CA, as PEM.
    pub(crate) ca: Vec<u8>,
    /// The user's certificate chain and key, as PEM.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The user's bearer token.
    pub(crate) token: Option<String>,
}

/// Reads a kubeconfig.
pub(crate) fn read(path: &Path) -> Result<Credentials> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    parse(&text, folder).with_context(|| format!("reading {}", path.display()))
}

fn parse(text: &str, folder: &Path) -> Result<Credentials> {
    let file: File = serde_saphyr::from_str(text)?;
    let NamedCluster { cluster } = file.clusters.into_iter().next().context("it names no cluster")?;
    let NamedUser { user } = file.users.into_iter().next().context("it names no user")?;
    let pem = |data: Option<String>, path: Option<PathBuf>| -> Result<Option<Vec<u8>>> {
        Ok(match (data, path) {
            (Some(data), _) => Some(STANDARD.decode(data.trim()).context("it has data that is no base64")?),
            (None, Some(path)) => {
                Some(std::fs::read(folder.join(&path)).with_context(|| path.display().to_string())?)
            }
            (None, None) => None,
        })
    };
    let authority =
        cluster.server.trim_start_matches("https://").split('/').next().unwrap_or_default().to_owned();
    let ca =
        pem(cluster.certificate_authority_data, cluster.certificate_authority)?.context("it has no CA")?;
    let chain = pem(user.client_certificate_data, user.client_certificate)?;
    let key = pem(user.client_key_data, user.client_key)?;
    Ok(Credentials { authority, ca, identity: chain.zip(key), token: user.token })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.crt"), "CA").unwrap();
        let text = "clusters:\n- name: x\n  cluster:\n    server: https://127.0.0.1:6443/\n    \
                    certificate-authority: ca.crt\nusers:\n- name: y\n  user:\n    \
                    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n";
        let expected = Credentials {
            authority: "127.0.0.1:6443".to_owned(),
            ca: b"CA".to_vec(),
            identity: Some((b"cert".to_vec(), b"key".to_vec())),
            token: None,
        };
        assert_eq!(parse(text, folder.path()).unwrap(), expected);
        assert!(parse("clusters: []\nusers: []\n", folder.path()).is_err());
    }
}
