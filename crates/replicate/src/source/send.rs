//! The work of one copy, from reading the key to the receiver's last word.

use crate::peer;
use crate::resolve::{Resolve, ResolveError, receiver, short};
use crate::source::failure::{Failure, Kind};
use crate::source::world::Cut;
use crate::words::Words as _;
use lifeboat_api::annotations;
use lifeboat_api::volsync::ReplicationSource;
use lifeboat_stream::{Error, Job, Key, Limits, Refusal, Sending, Sent, Source, Timing, send};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// One copy.
pub(super) struct Copy {
    pub client: kube::Client,
    pub resolve: Arc<dyn Resolve>,
    pub source: Arc<ReplicationSource>,
    pub cut: Cut,
    pub content: Source,
    pub index: PathBuf,
    pub bytes_per_second: Option<u64>,
    pub timing: Timing,
}

/// What a sender calls its receiver: the one its address names, or its own namesake. A checksum in the address that is its own name's means
/// its namesake too.
pub(super) fn destination(source: &ReplicationSource) -> String {
    let address = source.spec.rsync_tls.as_ref().and_then(|tls| tls.address.as_deref()).unwrap_or_default();
    match receiver(address) {
        Some((space, name)) if name != short(source.name()) => format!("{space}/{name}"),
        Some((space, _)) => format!("{space}/{}", source.name()),
        None => format!("{}/{}", source.space(), source.name()),
    }
}

/// What the file is called that remembers the last copy to this receiver. Whole names may be too long for a file.
pub(super) fn memory(source: &ReplicationSource) -> String {
    let to = destination(source);
    let (space, name) = to.split_once('/').unwrap_or_default();
    format!("{space}_{}", short(name))
}

impl Copy {
    pub async fn run(self) -> Result<Sent, Failure> {
        let tls = self.source.spec.rsync_tls.clone().unwrap_or_default();
        let address = tls.address.unwrap_or_default();
        let port = tls.port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        // The key is read when it is needed and kept by nobody.
        let secret = tls.key_secret.unwrap_or_default();
        let key = crate::secret::key(&self.client, self.source.space(), &secret).await?;
        let peers = self.resolve.resolve(&address, port).await.map_err(|error| match error {
            error @ (ResolveError::Unknown(_) | ResolveError::Failed { .. }) => {
                Failure::new(Kind::Link, error.to_string())
            }
        })?;
        let mut last = None;
        for peer in peers {
            match self.one(peer, &key).await {
                Ok(sent) => return Ok(sent),
                Err(error) => {
                    let elsewhere = matches!(
                        error,
                        Error::Link(_) | Error::Untrusted(_) | Error::Refused(Refusal::UnknownDestination)
                    );
                    let failure = self.explain(peer, error).await;
                    if !elsewhere {
                        return Err(failure);
                    }
                    // Who refuses knows more than who does not answer.
                    let worse = |known: &Failure| known.kind == Kind::Link || failure.kind != Kind::Link;
                    if last.as_ref().is_none_or(worse) {
                        last = Some(failure);
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| Failure::new(Kind::Link, format!("{address} leads nowhere"))))
    }

    async fn one(&self, peer: std::net::SocketAddr, key: &Key) -> Result<Sent, Error> {
        let Cut { generation, cut, epoch, token, .. } = &self.cut;
        let name = destination(&self.source);
        let mut job = Job::new(name, *epoch, generation.clone(), *cut, self.index.clone());
        job.may_be_empty = self.source.note(annotations::MAY_BE_EMPTY) == Some("true");
        job.limits = Limits { bytes_per_second: self.bytes_per_second, within: None, timing: self.timing };
        job.lineage.clone_from(&self.cut.lineage);
        job.fuzzy = self.cut.why_fuzzy();
        if let Some(token) = token {
            // The tag was written with the snapshot, for a trigger that had been seen before it began.
            let seen = cut.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(*cut);
            job = job.with_token(token.clone(), seen)?;
        }
        send(self.content.clone(), peer, key, job, watch::Sender::new(Sending::default())).await
    }

    /// Tells a stock VolSync from somebody with another key.
    async fn explain(&self, peer: std::net::SocketAddr, error: Error) -> Failure {
        let strange = matches!(error, Error::Untrusted(_) | Error::Protocol(_) | Error::Link(_));
        if strange && peer::speaks_tls(peer, self.timing.handshake).await {
            return Failure::new(
                Kind::Peer,
                format!(
                    "the receiver at {peer} speaks TLS, as a stock VolSync does, and Lifeboat's stream is another: run Lifeboat on that side too, or a VolSync on both"
                ),
            );
        }
        if let Error::Refused(Refusal::OtherLineage { have, offered }) = &error {
            let claim = self.source.spec.source_pvc.as_deref().unwrap_or_default();
            let (space, to) = (self.source.space(), destination(&self.source));
            let name = to.rsplit('/').next().unwrap_or_default();
            return Failure::new(
                Kind::Lineage,
                format!(
                    "the receiver {to} holds a complete copy of another volume (lineage {have}) than PVC {space}/{claim} (lineage {offered}), and nothing of it was overwritten. If the PVC was replaced by mistake, fail over to the cluster that has that copy. If its new data is right, run on that cluster `kubectl annotate replicationdestination {name} -n {space} --overwrite {}={offered}`: the old images are kept aside then",
                    annotations::ACCEPT_LINEAGE
                ),
            );
        }
        error.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifeboat_api::volsync::service_name;
    use serde_json::json;

    #[test]
    fn a_sender_calls_its_receiver_by_its_whole_name_where_it_knows_it() {
        let check = |name: &str, address: &str, called: &str| {
            let source = json!({"apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationSource",
                "metadata": {"name": name, "namespace": "app"}, "spec": {"rsyncTLS": {"address": address}}});
            let source = serde_json::from_value(source).unwrap();
            assert_eq!(destination(&source), called, "{name} {address}");
            assert!(memory(&source).len() <= 255 - ".next".len(), "{}", memory(&source));
        };
        let (long, other) = ("a".repeat(253), "b".repeat(253));
        let of = |name: &str| format!("{}.there.svc.clusterset.local", service_name(name));
        check("data", &of("data"), "there/data");
        check("data", &of("other"), "there/other");
        check("data", "10.0.0.1:8000", "app/data");
        check(&long, &of(&long), &format!("there/{long}"));
        check(&long, "10.0.0.1", &format!("app/{long}"));
        check(&long, &of("data"), "there/data");
        // Only the receiver can tell whose checksum it is.
        check(&long, &of(&other), &format!("there/{}", short(&other)));
        check("data", &of(&other), &format!("there/{}", short(&other)));
    }
}
