//! Journeys drawn by chance.

use crate::fleet::Way;
use crate::steps::{Journey, Step};

/// SplitMix64: the same seed is the same journey.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).expect("a small number")
    }
}

const STEPS: &[Step] = &[
    Step::Failover,
    Step::Failover,
    Step::Relocate,
    Step::Relocate,
    Step::Relocate,
    Step::ChangeMind,
    Step::Abort,
    Step::FailoverToPoint,
    Step::DeleteClaimThenFailover,
    Step::DeleteClaimThenAccept,
    Step::DeleteSnapshotClasses,
    Step::DeleteVrg,
    Step::DeleteNamespaceThenFailover,
    Step::DeleteNamespaceThenRestore,
    Step::DeletePod,
    Step::EndAndProtect,
    Step::LoseCluster,
    Step::LoseCluster,
    Step::LoseHub,
    Step::Scale,
    Step::Grow,
    Step::AddClaim,
    Step::RemoveClaim,
    Step::DeleteMoverSecret,
];

/// How many steps a journey has where nobody says.
const SHORT: usize = 4;

/// Steps that take minutes, for longer journeys.
const LONG: &[Step] =
    &[Step::RebuildCluster, Step::RebuildPrimary, Step::RebuildPeer, Step::RebuildHub, Step::TenMoves];

/// The seed that CI walks: what a new one finds is a fault of its own, and not of the change that is tried.
const USUAL: u64 = 12;

async fn walk(seed: u64, length: usize, steps: &[Step]) -> Result<(), String> {
    let mut dice = Dice(seed);
    let way = [Way::Copied, Way::Direct, Way::Mirrored][dice.roll(3)];
    let claims = dice.roll(3) + 1;
    println!("journey {seed}: {way:?}, {claims} PVCs");
    let mut journey = Journey::begin(way, claims).await.map_err(|why| format!("beginning: {why}"))?;
    for number in 1..=length {
        let step = steps[dice.roll(steps.len())];
        println!("journey {seed}: step {number}: {step:?}");
        journey.take(step).await.map_err(|why| format!("step {number}: {why}"))?;
    }
    Ok(())
}

/// The seeds that are asked for; else one that is new, but for CI.
fn seeds() -> std::ops::Range<u64> {
    let Ok(range) = std::env::var("LIFEBOAT_JOURNEYS") else {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = if std::env::var_os("CI").is_some() { USUAL } else { since.expect("a time").as_secs() };
        return seed..seed + 1;
    };
    let (from, to) = range.split_once("..").expect("LIFEBOAT_JOURNEYS is FROM..TO");
    from.parse().expect("a seed")..to.parse().expect("a seed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journey_drawn_by_chance() {
    let length = std::env::var("LIFEBOAT_JOURNEY_STEPS")
        .map_or(SHORT, |text| text.parse().expect("LIFEBOAT_JOURNEY_STEPS is a number"));
    let steps = if length > SHORT { [STEPS, LONG].concat() } else { STEPS.to_vec() };
    let mut failed = Vec::new();
    for seed in seeds() {
        if let Err(why) = walk(seed, length, &steps).await {
            println!("journey {seed} FAILED: {why}");
            failed.push(seed);
        }
    }
    assert!(
        failed.is_empty(),
        "journeys that failed, by seed: {failed:?}; LIFEBOAT_JOURNEYS=N..M walks them again"
    );
}
