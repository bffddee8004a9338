//! Clients for tests.

use http::Request;
use http_body_util::BodyExt;
use lifeboat_apiserver::{ApiServer, Config, User};
use serde_json::Value;

/// An embedded cluster whose control loop runs as long as the value lives.
pub struct Embedded {
    /// The server.
    pub server: ApiServer,
    control: tokio::task::JoinHandle<()>,
}

impl Embedded {
    pub fn start() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        let server = ApiServer::new(config).expect("a server in memory starts");
        let control = tokio::spawn(server.control());
        Self { server, control }
    }

    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.server.service_as(User::admin()), "default")
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.control.abort();
    }
}

/// An answer as it came over the wire.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub body: Value,
}

/// Sends one request and reads the whole answer.
pub async fn send(
    client: &kube::Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(kube::client::Body::from(body)).expect("a valid request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap_or_default().to_owned()).collect();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { code, warnings, body }
}
