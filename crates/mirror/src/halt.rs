//! Why nothing may be received: a fence against whoever sends, or a maintenance mode that asks the storage to stand still. Pure lookups in
//! the caches.

use crate::desk::Standing;
use crate::kinds::Kinds;
use crate::words::Words as _;
use lifeboat_api::csiaddons::{FenceState, NetworkFence};
use lifeboat_api::ramen::{MMode, MaintenanceMode};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    address: IpAddr,
    bits: u8,
}

impl Range {
    /// Reads `10.0.0.0/8`, `fd00::/8` or a plain address.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address.parse().ok()?, bits.parse().ok()?),
            None => {
                let address: IpAddr = text.trim().parse().ok()?;
                (address, if address.is_ipv4() { 32 } else { 128 })
            }
        };
        let most = if IpAddr::is_ipv4(&address) { 32 } else { 128 };
        (bits <= most).then_some(Self { address, bits })
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(of), IpAddr::V4(one)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                of.to_bits() & mask == one.to_bits() & mask
            }
            (IpAddr::V6(of), IpAddr::V6(one)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                of.to_bits() & mask == one.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// Whether a fence is ours to keep.
#[must_use]
pub fn is_ours(kinds: &Kinds, fence: &NetworkFence) -> bool {
    let class = fence.spec.network_fence_class_name.as_deref().filter(|name| !name.is_empty());
    match class {
        Some(class) => kinds
            .fence_classes
            .get(&lifeboat_engine::ObjectKey::cluster_wide(class))
            .is_some_and(|class| class.spec.provisioner == kinds.driver),
        None => fence.spec.driver.as_deref() == Some(&*kinds.driver),
    }
}

/// The fence that cuts an address off. One that is being deleted still stands until its finalizer is off.
#[must_use]
pub fn fenced(kinds: &Kinds, address: IpAddr) -> Option<String> {
    let cuts = |fence: &NetworkFence| {
        let stands = fence.spec.fence_state == FenceState::Fenced && !fence.is_going();
        let mut ranges = fence.spec.cidrs.iter().filter_map(|text| Range::parse(text));
        stands && is_ours(kinds, fence) && ranges.any(|range| range.holds(address))
    };
    let mut all = kinds.fences.all();
    all.sort_by(|one, other| one.name().cmp(other.name()));
    all.iter().find(|fence| cuts(fence)).map(|fence| fence.name().to_owned())
}

/// Whether a maintenance mode asks us to stop receiving for these identities.
#[must_use]
pub fn freezes(mode: &MaintenanceMode, driver: &str, identities: &BTreeSet<String>) -> bool {
    let spec = &mode.spec;
    let meant = spec.target_id.as_ref().filter(|target| !target.is_empty());
    spec.storage_provisioner == driver
        && !mode.is_going()
        && spec.modes.contains(&MMode::Failover)
        && meant.is_none_or(|target| identities.contains(target))
}

/// The maintenance mode for which nothing is received.
#[must_use]
pub fn frozen(kinds: &Kinds, identities: &BTreeSet<String>) -> Option<String> {
    let mut all = kinds.modes.all();
    all.sort_by(|one, other| one.name().cmp(other.name()));
    all.iter().find(|mode| freezes(mode, &kinds.driver, identities)).map(|mode| mode.name().to_owned())
}

/// Why nothing of an offer may be received now.
#[must_use]
pub fn halted(kinds: &Kinds, offer: &Standing) -> Option<String> {
    if let Some(fence) = fenced(kinds, offer.came_from).or_else(|| fenced(kinds, offer.from.ip())) {
        return Some(format!("the primary is cut off by NetworkFence {fence}; lift it to receive again"));
    }
    frozen(kinds, &offer.identities).map(|mode| {
        format!("mirroring stands still for MaintenanceMode {mode}; it goes on when that is deleted")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_addresses() {
        let check = |range: &str, address: &str, holds: bool| {
            let range = Range::parse(range).unwrap();
            assert_eq!(range.holds(address.parse().unwrap()), holds, "{range:?} {address}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.7", "10.0.0.7", true);
        check("10.0.0.7/32", "10.0.0.8", false);
        check("0.0.0.0/0", "192.0.2.1", true);
        check("fd00::/8", "fd12::1", true);
        check("fd00::/8", "fe80::1", false);
        check("10.0.0.0/8", "::ffff:10.1.2.3", true);
        check("10.0.0.0/8", "fd00::1", false);
        check("::/0", "fd00::1", true);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0/33", "fd00::/129", "ten", "10.0.0.0/-1", "10.0.0/8"] {
            assert_eq!(Range::parse(text), None, "{text:?}");
        }
    }
}
