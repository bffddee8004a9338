//! What a DRPlacementControl waits for.

use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

/// What a DRPlacementControl waits for. Each sentence says what to do where somebody has to do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// What is asked for does not hold together.
    Invalid(String),
    /// What is asked for is not served.
    Unsupported(String),
    /// What is asked for was refused as a drill, and is not taken for the real thing.
    DrillLeft(String),
    /// Something belongs to somebody else.
    Conflict(String),
    /// The placement does not exist.
    PlacementMissing(String),
    /// The policy does not exist or cannot be used.
    PolicyNotReady(String),
    /// A cluster has not been heard of lately.
    ClusterSilent(String),
    /// A cluster has not answered a view yet.
    ViewPending(String),
    /// A view cannot be answered.
    ViewFailed(String),
    /// What is known does not tell what is safe: a user must choose.
    UserMustChoose(String),
    /// What is known contradicts itself.
    RolesUnclear(String),
    /// The group of the cluster where the application runs was deleted without the order to end protection: a user must choose.
    Orphaned(String),
    /// The cluster where the application runs was rebuilt, without its volumes: a user must choose.
    Rebuilt(String),
    /// The order to end protection has not reached a cluster yet.
    EndingProtection(String),
    /// A store could not be read, so that it is not known whether the application was deployed before.
    StoresUnread(String),
    /// A store has another fleet's records of a group of this name.
    OtherFleet(String),
    /// A relocation could not go on and was called off.
    CalledOff(String),
    /// The agent of a cluster refuses a work.
    WorkRefused(String),
    /// A work is being deleted, so that another of its name cannot be made.
    WorkGoing(String),
    /// A group is not on its cluster yet, or has not been looked at there.
    GroupNotSeen(String),
    /// The cluster to move to is not ready to take over.
    TargetNotReady(String),
    /// The failed cluster is not fenced off.
    NotFenced(String),
    /// The cluster to move to is fenced off.
    TargetFenced(String),
    /// The storage is not ready for a failover.
    MaintenanceNotActive(String),
    /// Data or records at the present cluster are not in a state to move.
    SourceNotReady(String),
    /// The last move has not been cleaned up.
    CleanupPending(String),
    /// Scheduled copies have not stopped yet.
    PreparingFinalSync(String),
    /// The last copy is running.
    RunningFinalSync(String),
    /// Volumes are not secondary everywhere.
    NotSecondary(String),
    /// Data is not all at the peer.
    NotProtected(String),
    /// Volumes and claims are not restored.
    Restoring(String),
    /// Data cannot be used yet.
    NotReady(String),
    /// Receivers are not set up.
    SettingUpReplication(String),
    /// A deletion waits until the move under way has come to rest.
    FinishingMove(String),
    /// Something is being removed from a cluster.
    Removing(String),
    /// Something failed and will be tried again.
    Failed(String),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why)
            | Self::Unsupported(why)
            | Self::DrillLeft(why)
            | Self::Conflict(why)
            | Self::PlacementMissing(why)
            | Self::PolicyNotReady(why)
            | Self::ClusterSilent(why)
            | Self::ViewPending(why)
            | Self::ViewFailed(why)
            | Self::UserMustChoose(why)
            | Self::RolesUnclear(why)
            | Self::Orphaned(why)
            | Self::Rebuilt(why)
            | Self::EndingProtection(why)
            | Self::StoresUnread(why)
            | Self::OtherFleet(why)
            | Self::CalledOff(why)
            | Self::WorkRefused(why)
            | Self::WorkGoing(why)
            | Self::GroupNotSeen(why)
            | Self::TargetNotReady(why)
            | Self::NotFenced(why)
            | Self::TargetFenced(why)
            | Self::MaintenanceNotActive(why)
            | Self::SourceNotReady(why)
            | Self::CleanupPending(why)
            | Self::PreparingFinalSync(why)
            | Self::RunningFinalSync(why)
            | Self::NotSecondary(why)
            | Self::NotProtected(why)
            | Self::Restoring(why)
            | Self::NotReady(why)
            | Self::SettingUpReplication(why)
            | Self::FinishingMove(why)
            | Self::Removing(why)
            | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl Why for Wait {
    fn event(&self) -> Option<Level> {
        match self {
            Self::Invalid(_)
            | Self::Unsupported(_)
            | Self::DrillLeft(_)
            | Self::Conflict(_)
            | Self::UserMustChoose(_)
            | Self::RolesUnclear(_)
            | Self::Orphaned(_)
            | Self::Rebuilt(_)
            | Self::CalledOff(_)
            | Self::NotFenced(_)
            | Self::WorkRefused(_) => Some(Level::Warning),
            _ => None,
        }
    }
}
