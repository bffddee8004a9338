//! Everything that a control plane and its administrator prove themselves with, as files in one folder.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::plane::StartError;

/// Files made for one control plane.
#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
    ca_pem: String,
}

impl Credentials {
    /// Makes a CA, a serving certificate for loopback, an administrator and a key for ServiceAccount tokens.
    pub(crate) fn make(folder: &Path) -> Result<Self, StartError> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.distinguished_name.push(DnType::CommonName, "reference-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);

        let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut server = CertificateParams::new(names.map(str::to_owned))?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];

        let mut admin = CertificateParams::new(Vec::new())?;
        admin.distinguished_name.push(DnType::CommonName, "admin");
        admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];

        let credentials = Self { folder: folder.to_owned(), ca_pem };
        credentials.write("ca.crt", &credentials.ca_pem)?;
        for (name, params) in [("server", server), ("admin", admin)] {
            let key = KeyPair::generate()?;
            credentials.write(&format!("{name}.crt"), &params.signed_by(&key, &issuer)?.pem())?;
            credentials.write(&format!("{name}.key"), &key.serialize_pem())?;
        }
        let accounts = KeyPair::generate()?;
        credentials.write("accounts.key", &accounts.serialize_pem())?;
        credentials.write("accounts.pub", &accounts.public_key_pem())?;
        Ok(credentials)
    }

    /// Path of one of the files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The CA's certificate.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Writes the administrator's kubeconfig and gives its path.
    pub(crate) fn write_kubeconfig(&self, server: &str) -> Result<PathBuf, StartError> {
        let file = |name| self.path(name).display().to_string();
        let text = format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: reference\n\
             clusters:\n\
             - name: reference\n  cluster:\n    server: {server}\n    certificate-authority: {}\n\
             users:\n\
             - name: admin\n  user:\n    client-certificate: {}\n    client-key: {}\n\
             contexts:\n\
             - name: reference\n  context:\n    cluster: reference\n    user: admin\n",
            file("ca.crt"),
            file("admin.crt"),
            file("admin.key"),
        );
        self.write("kubeconfig", &text)?;
        Ok(self.path("kubeconfig"))
    }

    fn write(&self, name: &str, text: &str) -> Result<(), StartError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|source| StartError::Folder { path, source })
    }
}
