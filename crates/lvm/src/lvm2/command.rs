//! The arguments of every LVM command, as lists. Pure.

use super::class::{Kind, LvmClass};
use crate::AccessMode;
use crate::names::encode_tag;
use std::collections::BTreeSet;

/// Carried by every volume made here, and not shown to callers.
pub(crate) const OWNED: &str = "lifeboat.volume";

/// Begins the name of a volume that is still being made; a restart removes it.
pub(crate) const STAGED: &str = "lb.staged.";

/// Begins the name of a removed volume whose bytes are being wiped; a restart goes on with it.
pub(crate) const REMOVED: &str = "lb.removed.";

/// Begins the name of a volume that is changing names with another; a restart goes on with it.
pub(crate) const SWAPPED: &str = "lb.swap.";

/// Whether a name is one of those, which callers do not see.
pub(crate) fn is_hidden(name: &str) -> bool {
    [STAGED, REMOVED, SWAPPED].iter().any(|kind| name.starts_with(kind))
}

/// What goes into every command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    /// More of LVM's own configuration, for example to do without udev.
    pub(crate) config: String,
}

impl Common {
    /// A command that prints its log as a report, so that errors need not be fished out of prose.
    fn command(&self, name: &str) -> Vec<String> {
        // Set here and not by `--reportformat`, which lvcreate does not take for thin volumes.
        let mut config =
            r#"report/output_format="json" log/report_command_log=1 log/command_log_selection="all""#
                .to_owned();
        if !self.config.is_empty() {
            config.push(' ');
            config.push_str(&self.config);
        }
        owned(&[name, "--config", &config])
    }

    /// Everything about one group under one lock, so that its figures belong together.
    pub(crate) fn report(&self, group: &str) -> Vec<String> {
        let mut arguments = self.command("fullreport");
        arguments.extend(owned(&["--units", "b", "--nosuffix"]));
        arguments.extend(owned(&["--configreport", "vg", "-o"]));
        arguments.extend(owned(&["vg_name,vg_uuid,vg_size,vg_free,vg_extent_size,vg_missing_pv_count"]));
        arguments.extend(owned(&["--configreport", "lv", "-o"]));
        arguments
            .extend(owned(&["lv_name,lv_path,lv_size,lv_attr,lv_tags,lv_kernel_major,lv_kernel_minor,\
             origin,origin_size,pool_lv,data_percent,metadata_percent,lv_metadata_size"]));
        for unused in ["pv", "pvseg", "seg"] {
            arguments.extend(owned(&["--configreport", unused, "-o,"]));
        }
        arguments.push(group.to_owned());
        arguments
    }

    pub(crate) fn create(
        &self,
        class: &LvmClass,
        name: &str,
        size: u64,
        tags: &BTreeSet<String>,
        options: Option<&[String]>,
    ) -> Vec<String> {
        let mut arguments = self.command("lvcreate");
        let bytes = format!("{size}b");
        match &class.kind {
            Kind::Thick { .. } => arguments.extend(owned(&["-n", name, "-L", &bytes])),
            Kind::Thin { pool, .. } => {
                let pool = format!("{}/{pool}", class.group);
                arguments.extend(owned(&["-T", &pool, "-n", name, "-V", &bytes]));
            }
        }
        arguments.extend(owned(&["-W", "y", "-y"]));
        arguments.extend(tag_arguments(tags, "--addtag"));
        match options {
            Some(options) => arguments.extend_from_slice(options),
            None => arguments.extend(class.layout()),
        }
        if matches!(class.kind, Kind::Thick { .. }) {
            arguments.push(class.group.clone());
        }
        arguments
    }

    /// Never with a size in a thin class: that would make a copy-on-write snapshot.
    pub(crate) fn snapshot(
        &self,
        group: &str,
        source: &str,
        name: &str,
        mode: AccessMode,
        tags: &BTreeSet<String>,
        room: Option<u64>,
    ) -> Vec<String> {
        let mut arguments = self.command("lvcreate");
        arguments.extend(owned(&["-s", "-n", name, "-p", permission(mode), "-y"]));
        match room {
            Some(room) => arguments.extend(owned(&["-L", &format!("{room}b")])),
            // Without this a thin snapshot is made inactive, and stays so whatever is asked later.
            None => arguments.extend(owned(&["-k", "n"])),
        }
        arguments.extend(tag_arguments(tags, "--addtag"));
        arguments.push(format!("{group}/{source}"));
        arguments
    }

    /// With `-K`, or LVM would leave a volume that is marked to be skipped inactive and call that success.
    pub(crate) fn activate(&self, group: &str, name: &str) -> Vec<String> {
        self.on("lvchange", &["-a", "y", "-K", "-y"], group, name)
    }

    pub(crate) fn grow(&self, group: &str, name: &str, size: u64) -> Vec<String> {
        self.on("lvextend", &["-L", &format!("{size}b")], group, name)
    }

