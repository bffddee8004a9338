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

const STEPS: [Step; 19] = [
    Step::Failover,
    Step::Failover,
    Step::Relocate,
    Step::Relocate,
    Step::Relocate,
    Step::ChangeMind,
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

/// Seeds that every run walks.
const USUAL: std::ops::Range<u64> = 3..4;

async fn walk(seed: u64, length: usize) -> Result<(), String> {
    let mut dice = Dice(seed);
    let way = [Way::Copied, Way::Direct, Way::Mirrored][dice.roll(3)];
    let claims = dice.roll(3) + 1;
    println!("journey {seed}: {way:?}, {claims} PVCs");
    let mut journey = Journey::begin(way, claims).await.map_err(|why| format!("beginning: {why}"))?;
    for number in 1..=length {
        let step = STEPS[dice.roll(STEPS.len())];
        println!("journey {seed}: step {number}: {step:?}");
        journey.take(step).await.map_err(|why| format!("step {number}: {why}"))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journey_drawn_by_chance() {
    let number = |name: &str| std::env::var(name).ok();
    let length = number("LIFEBOAT_JOURNEY_STEPS")
        .map_or(4, |text| text.parse().expect("LIFEBOAT_JOURNEY_STEPS is a number"));
    let seeds = match number("LIFEBOAT_JOURNEYS") {
        Some(range) => {
            let (from, to) = range.split_once("..").expect("LIFEBOAT_JOURNEYS is FROM..TO");
            from.parse().expect("a seed")..to.parse().expect("a seed")
        }
        None => USUAL,
    };
    let mut failed = Vec::new();
    for seed in seeds {
        if let Err(why) = walk(seed, length).await {
            println!("journey {seed} FAILED: {why}");
            failed.push(seed);
        }
    }
    assert!(
        failed.is_empty(),
        "journeys that failed, by seed: {failed:?}; LIFEBOAT_JOURNEYS=N..M walks them again"
    );
}
