//! A device class on LVM, and how much room it has. Pure.

use super::report::{Report, Row};
use super::run::Wipe;
use crate::{Capacity, Error, ThinPool};
use serde::{Deserialize, Serialize};

/// A device class on LVM.
#[derive(Clone, Debug, PartialEq)]
pub struct LvmClass {
    /// Name that StorageClasses use.
    pub name: String,
    /// Whether volumes without a class come from here.
    pub default: bool,
    /// The volume group.
    pub group: String,
    /// How volumes are laid out in it.
    pub kind: Kind,
    /// Number of stripes.
    pub stripe: Option<u32>,
    /// Size of a stripe, as LVM takes it.
    pub stripe_size: Option<String>,
    /// More arguments for `lvcreate`.
    pub options: Vec<String>,
    /// What becomes of the bytes of a removed thick volume.
    pub wipe: Wipe,
}

/// How the volumes of a class are laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Fully allocated.
    Thick {
        /// Bytes of the group never given away.
        spare: u64,
    },
    /// In a thin pool.
    Thin {
        /// The pool.
        pool: String,
        /// How many times its size a pool may promise; at least 1.
        overprovision: f64,
        /// When the pool is too full.
        guard: Guard,
    },
}

/// When a thin pool is too full. A pool that runs full stops every volume in it; one whose metadata runs full has to be repaired offline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Guard {
    /// From this percentage of data or metadata on, people are told.
    pub warn_percent: f64,
    /// From this percentage on, nothing new is made in the pool.
    pub stop_percent: f64,
    /// Grow the pool by this percentage of itself when it reaches the warning, while the group has room; 0 for never.
    pub extend_percent: f64,
}

impl Default for Guard {
    fn default() -> Self {
        Self { warn_percent: 80.0, stop_percent: 95.0, extend_percent: 0.0 }
    }
}

/// How full a pool is, for its guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    Fine,
    Warn,
    Stop,
}

impl Guard {
    pub(crate) fn pressure(&self, pool: &Row) -> Pressure {
        let fullest = pool.data_percent.max(pool.metadata_percent);
        if fullest >= self.stop_percent {
            Pressure::Stop
        } else if fullest >= self.warn_percent {
            Pressure::Warn
        } else {
            Pressure::Fine
        }
    }
}

impl LvmClass {
    /// A class with LVM's defaults.
    #[must_use]
    pub fn new(name: &str, group: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            default: false,
            group: group.to_owned(),
            kind,
            stripe: None,
            stripe_size: None,
            options: Vec::new(),
            wipe: Wipe::default(),
        }
    }

    /// What its volumes are carved from, whatever the class is called.
    pub(crate) fn storage(&self) -> String {
        match &self.kind {
            Kind::Thick { .. } => self.group.clone(),
            Kind::Thin { pool, .. } => format!("{}/{pool}", self.group),
        }
    }

    /// The class's own layout arguments.
    pub(crate) fn layout(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Some(stripe) = self.stripe {
            arguments.extend(["-i".to_owned(), stripe.to_string()]);
            if let Some(size) = &self.stripe_size {
                arguments.extend(["-I".to_owned(), size.clone()]);
            }
        }
        arguments.extend(self.options.iter().cloned());
        arguments
    }

    /// Whether a volume of the group is of this class.
    pub(crate) fn holds(&self, row: &Row) -> bool {
        match &self.kind {
            Kind::Thick { .. } => !row.is_pool() && row.pool.is_none(),
            Kind::Thin { pool, .. } => row.pool.as_ref() == Some(pool),
        }
    }

    /// The pool of a thin class.
    pub(crate) fn pool<'a>(&self, report: &'a Report) -> Result<Option<&'a Row>, Error> {
        let Kind::Thin { pool, .. } = &self.kind else { return Ok(None) };
        match report.volumes.get(pool) {
            Some(row) if row.is_pool() => Ok(Some(row)),
            _ => Err(Error::Transient(format!(
                "device class {:?} has no thin pool {:?} in volume group {:?}: create it, or correct lvmd's configuration",
                self.name, pool, self.group
            ))),
        }
    }

    /// Room for new volumes, promises to volumes under way (`reserved`) taken off.
    pub(crate) fn capacity(&self, report: &Report, reserved: u64) -> Result<Capacity, Error> {
        match (&self.kind, self.pool(report)?) {
            (Kind::Thin { overprovision, guard, .. }, Some(pool)) => {
                Ok(thin_capacity(self, report, pool, *overprovision, guard, reserved))
            }
            (Kind::Thick { spare }, _) => {
                let free = report.free.saturating_sub(*spare).saturating_sub(reserved);
                Ok(Capacity { size: report.size, free: free / report.extent * report.extent, pool: None })
            }
            (Kind::Thin { .. }, None) => unreachable_pool(self),
        }
    }

    /// Refuses what does not fit, and anything new in a pool that is nearly full.
    pub(crate) fn admit(&self, report: &Report, reserved: u64, wanted: u64) -> Result<(), Error> {
        let free = self.capacity(report, reserved)?.free;
        if wanted > free {
            return Err(Error::NoRoom { class: self.name.clone(), wanted, free });
        }
        Ok(())
    }
}

