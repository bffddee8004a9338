//! Why a claim is where it is, in plain words: what it waits for, which volumes nearly fit, and what a person can do.
//! Nothing is judged here a second time: the state of the cluster goes through the same `decide` as the controller's, and what
//! it decided is told.
//!
//! A pure function of what was read; reading and printing are left to the caller.

use crate::decide::claim::{self, ClaimEffect};
use crate::decide::near::{self, Miss};
use crate::desk::Desk;
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::status::ClaimWhy;
use crate::words::{ClaimWords, VolumeWords, delays_binding, is_scheduled, migrated_to, text};
use crate::world::{ClaimWorld, Lookups, View};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_engine::{Cache, Next, ObjectKey, variant};
use std::collections::BTreeMap;

mod advice;
mod print;

/// What was read of a cluster.
#[derive(Debug, Default, Clone)]
pub struct Snapshot {
    /// Volumes.
    pub volumes: Vec<PersistentVolume>,
    /// Claims; of other namespaces none are needed.
    pub claims: Vec<PersistentVolumeClaim>,
    /// Classes.
    pub classes: Vec<StorageClass>,
    /// Pods of the claim's namespace.
    pub pods: Vec<Pod>,
    /// What was last told of the claim by others, the newest last.
    pub told: Vec<String>,
}

/// How a claim is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum State {
    /// It has its volume.
    Bound,
    /// The next step is the binder's, and nothing is in its way.
    Ready,
    /// It waits for something else.
    Waiting,
    /// It had a volume and has lost it.
    Lost,
}

/// The class of a claim.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassNote {
    /// Its name.
    pub name: String,
    /// Whether it exists.
    pub exists: bool,
    /// Who makes its volumes, where somebody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<String>,
    /// Whether nothing is bound before a pod needs it.
    pub waits_for_pod: bool,
}

/// Everything there is to say about a claim.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Namespace and name.
    pub claim: String,
    /// How it is doing.
    pub state: State,
    /// The phase that it shows, which may lag behind.
    pub phase: String,
    /// What it asks for.
    pub wants: String,
    /// How it is doing, as a sentence.
    pub summary: String,
    /// What it waits for, as one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The volume that it has, names or is to get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassNote>,
    /// Volumes that would serve it but for what they lack, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<Miss>,
    /// How many volumes are out of the question, by why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, usize>,
    /// Pods that use it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// What others have said of it lately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// What a person can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

/// How many near misses are told.
const NEAR: usize = 10;

/// What there is to say about a claim; `None` where there is no such claim.
pub fn claim(snapshot: &Snapshot, key: &ObjectKey, now: Timestamp) -> Option<Account> {
    let mut world = world(snapshot, key)?;
    // The controller tells of near misses before it rests; here they are told anyway.
    world.told.clone_from(&world.near);
    let decided = claim::decide(&world, now);
    let of = &*world.claim;
    let mut account = Account {
        claim: key.to_string(),
        state: State::Bound,
        phase: text(of.status.as_ref().and_then(|status| status.phase.as_ref())).to_owned(),
        wants: wants(of),
        summary: String::new(),
        reason: None,
        volume: Some(of.volume_name().to_owned()).filter(|name| !name.is_empty()),
        class: class_note(&world),
        near_misses: Vec::new(),
        others: BTreeMap::new(),
        pods: users(snapshot, key),
        told: snapshot.told.clone(),
        next: Vec::new(),
    };
    match decided.next {
        Next::Settled => bound(&mut account, &world),
        Next::Do(effects) => ready(&mut account, effects.first(), &world),
        Next::Wait { why, .. } => waiting(&mut account, &why, &world),
    }
    if account.state == State::Waiting && of.volume_name().is_empty() {
        look_over(&mut account, snapshot, of);
    }
    if of.metadata.deletion_timestamp.is_some() {
        going(&mut account);
    }
    Some(account)
}

fn world(snapshot: &Snapshot, key: &ObjectKey) -> Option<ClaimWorld> {
    let (volumes, claims) = (cache(&snapshot.volumes), cache(&snapshot.claims));
    let (classes, pods) = (cache(&snapshot.classes), cache(&snapshot.pods));
    let by = Lookups::over(&volumes, &claims, &classes, &pods);
    let view = View {
        volumes: &volumes,
        claims: &claims,
        classes: &classes,
        by: &by,
        desk: &Desk::default(),
        migration: migrated_to,
    };
    view.claim(key)
}

fn cache<K>(objects: &[K]) -> Cache<K>
where
    K: kube::Resource + Clone + Send + Sync + 'static,
{
    let cache = Cache::default();
    objects.iter().cloned().for_each(|object| cache.saw(object));
    cache
}

fn wants(claim: &PersistentVolumeClaim) -> String {
    let sort = claim.sort();
    let mut words = vec![claim.request().to_string(), ClaimWords::modes(claim).to_string()];
    if sort.block {
        words.push("a block device".to_owned());
    }
    if !sort.attributes.is_empty() {
        words.push(format!("attributes {:?}", sort.attributes));
    }
    if claim.spec.as_ref().is_some_and(|spec| spec.selector.is_some()) {
        words.push("labels by a selector".to_owned());
    }
    words.join(", ")
}

