//! Addresses of nodes, as configured and as found.

use crate::cluster::plain::{pair, settle, world};
use lifeboat_hub::cluster::survey::{Known, Survey};
use serde_json::json;

fn check(configured: &[&str], detected: &[&str], cidrs: (&str, &str), validated: &str) {
    let mut world = world(json!({ "cidrs": configured }));
    let mut known = Known::default();
    if !detected.is_empty() {
        known.told.storage_access_details =
            serde_json::from_value(json!([{ "storageProvisioner": "p", "cidrs": detected }])).unwrap();
    }
    world.survey = Survey::Known(Box::new(known));
    let end = settle(&mut world);
    assert_eq!(end.says("CIDRsValidated"), pair(cidrs.0, cidrs.1), "{configured:?}");
    assert_eq!(end.says("Validated").0, validated, "{configured:?}");
}

#[test]
fn addresses_have_to_be_ranges_and_cover_what_is_found() {
    check(&[], &["10.0.0.1/32"], ("", ""), "True");
    check(&["10.0.0.0/24"], &[], ("True", "Succeeded"), "True");
    check(&["fd00::/64", "10.1.2.3/32"], &[], ("True", "Succeeded"), "True");
    for bad in ["10.0.0.1", "10.0.0.0/33", "10.0.0/24", "fd00::/129", "10.0.0.0/", "10.0.0.0/+8", "east"] {
        check(&["10.0.0.0/24", bad], &[], ("False", "InvalidCIDRsFormat"), "False");
    }
    check(&["10.0.0.1/32"], &["10.0.0.1/32"], ("True", "Succeeded"), "True");
    check(&["10.0.0.1/32", "10.0.0.2/32"], &["10.0.0.1/32"], ("True", "UndetectedCIDRsFound"), "True");
    check(&["10.0.0.1/32"], &["10.0.0.1/32", "10.0.0.3/32"], ("False", "DetectedCIDRsUnconfigured"), "False");
}