fn unreachable_pool(class: &LvmClass) -> Result<Capacity, Error> {
    Err(Error::Transient(format!("the thin pool of device class {:?} is not known", class.name)))
}

/// Two limits, and the smaller counts: what the ratio allows to be promised, and the same ratio of what is really left. A
/// pool that fills faster than expected thus stops promising before the ratio alone would.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ratios of sizes; beyond 2^53 bytes the error is below one extent"
)]
fn thin_capacity(
    class: &LvmClass,
    report: &Report,
    pool: &Row,
    overprovision: f64,
    guard: &Guard,
    reserved: u64,
) -> Capacity {
    let size = (pool.size as f64 * overprovision).floor() as u64;
    let promised: u64 = report.volumes.values().filter(|row| class.holds(row)).map(|row| row.size).sum();
    let by_ratio = size.saturating_sub(promised).saturating_sub(reserved);
    let left = pool.size as f64 * (100.0 - pool.data_percent).max(0.0) / 100.0;
    let by_use = ((left * overprovision).floor() as u64).saturating_sub(reserved);
    let free = match guard.pressure(pool) {
        Pressure::Stop => 0,
        Pressure::Fine | Pressure::Warn => by_ratio.min(by_use) / report.extent * report.extent,
    };
    let pool = ThinPool {
        data_percent: pool.data_percent,
        metadata_percent: pool.metadata_percent,
        overprovision: by_ratio,
        size: pool.size,
    };
    Capacity { size, free, pool: Some(pool) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: u64 = 4 << 20;

    fn report(volumes: &[(&str, Row)]) -> Report {
        Report {
            id: String::new(),
            size: 100 * EXTENT,
            free: 40 * EXTENT,
            extent: EXTENT,
            missing: 0,
            volumes: volumes.iter().map(|(name, row)| ((*name).to_owned(), row.clone())).collect(),
        }
    }

    fn pool(data: f64, metadata: f64) -> (&'static str, Row) {
        let row = Row {
            size: 20 * EXTENT,
            attr: "twi-aotz--".to_owned(),
            data_percent: data,
            metadata_percent: metadata,
            ..Row::default()
        };
        ("pool", row)
    }

    fn promised(size: u64) -> (&'static str, Row) {
        let row =
            Row { size, pool: Some("pool".to_owned()), attr: "Vwi-a-tz--".to_owned(), ..Row::default() };
        ("v", row)
    }

    fn thin(ratio: f64) -> LvmClass {
        let kind = Kind::Thin { pool: "pool".to_owned(), overprovision: ratio, guard: Guard::default() };
        LvmClass::new("c", "g", kind)
    }

    #[test]
    fn a_thick_class_gives_what_is_free_without_the_spare() {
        let check = |spare: u64, reserved: u64, expected: u64| {
            let class = LvmClass::new("c", "g", Kind::Thick { spare });
            assert_eq!(class.capacity(&report(&[]), reserved).unwrap().free, expected);
            assert!(class.admit(&report(&[]), reserved, expected).is_ok(), "create agrees with the report");
            let refused = class.admit(&report(&[]), reserved, expected + 1);
            assert!(matches!(refused, Err(Error::NoRoom { free, .. }) if free == expected), "{refused:?}");
        };
        check(0, 0, 40 * EXTENT);
        check(10 * EXTENT, 0, 30 * EXTENT);
        check(10 * EXTENT, 5 * EXTENT, 25 * EXTENT);
        check(1, 0, 39 * EXTENT);
        check(50 * EXTENT, 0, 0);
    }

    #[test]
    fn a_thin_class_gives_what_the_ratio_and_the_real_use_allow() {
        let check = |ratio, data, metadata, virtual_size, reserved, expected: u64| {
            let report = report(&[pool(data, metadata), promised(virtual_size)]);
            let capacity = thin(ratio).capacity(&report, reserved).unwrap();
            assert_eq!(capacity.free, expected, "{ratio} {data} {metadata} {virtual_size} {reserved}");
        };
        check(1.0, 0.0, 1.0, 0, 0, 20 * EXTENT);
        check(2.0, 0.0, 1.0, 0, 0, 40 * EXTENT);
        check(2.0, 0.0, 1.0, 30 * EXTENT, 0, 10 * EXTENT);
        check(2.0, 0.0, 1.0, 30 * EXTENT, 4 * EXTENT, 6 * EXTENT);
        check(2.0, 0.0, 1.0, 50 * EXTENT, 0, 0);
        // The ratio would allow 38 extents, but of the pool only a tenth is left.
        check(2.0, 90.0, 1.0, 2 * EXTENT, 0, 4 * EXTENT);
        check(10.0, 95.0, 1.0, 0, 0, 0);
        check(10.0, 0.0, 95.0, 0, 0, 0);
        check(10.0, 100.0, 100.0, 0, 0, 0);
    }

    #[test]
    fn a_thin_class_without_its_pool_says_so() {
        for volumes in [vec![], vec![("pool", Row { attr: "-wi-a-----".to_owned(), ..Row::default() })]] {
            let refused = thin(1.0).capacity(&report(&volumes), 0);
            assert!(
                matches!(&refused, Err(Error::Transient(why)) if why.contains("no thin pool")),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn volumes_belong_to_the_class_that_made_them() {
        let thick = LvmClass::new("c", "g", Kind::Thick { spare: 0 });
        let check = |row: &Row, in_thick, in_thin| {
            assert_eq!((thick.holds(row), thin(1.0).holds(row)), (in_thick, in_thin), "{row:?}");
        };
        check(&Row { attr: "-wi-a-----".to_owned(), ..Row::default() }, true, false);
        check(
            &Row { attr: "sri-a-s---".to_owned(), origin: Some("a".to_owned()), ..Row::default() },
            true,
            false,
        );
        check(&promised(1).1, false, true);
        check(&pool(0.0, 0.0).1, false, false);
        check(&Row { pool: Some("other".to_owned()), ..promised(1).1 }, false, false);
    }

    #[test]
    fn a_class_on_a_pool_and_one_beside_it_are_of_different_storage() {
        let thick = LvmClass::new("c", "g", Kind::Thick { spare: 0 });
        assert_eq!((thick.storage(), thin(1.0).storage()), ("g".to_owned(), "g/pool".to_owned()));
        assert_eq!(LvmClass { name: "other".to_owned(), ..thick }.storage(), "g", "whatever it is called");
    }

    #[test]
    fn a_guardian_speaks_before_the_pool_is_full() {
        let check = |data, metadata, expected| {
            assert_eq!(Guard::default().pressure(&pool(data, metadata).1), expected, "{data} {metadata}");
        };
        check(79.9, 79.9, Pressure::Fine);
        check(80.0, 0.0, Pressure::Warn);
        check(0.0, 80.0, Pressure::Warn);
        check(95.0, 0.0, Pressure::Stop);
        check(0.0, 99.0, Pressure::Stop);
    }
}
