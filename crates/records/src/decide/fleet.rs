//! Whose records lie in a store: fleets that share a bucket may both have an application of one name.

use crate::FleetId;

/// What a store says about the fleet of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told<'a> {
    /// What the mark says, where there is one that can be read.
    pub(crate) mark: Option<&'a FleetId>,
    /// What the newest manifest says.
    pub(crate) manifest: Option<&'a FleetId>,
}

/// Whose a group is in one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Ours, and it says so; or we are of no fleet, and ask nobody.
    Ours,
    /// Nothing is there, or a version or a peer without fleets wrote it: it becomes ours with the first write.
    Unmarked,
    /// Another fleet's: nothing there is ours to read, write or remove.
    Other(FleetId),
}

/// Decides for one store. The mark goes before the manifest: it is written under a condition.
pub(crate) fn owner(mine: Option<&FleetId>, told: Told<'_>) -> Owner {
    let Some(mine) = mine else { return Owner::Ours };
    match (told.mark, told.manifest) {
        (Some(mark), _) if mark == mine => Owner::Ours,
        (Some(other), _) => Owner::Other(other.clone()),
        (None, Some(other)) if other != mine => Owner::Other(other.clone()),
        (None, _) => Owner::Unmarked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_fleet_has_marked_is_not_ours() {
        let (mine, other) = (FleetId("mine".into()), FleetId("other".into()));
        let check = |me: Option<&FleetId>, mark, manifest, expected: Owner| {
            assert_eq!(owner(me, Told { mark, manifest }), expected, "{me:?} {mark:?} {manifest:?}");
        };
        let (m, o) = (Some(&mine), Some(&other));
        check(m, None, None, Owner::Unmarked);
        check(m, m, None, Owner::Ours);
        check(m, m, m, Owner::Ours);
        check(m, o, None, Owner::Other(other.clone()));
        check(m, o, m, Owner::Other(other.clone()));
        // A mark that is lost or damaged is made again by those who wrote the manifest, and by nobody else.
        check(m, None, m, Owner::Unmarked);
        check(m, None, o, Owner::Other(other.clone()));
        // The loser of a race had no time for more than a manifest in another store.
        check(m, m, o, Owner::Ours);
        // A group without a hub, or of Ramen's, knows no fleets.
        check(None, o, o, Owner::Ours);
        check(None, None, None, Owner::Ours);
    }
}
