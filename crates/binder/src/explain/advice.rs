//! What each wait of a claim means to a person, and what can be done about it.

use super::Account;
use crate::lean::PersistentVolume;
use crate::status::ClaimWhy;
use crate::words::{ClaimWords, VolumeWords};
use crate::world::ClaimWorld;

/// What a wait means and what can be done about it.
pub(super) fn plainly(why: &ClaimWhy, account: &Account, world: &ClaimWorld) -> (String, Vec<String>) {
    let (namespace, name) = (world.claim.key().namespace, world.claim.key().name);
    let volume = account.volume.as_deref().unwrap_or_default();
    let make =
        format!("Make a volume of {} that fits, or change what one of the near misses lacks.", account.wants);
    let (summary, next): (String, Vec<String>) = match why {
        ClaimWhy::NothingFits if world.claim.names_class() => (
            "No free volume fits, and it asks for no class, so nobody is asked to make one.".into(),
            vec![make, "Or make the claim anew with the class of a provisioner.".into()],
        ),
        ClaimWhy::NothingFits => (
            "No free volume fits, it names no class, and the cluster has no default class.".into(),
            vec![make, "Or mark a class as the default: the claim is given it at once.".into()],
        ),
        ClaimWhy::VolumeMissing(name) => (
            format!("It names the volume {name}, which does not exist."),
            vec![format!("Make the volume {name}, or make the claim anew without a volume name.")],
        ),
        ClaimWhy::VolumeUnfit(name, lack) => (
            format!("It names the volume {name}, which does not fit: {lack}."),
            vec!["Change the volume, or make the claim anew so that both agree.".into()],
        ),
        ClaimWhy::VolumeTaken(name) | ClaimWhy::VolumeTakenFromUs(name) => (
            format!("It names the volume {name}, which is {}.", owner(world.named.as_deref())),
            vec!["Make the claim anew with another volume name, or with none.".into()],
        ),
        ClaimWhy::ReservedUnfit(name) => (
            format!("The volume {name} is reserved for it and is of another volume mode."),
            vec!["Make the claim anew with the volume's mode.".into()],
        ),
        ClaimWhy::OthersChoose => ("Another claim is just choosing; this takes a moment.".into(), vec![]),
        ClaimWhy::FirstConsumer => (
            "Its class binds nothing before a pod needs it, and no pod does.".into(),
            vec![format!("Start a pod that uses {name}.")],
        ),
        ClaimWhy::PodsScheduled(pods) => (
            format!("It is bound as soon as {} has a node.", pods.join(", ")),
            vec![format!("See why it has none: kubectl -n {namespace} describe pod {}", pods.join(" "))],
        ),
        ClaimWhy::ClassMissing(class) => (
            format!("No free volume fits, and its class {class:?} does not exist."),
            vec![format!("Make the class {class:?}, or make the claim anew with one that exists.")],
        ),
        ClaimWhy::NoProvisioner(provisioner) => (
            format!(
                "No free volume fits, and its class has no provisioner ({provisioner}): volumes are made by hand."
            ),
            vec![make],
        ),
        ClaimWhy::Provisioner(provisioner) => (
            format!("No free volume fits; {provisioner} was asked to make one and has not yet."),
            vec![format!(
                "See what {provisioner} says of it, and whether it runs: kubectl -n {namespace} describe pvc {name}"
            )],
        ),
        ClaimWhy::LostName => (
            "It was bound and names no volume any more; its data is out of its reach.".into(),
            vec!["Find its volume by claimRef (kubectl get pv) before anything is deleted.".into()],
        ),
        ClaimWhy::LostVolume => (
            format!("It was bound to the volume {volume}, which is gone."),
            vec![format!(
                "Make the volume {volume} again, with the same storage behind it and a claimRef to this claim: it binds at once."
            )],
        ),
        ClaimWhy::Misbound => (
            format!("It was bound to the volume {volume}, which is now {}.", owner(world.named.as_deref())),
            vec![format!(
                "If the volume is this claim's, put its uid into the volume: spec.claimRef.uid = {}",
                world.claim.uid()
            )],
        ),
    };
    (summary, next)
}

fn owner(volume: Option<&PersistentVolume>) -> String {
    match volume.and_then(VolumeWords::claim_key) {
        Some(key) => format!("reserved for the claim {key}"),
        None => "another claim's".to_owned(),
    }
}