fn class_note(world: &ClaimWorld) -> Option<ClassNote> {
    let name = Some(world.claim.class()).filter(|name| !name.is_empty())?;
    let class = world.class.as_deref();
    let provisioner = class.map(|class| (world.migration)(&class.provisioner).unwrap_or(&class.provisioner));
    Some(ClassNote {
        name: name.to_owned(),
        exists: class.is_some(),
        provisioner: provisioner.map(str::to_owned),
        waits_for_pod: class.is_some_and(delays_binding),
    })
}

fn users(snapshot: &Snapshot, key: &ObjectKey) -> Vec<String> {
    let uses = |pod: &&Pod| crate::words::claims_of(pod).contains(key);
    let told = |pod: &Pod| {
        let name = text(pod.metadata.name.as_ref());
        if is_scheduled(pod) { name.to_owned() } else { format!("{name} (without a node)") }
    };
    snapshot.pods.iter().filter(uses).map(told).collect()
}

fn bound(account: &mut Account, world: &ClaimWorld) {
    let volume = account.volume.clone().unwrap_or_default();
    account.summary = format!("It is bound to the volume {volume}.");
    let size = world.named.as_deref().map(VolumeWords::capacity);
    if let Some(size) = size.filter(|size| *size < world.claim.request()) {
        account.summary = format!("It is bound to the volume {volume}, which has {size} and is to be grown.");
    }
}

/// The binder has something to do and nothing to wait for.
fn ready(account: &mut Account, effect: Option<&ClaimEffect>, world: &ClaimWorld) {
    account.state = State::Ready;
    account.reason = effect.map(variant);
    let whose = |volume: &PersistentVolume| volume.name().to_owned();
    let (volume, summary) = match effect {
        Some(ClaimEffect::Reserve(volume)) => {
            (Some(whose(volume)), format!("The volume {} fits and will be bound to it.", volume.name()))
        }
        Some(ClaimEffect::ShowVolumeBound(volume)) => {
            (Some(whose(volume)), format!("The volume {} is its own; binding goes on.", volume.name()))
        }
        Some(ClaimEffect::Complete(claim)) => (
            Some(claim.volume_name().to_owned()),
            format!("The volume {} is its own; binding goes on.", claim.volume_name()),
        ),
        Some(ClaimEffect::AssignClass(claim)) => {
            (None, format!("It says nothing of a class and will be given the default, {:?}.", claim.class()))
        }
        Some(ClaimEffect::AskProvisioner(_)) => {
            let provisioner = account.class.as_ref().and_then(|class| class.provisioner.as_deref());
            (None, format!("No volume fits; {} will be asked to make one.", provisioner.unwrap_or_default()))
        }
        Some(ClaimEffect::NoteMigration(_) | ClaimEffect::TellNearMisses(_)) | None => {
            (None, "The binder has something to note on it.".to_owned())
        }
    };
    account.volume = volume.or_else(|| account.volume.take());
    account.summary = summary;
    let since = world.claim.metadata.creation_timestamp.as_ref();
    account.next.push(format!(
        "Nothing, if it was made just now ({}). If it stays like this, no binder runs in this cluster: see `lifeboat binder`.",
        since.map_or_else(|| "no time given".to_owned(), |time| time.0.to_string())
    ));
}

fn waiting(account: &mut Account, why: &ClaimWhy, world: &ClaimWorld) {
    account.state = match why {
        ClaimWhy::LostName | ClaimWhy::LostVolume | ClaimWhy::Misbound => State::Lost,
        _ => State::Waiting,
    };
    account.reason = Some(variant(why));
    let (summary, next) = advice::plainly(why, account, world);
    account.summary = summary;
    account.next.extend(next);
}

/// Sorts all volumes into those that nearly fit and those that are out of the question.
fn look_over(account: &mut Account, snapshot: &Snapshot, claim: &PersistentVolumeClaim) {
    for volume in &snapshot.volumes {
        let mut miss = near::miss(volume, claim);
        let lacking = miss.lacks.len();
        match (volume.claim_key(), volume.phase()) {
            (Some(_), "Bound") => *account.others.entry("bound to others".to_owned()).or_default() += 1,
            (Some(key), phase) => {
                let freed = "free it by removing spec.claimRef if its data may be used";
                let held = if phase == "Released" { "released by" } else { "reserved for" };
                miss.lacks.insert(0, format!("{held} {key}; {freed}"));
            }
            (None, "Failed") => miss.lacks.insert(0, "failed".to_owned()),
            (None, _) if lacking == 0 => {
                miss.lacks.push("left to the scheduler until a pod needs it".to_owned());
            }
            (None, _) => {}
        }
        match (lacking, volume.phase()) {
            (_, "Bound") => {}
            (0 | 1, _) => account.near_misses.push(miss),
            _ => *account.others.entry("lack more than one thing".to_owned()).or_default() += 1,
        }
    }
    account.near_misses.sort_by_key(|miss| (miss.lacks.len(), miss.volume.clone()));
    if account.near_misses.len() > NEAR {
        let more = account.near_misses.split_off(NEAR).len();
        account.others.insert("more that nearly fit".to_owned(), more);
    }
}

fn going(account: &mut Account) {
    let held = match account.pods.as_slice() {
        [] => "and will be gone once its finalizers are taken off".to_owned(),
        pods => format!("and kept as long as it is used by {}", pods.join(", ")),
    };
    account.summary = format!("It is being deleted {held}. {}", account.summary);
}
