//! The engine on an embedded API server, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "a test owns its tasks")]

mod election;
mod feed;
mod passes;
mod recorder;
mod toy;

use jiff::Timestamp;
use lifeboat_apiserver::fault::Faults;
use lifeboat_apiserver::{ApiServer, Config, Sources, User};
use lifeboat_engine::Clock;
use std::sync::Arc;

/// A cluster of a test's own.
struct Cluster {
    server: ApiServer,
    clock: Clock,
}

impl Cluster {
    fn new() -> Self {
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let sources = Sources::simulated(start, 1);
        let now = sources.now.clone();
        let server = ApiServer::new(Config { sources, ..Config::default() }).unwrap();
        tokio::spawn(server.control());
        Self { server, clock: Clock::from_fn(move || now()) }
    }

    fn client(&self) -> kube::Client {
        kube::Client::new(self.server.service_as(User::admin()), "default")
    }

    fn client_with(&self, faults: Arc<dyn Faults>) -> kube::Client {
        kube::Client::new(self.server.service_as(User::admin()).with_faults(faults), "default")
    }
}
