//! Faults on demand: each does what it says, and nothing else.

use crate::support::{Embedded, send};
use lifeboat_apiserver::User;
use lifeboat_apiserver::error::ApiError;
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_apiserver::path::Verb;
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;

struct Next(Mutex<RequestFault>);

impl Faults for Next {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        let of_interest = asked.path.resource == "configmaps" || asked.verb == Verb::List;
        if of_interest {
            std::mem::replace(&mut *self.0.lock(), RequestFault::None)
        } else {
            RequestFault::None
        }
    }
}

fn client(cluster: &Embedded, fault: RequestFault) -> kube::Client {
    let service = cluster.server.service_as(User::admin()).with_faults(Arc::new(Next(Mutex::new(fault))));
    kube::Client::new(service, "default")
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(client: &kube::Client, name: &str) -> Result<u16, kube::Error> {
    let body = json!({"metadata": {"name": name}}).to_string().into_bytes();
    let request = http::Request::post(MAPS)
        .header("content-type", "application/json")
        .body(body.into())
        .expect("valid");
    Ok(client.send(request).await?.status().as_u16())
}

async fn exists(cluster: &Embedded, name: &str) -> bool {
    send(&cluster.client(), "GET", &format!("{MAPS}/{name}"), &[], Vec::new()).await.code == 200
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_changes_nothing_and_a_lost_answer_everything() {
    let cluster = Embedded::start();
    assert!(create(&client(&cluster, RequestFault::DropRequest), "a").await.is_err());
    assert!(!exists(&cluster, "a").await);
    assert!(create(&client(&cluster, RequestFault::DropAnswer), "b").await.is_err());
    assert!(exists(&cluster, "b").await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_the_one_that_was_asked_for() {
    let cluster = Embedded::start();
    let refuse = |error| RequestFault::Refuse(Box::new(error));
    let code = create(&client(&cluster, refuse(ApiError::too_many_requests("busy", 1))), "a").await;
    assert_eq!(code.ok(), Some(429));
    assert_eq!(create(&client(&cluster, refuse(ApiError::internal("boom"))), "a").await.ok(), Some(500));
    assert!(!exists(&cluster, "a").await);
}

#[tokio::test(start_paused = true)]
async fn a_stale_list_shows_the_past() {
    let cluster = Embedded::start();
    let admin = cluster.client();
    // In virtual time this passes as soon as the cluster has furnished its namespaces.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    create(&admin, "a").await.expect("created");
    create(&admin, "b").await.expect("created");
    let answer = send(&client(&cluster, RequestFault::Stale(1)), "GET", MAPS, &[], Vec::new()).await;
    let names: Vec<_> = answer.body["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["metadata"]["name"].clone())
        .collect();
    assert!(names.contains(&json!("a")) && !names.contains(&json!("b")), "{names:?}");
}
