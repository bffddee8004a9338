//! Reads the records where they lie: in the folder of a cluster's volume, whether the cluster lives or not.

use super::app::{CLAIM, NAMESPACE};
use anyhow::Context as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use lifeboat_runner::sample::{FILE, Findings, check};
use std::path::{Path, PathBuf};

/// What was found in a file of records, and the file's text for a closer look.
pub struct Read {
    /// What was found.
    pub found: Findings,
    text: Vec<u8>,
}

impl Read {
    /// When a record was written, in milliseconds since 1970.
    pub fn millis_of(&self, number: u64) -> Option<i64> {
        let begin = format!("{number:010} ");
        let text = String::from_utf8_lossy(&self.text);
        let line = text.lines().find(|line| line.starts_with(&begin))?;
        line.split(' ').nth(1)?.parse().ok()
    }
}

impl Read {
    /// What was there before somebody wrote the first record of a row that goes on to the end.
    pub fn before(&self, writer: &str) -> Findings {
        let mark = format!(" {writer} ");
        let text = String::from_utf8_lossy(&self.text);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let theirs = lines.iter().rev().take_while(|line| line.contains(&mark)).count();
        check(lines[..lines.len() - theirs].concat().as_bytes())
    }
}

/// The folder of the claim's volume on a cluster that lives.
pub async fn folder(client: &kube::Client, home: &Path) -> anyhow::Result<PathBuf> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), NAMESPACE);
    let claim = claims.get(CLAIM).await.context("reading the claim")?;
    let volume = claim.spec.and_then(|spec| spec.volume_name).context("the claim has no volume")?;
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let volume = volumes.get(&volume).await.context("reading the volume")?;
    let handle = volume.spec.and_then(|spec| spec.csi).context("the volume has no driver")?.volume_handle;
    Ok(data(&volumes_of(home).join(handle)))
}

fn volumes_of(home: &Path) -> PathBuf {
    home.join("disks").join("volumes")
}

fn data(volume: &Path) -> PathBuf {
    volume.join("data")
}

/// Whether any volume or copy on a cluster's disks has records.
pub fn has_records(home: &Path) -> anyhow::Result<bool> {
    let volumes = volumes_of(home);
    let listed = std::fs::read_dir(&volumes).with_context(|| format!("listing {}", volumes.display()))?;
    // A copy that is just replaced by a newer one has no file any more.
    Ok(listed
        .flatten()
        .any(|volume| read(&data(&volume.path())).is_ok_and(|read| read.found.last_number() > 0)))
}

/// Reads the records of a folder.
pub fn read(folder: &Path) -> anyhow::Result<Read> {
    let path = folder.join(FILE);
    let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Read { found: check(&text), text })
}
