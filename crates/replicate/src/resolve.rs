//! Where a receiver is reached: from the address that a sender was given to addresses that can be connected to.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use lifeboat_api::multicluster::ServiceExport;
use lifeboat_api::volsync::service_name;
use std::net::{IpAddr, SocketAddr};

/// The port of a receiver unless the sender is told another, as VolSync has it.
pub const PORT: u16 = 8000;
/// How the names of services end that all clusters of a set know.
const CLUSTER_SET: &str = ".svc.clusterset.local";
/// What the service of a receiver is called, before its name.
const SERVICE: &str = "volsync-rsync-tls-dst-";

/// Why an address leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The name is known to nobody.
    #[error(
        "nobody knows where {0} is: look whether the receiver listens and its service is exported, or correct the address"
    )]
    Unknown(String),
    /// Whoever should know could not be asked.
    #[error("where {address} is could not be asked: {why}")]
    Failed {
        /// The address.
        address: String,
        /// What went wrong.
        why: String,
    },
}

/// Finds receivers.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// Addresses to try, best first; never empty.
    async fn resolve(&self, address: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, ResolveError>;
}

/// What the service of a receiver calls it: its name, or the checksum of a name that is too long for a service.
#[must_use]
pub fn short(receiver: &str) -> String {
    let service = service_name(receiver);
    service.strip_prefix(SERVICE).unwrap_or(&service).to_owned()
}

/// The receiver that an address names, as its namespace and its [`short`] name; nothing where the address is no name of its service.
#[must_use]
pub fn receiver(address: &str) -> Option<(&str, &str)> {
    let (service, rest) = address.split_once('.')?;
    let space = rest.split('.').next().filter(|space| !space.is_empty())?;
    let name = service.strip_prefix(SERVICE).filter(|name| !name.is_empty())?;
    rest.split('.').nth(1).filter(|word| *word == "svc")?;
    Some((space, name))
}

/// By the names that this machine can look up, and by plain addresses (`10.0.0.1`, `10.0.0.1:8000`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Dns;

#[async_trait]
impl Resolve for Dns {
    async fn resolve(&self, address: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, ResolveError> {
        if let Ok(whole) = address.parse::<SocketAddr>() {
            return Ok(vec![whole]);
        }
        let host = address.trim_start_matches('[').trim_end_matches(']');
        let found = tokio::net::lookup_host((host, port.unwrap_or(PORT))).await;
        let found: Vec<SocketAddr> = found
            .map_err(|error| ResolveError::Failed { address: address.to_owned(), why: error.to_string() })?
            .collect();
        if found.is_empty() { Err(ResolveError::Unknown(address.to_owned())) } else { Ok(found) }
    }
}

/// Names of a cluster set, and addresses of services, by asking API servers: for a fleet without a network of services. Everything else
/// goes to [`Dns`].
#[derive(Clone)]
pub struct Clusters {
    /// The clusters that may have the receiver.
    pub clients: Vec<kube::Client>,
    /// The sender's own cluster: the address of a service means something nowhere else. Ramen's cluster operator gives such a one to the
    /// copy by which it brings a claim back to its last image.
    pub home: Option<kube::Client>,
}

impl Clusters {
    /// Where one cluster has an exported service.
    async fn within(client: &kube::Client, space: &str, name: &str) -> Result<Vec<SocketAddr>, String> {
        let exports: Api<ServiceExport> = Api::namespaced(client.clone(), space);
        // A cluster without the kind has exported nothing; both are a plain 404.
        if exports.get_opt(name).await.map_err(|error| error.to_string())?.is_none() {
            return Ok(Vec::new());
        }
        Self::behind(client, space, name).await
    }

    /// Where the service of this address leads, if it is one of the sender's own cluster.
    async fn at_home(&self, address: &str) -> Result<Vec<SocketAddr>, String> {
        let (Some(home), Ok(_)) = (&self.home, address.parse::<IpAddr>()) else { return Ok(Vec::new()) };
        let services: Api<Service> = Api::all(home.clone());
        let services = services.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let here = services.items.into_iter().find(|service| {
            service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some(address)
        });
        match here.map(|service| (service.metadata.namespace, service.metadata.name)) {
            Some((Some(space), Some(name))) => Self::behind(home, &space, &name).await,
            _ => Ok(Vec::new()),
        }
    }

    /// Who stands behind a service.
    async fn behind(client: &kube::Client, space: &str, name: &str) -> Result<Vec<SocketAddr>, String> {
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), space);
        let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
        let slices = slices.list(&of_service).await.map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        for slice in slices.items {
            let ports: Vec<u16> = slice
                .ports
                .iter()
                .flatten()
                .filter_map(|port| port.port)
                .collect::<Vec<_>>()
                .into_iter()
                .filter_map(|port| u16::try_from(port).ok())
                .collect();
            let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
                endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
            });
            for address in ready.flat_map(|endpoint| &endpoint.addresses) {
                for port in &ports {
                    let looked_up = tokio::net::lookup_host((address.as_str(), *port)).await;
                    found.extend(looked_up.map_err(|error| format!("{address}: {error}"))?);
                }
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl Resolve for Clusters {
    async fn resolve(&self, address: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, ResolveError> {
        let named = address.strip_suffix(CLUSTER_SET).and_then(|rest| rest.split_once('.'));
        let Some((name, space)) = named else {
            return match self.at_home(address).await {
                Ok(found) if found.is_empty() => Dns.resolve(address, port).await,
                Ok(found) => Ok(found),
                Err(why) => Err(ResolveError::Failed { address: address.to_owned(), why }),
            };
        };
        let asked = self.clients.iter().map(|client| Self::within(client, space, name));
        let mut found = Vec::new();
        let mut failed = None;
        for answer in futures::future::join_all(asked).await {
            match answer {
                Ok(addresses) => found.extend(addresses),
                Err(why) => failed = Some(why),
            }
        }
        match failed {
            _ if !found.is_empty() => Ok(found),
            Some(why) => Err(ResolveError::Failed { address: address.to_owned(), why }),
            None => Err(ResolveError::Unknown(address.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_receiver_or_none() {
        let check = |address: &str, named: Option<(&str, &str)>| {
            assert_eq!(receiver(address), named, "{address}");
        };
        check("volsync-rsync-tls-dst-data.app.svc.clusterset.local", Some(("app", "data")));
        check("volsync-rsync-tls-dst-data.app.svc", Some(("app", "data")));
        check("volsync-rsync-tls-dst-data.app.example.org", None);
        check("volsync-rsync-tls-dst-.app.svc", None);
        check("10.0.0.1", None);
        check("receiver.example.org", None);
        check("", None);
    }
}
