//! The rules of the example, one row each.

use crate::greeting::decide::{Effect, Waits, decide};
use crate::greeting::world::World;
use crate::greeting::{FINALIZER, Greeting, GreetingSpec, status};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};
use lifeboat_engine::Next;
use lifeboat_testbed::fixtures::With;
use std::sync::Arc;

fn greeting() -> Greeting {
    let spec = GreetingSpec { whom: "Ada".into(), ..GreetingSpec::default() };
    Greeting::new("ada", spec).with(|greeting| greeting.metadata.uid = Some("u".into()))
}

fn guarded() -> Greeting {
    greeting().with(|greeting| greeting.finalizers_mut().push(FINALIZER.into()))
}

fn text(of: &Greeting, text: &str) -> Option<Arc<ConfigMap>> {
    let mut map =
        ConfigMap { data: Some([("text".to_owned(), text.to_owned())].into()), ..Default::default() };
    map.metadata.owner_references = of.controller_owner_ref(&()).map(|owner| vec![owner]);
    Some(Arc::new(map))
}

fn going(greeting: Greeting) -> Greeting {
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH);
    greeting.with(|greeting| greeting.metadata.deletion_timestamp = Some(now))
}

#[expect(clippy::needless_pass_by_value, reason = "rows read better without borrows")]
fn check(world: World, expected: Next<Effect, Waits>) {
    assert_eq!(decide(&world, Timestamp::UNIX_EPOCH).next, expected, "{world:#?}");
}

fn world(greeting: Greeting) -> World {
    World { greeting: Arc::new(greeting), ..World::default() }
}

#[test]
fn a_greeting_is_guarded_then_written_then_left_alone() {
    let hello = "Hello, Ada!".to_owned();
    check(world(greeting()), Next::Do(vec![Effect::Guard]));
    check(world(guarded()), Next::Do(vec![Effect::WriteText { text: hello.clone() }]));
    check(World { text: text(&guarded(), &hello), ..world(guarded()) }, Next::Settled);
    check(
        World { text: text(&guarded(), "old"), ..world(guarded()) },
        Next::Do(vec![Effect::WriteText { text: hello.clone() }]),
    );
    let card = guarded().with(|greeting| greeting.spec.card = true);
    check(
        World { text: text(&card, &hello), ..world(card.clone()) },
        Next::Do(vec![Effect::SendCard { text: hello.clone() }]),
    );
    check(World { text: text(&card, &hello), card_sent: true, ..world(card) }, Next::Settled);
}

#[test]
fn a_greeting_that_goes_takes_its_text_along() {
    check(world(going(greeting())), Next::Settled);
    check(
        World { text: text(&guarded(), "x"), ..world(going(guarded())) },
        Next::Do(vec![Effect::DeleteText]),
    );
    check(world(going(guarded())), Next::Do(vec![Effect::Release]));
}

#[test]
fn a_greeting_waits_for_what_it_comes_after_and_says_so() {
    let wait = |why| Next::Wait { why, until: None };
    let second = greeting().with(|greeting| greeting.spec.after = Some("eve".into()));
    check(world(second.clone()), wait(Waits::FirstMissing { first: "eve".into() }));
    let first = Arc::new(greeting());
    check(
        World { first: Some(first), ..world(second.clone()) },
        wait(Waits::FirstNotReady { first: "eve".into() }),
    );
    let ready = greeting()
        .with(|first| first.status = Some(status::ready(&world(greeting()), Timestamp::UNIX_EPOCH)));
    check(World { first: Some(Arc::new(ready)), ..world(second) }, Next::Do(vec![Effect::Guard]));
    let taken = Some(Arc::new(ConfigMap::default()));
    check(World { text: taken, ..world(guarded()) }, wait(Waits::NameTaken));
}
