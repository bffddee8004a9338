//! Two volumes change names. LVM renames one at a time, so the first goes under a name that tells both: whoever reads a report knows where it
//! belongs, and after a crash the next start goes on.
//!
//! ```text
//!   a, b  ──▶  lb.swap.LEN.a.b, b  ──▶  lb.swap.LEN.a.b, a  ──▶  b, a
//!              seen as a, b             seen as b, a
//! ```

use super::Served;
use super::command::SWAPPED;
use super::group::Group;
use super::report::Report;
use crate::Error;
use std::sync::Arc;

/// Device-mapper joins group and volume into this many bytes, with every dash doubled.
const LONGEST: usize = 127;

/// The name on the way from one to the other.
fn between(one: &str, other: &str) -> String {
    format!("{SWAPPED}{}.{one}.{other}", one.len())
}

/// The two names that such a name tells of.
fn ends(between: &str) -> Option<(&str, &str)> {
    let (length, both) = between.strip_prefix(SWAPPED)?.split_once('.')?;
    let (one, other) = both.split_at_checked(length.parse().ok()?)?;
    Some((one, other.strip_prefix('.')?))
}

/// What a volume on the way is called by those who look: by its old name until the other has taken that.
pub(super) fn seen_as<'a>(report: &Report, name: &'a str) -> Option<&'a str> {
    let (one, other) = ends(name)?;
    [one, other].into_iter().find(|name| !report.volumes.contains_key(*name))
}

impl Served {
    pub(super) async fn exchange(self: Arc<Self>, one: String, other: String) -> Result<(), Error> {
        let group = self.group.clone();
        let work = move |group: Arc<Group>| async move {
            let report = group.fresh().await?;
            let hidden = between(&one, &other);
            let dashes = |name: &str| name.bytes().filter(|byte| *byte == b'-').count() + name.len();
            if dashes(&group.name) + 1 + dashes(&hidden) > LONGEST {
                return Err(Error::Unsupported(format!(
                    "{one:?} and {other:?} cannot change names: their names are too long"
                )));
            }
            for name in [&one, &other] {
                let row = self.find(&report, name).ok_or_else(|| self.no_volume(name))?;
                self.must_be_free(&report, row, name)?;
            }
            self.step(&group, &one, &hidden).await?;
            if let Err(error) = self.step(&group, &other, &one).await {
                // Nobody has seen anything yet.
                self.step(&group, &hidden, &one).await?;
                return Err(error);
            }
            self.step(&group, &hidden, &other).await
        };
        group.change(work).await
    }

    /// Goes on where a crash stopped an exchange, in its turn: one that is under way in this process is complete by then.
    pub(super) async fn finish_exchange(self: Arc<Self>, hidden: String) -> Result<(), Error> {
        let group = self.group.clone();
        let work = move |group: Arc<Group>| async move {
            let report = group.fresh().await?;
            let has = |name: &str| report.volumes.contains_key(name);
            let Some((one, other)) = ends(&hidden).filter(|_| has(&hidden)) else { return Ok(()) };
            match (has(one), has(other)) {
                (false, true) => {
                    self.step(&group, other, one).await?;
                    self.step(&group, &hidden, other).await
                }
                (true, false) => self.step(&group, &hidden, other).await,
                // Somebody removed the other meanwhile: nothing is left to change names with.
                (false, false) => self.step(&group, &hidden, one).await,
                (true, true) => Err(Error::Transient(format!(
                    "volume {hidden:?} was changing names, but others have both: rename one by hand"
                ))),
            }
        };
        group.change(work).await
    }

    async fn step(&self, group: &Group, from: &str, to: &str) -> Result<(), Error> {
        let output = group.mutate(group.common.rename(&group.name, from, to)).await?;
        self.succeeded(group, "renaming", from, 0, &output).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lvm2::report::Row;

    #[test]
    fn a_volume_on_the_way_is_seen_under_the_name_that_is_free() {
        let check = |one: &str, other: &str, there: &[&str], expected: Option<&str>| {
            let volumes = there.iter().map(|name| ((*name).to_owned(), Row::default())).collect();
            let report = Report { volumes, ..Report::default() };
            assert_eq!(seen_as(&report, &between(one, other)), expected, "{one} {other} {there:?}");
        };
        check("a", "b", &["b"], Some("a"));
        check("a", "b", &["a"], Some("b"));
        check("a", "b", &["a", "b"], None);
        check("v.1", "w.2", &["w.2"], Some("v.1"));
        check("v.1", "1.w", &["v.1"], Some("1.w"));
        for strange in ["lb.swap.", "lb.swap.x.a.b", "lb.swap.9.a.b", "lb.swap.1.ab", "lb.swap.1"] {
            assert_eq!(ends(strange), None, "{strange}");
        }
    }
}