    pub(crate) fn grow_pool(&self, group: &str, pool: &str, what: PoolPart, size: u64) -> Vec<String> {
        let option = match what {
            PoolPart::Data => "-L",
            PoolPart::Metadata => "--poolmetadatasize",
        };
        self.on("lvextend", &[option, &format!("{size}b")], group, pool)
    }

    pub(crate) fn rename(&self, group: &str, from: &str, to: &str) -> Vec<String> {
        let mut arguments = self.command("lvrename");
        arguments.extend(owned(&[group, from, to]));
        arguments
    }

    pub(crate) fn retag(
        &self,
        group: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut arguments = self.command("lvchange");
        arguments.extend(tag_arguments(remove, "--deltag"));
        arguments.extend(tag_arguments(add, "--addtag"));
        arguments.push(format!("{group}/{name}"));
        arguments
    }

    pub(crate) fn remove(&self, group: &str, name: &str) -> Vec<String> {
        self.on("lvremove", &["-f", "-y"], group, name)
    }

    fn on(&self, command: &str, options: &[&str], group: &str, name: &str) -> Vec<String> {
        let mut arguments = self.command(command);
        arguments.extend(owned(options));
        arguments.push(format!("{group}/{name}"));
        arguments
    }
}

/// A half of a thin pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolPart {
    Data,
    Metadata,
}

fn permission(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::ReadOnly => "r",
        AccessMode::ReadWrite => "rw",
    }
}

fn tag_arguments(tags: &BTreeSet<String>, option: &str) -> impl Iterator<Item = String> {
    tags.iter().flat_map(move |tag| [option.to_owned(), encode_tag(tag)])
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lvm2::class::Guard;

    fn class(kind: Kind) -> LvmClass {
        LvmClass { stripe: Some(2), stripe_size: Some("64".to_owned()), ..LvmClass::new("c", "fast", kind) }
    }

    fn thin() -> Kind {
        Kind::Thin { pool: "pool".to_owned(), overprovision: 10.0, guard: Guard::default() }
    }

    /// The arguments after what every command has.
    fn check(arguments: &[String], name: &str, expected: &str) {
        assert_eq!((arguments[0].as_str(), arguments[1].as_str()), (name, "--config"));
        assert_eq!(arguments[3..].join(" "), expected);
    }

    #[test]
    fn every_operation_has_its_arguments() {
        let common = Common::default();
        let tags = BTreeSet::from(["a b".to_owned(), "c".to_owned()]);
        let none = BTreeSet::new();
        let thick = class(Kind::Thick { spare: 0 });
        check(
            &common.create(&thick, "v", 4096, &tags, None),
            "lvcreate",
            "-n v -L 4096b -W y -y --addtag a&20b --addtag c -i 2 -I 64 fast",
        );
        let options = ["--type".to_owned(), "raid1".to_owned()];
        check(
            &common.create(&thick, "v", 4096, &none, Some(&options)),
            "lvcreate",
            "-n v -L 4096b -W y -y --type raid1 fast",
        );
        check(
            &common.create(&class(thin()), "v", 4096, &none, Some(&[])),
            "lvcreate",
            "-T fast/pool -n v -V 4096b -W y -y",
        );
        check(
            &common.snapshot("fast", "v", "s", AccessMode::ReadOnly, &tags, None),
            "lvcreate",
            "-s -n s -p r -y -k n --addtag a&20b --addtag c fast/v",
        );
        check(
            &common.snapshot("fast", "v", "s", AccessMode::ReadWrite, &none, Some(8192)),
            "lvcreate",
            "-s -n s -p rw -y -L 8192b fast/v",
        );
        check(&common.activate("fast", "v"), "lvchange", "-a y -K -y fast/v");
        check(&common.grow("fast", "v", 8192), "lvextend", "-L 8192b fast/v");
        check(
            &common.grow_pool("fast", "pool", PoolPart::Metadata, 8192),
            "lvextend",
            "--poolmetadatasize 8192b fast/pool",
        );
        check(&common.grow_pool("fast", "pool", PoolPart::Data, 8192), "lvextend", "-L 8192b fast/pool");
        check(&common.rename("fast", "v", "w"), "lvrename", "fast v w");
        check(&common.retag("fast", "v", &tags, &["x".to_owned()].into()), "lvchange", {
            "--deltag x --addtag a&20b --addtag c fast/v"
        });
        check(&common.remove("fast", "v"), "lvremove", "-f -y fast/v");
    }

    #[test]
    fn more_configuration_goes_into_the_one_config_argument() {
        let common = Common { config: "activation/udev_sync=0".to_owned() };
        let arguments = common.remove("fast", "v");
        assert_eq!(arguments.iter().filter(|argument| *argument == "--config").count(), 1);
        assert_eq!(
            arguments[2],
            "report/output_format=\"json\" log/report_command_log=1 log/command_log_selection=\"all\" activation/udev_sync=0"
        );
    }
}
