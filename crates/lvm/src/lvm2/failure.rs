//! What a failed command means. Whether a volume exists is judged by a report made afterwards; only where no report can tell does the
//! text of LVM (always in English, `LC_ALL=C`) decide. Pure.

use super::report::{Report, read_errors};
use super::run::Output;
use crate::Error;

/// What was tried.
pub(super) struct Tried<'a> {
    /// For the message: "creating", "removing".
    pub(super) doing: &'a str,
    pub(super) class: &'a str,
    pub(super) name: &'a str,
    /// Bytes asked for, where some were.
    pub(super) wanted: u64,
}

const NO_ROOM: [&str; 5] = [
    "insufficient free space",
    "insufficient suitable",
    "insufficient space",
    "not enough free",
    "free space in volume group",
];

const IN_USE: [&str; 5] = [
    "in use",
    "is used by another",
    "contains a filesystem",
    "is open",
    "can be resized only while inactive",
];

/// The error for a command that failed on a volume that must exist. `after` is a report made since, if one could be had.
pub(super) fn of_existing(tried: &Tried<'_>, output: &Output, after: Option<&Report>) -> Error {
    if let Some(report) = after
        && !report.volumes.contains_key(tried.name)
    {
        return Error::NoVolume { class: tried.class.to_owned(), name: tried.name.to_owned() };
    }
    of_any(tried, output, after)
}

/// The error for a command that failed to make a volume.
pub(super) fn of_any(tried: &Tried<'_>, output: &Output, after: Option<&Report>) -> Error {
    let said = read_errors(&output.stdout, &output.stderr).join("; ");
    let lower = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let told = || {
        let Tried { doing, class, name, .. } = tried;
        format!(
            "{doing} volume {name:?} in device class {class:?} failed (lvm exit code {}): {said}",
            output.code
        )
    };
    if says(&NO_ROOM) {
        let free = after.map_or(0, |report| report.free);
        return Error::NoRoom { class: tried.class.to_owned(), wanted: tried.wanted, free };
    }
    if says(&IN_USE) {
        return Error::Busy { name: tried.name.to_owned(), detail: said };
    }
    // LVM could not read its command line: the options of the class or of the request are wrong.
    if output.code == 3 {
        return Error::Invalid(format!("{}; correct the class's lvcreate options", told()));
    }
    Error::Transient(told())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lvm2::report::Row;

    fn output(code: i32, message: &str) -> Output {
        let stdout = serde_json::json!({"log": [{"log_type": "error", "log_message": message}]}).to_string();
        Output { code, stdout, stderr: String::new() }
    }

    fn tried() -> Tried<'static> {
        Tried { doing: "removing", class: "c", name: "v", wanted: 7 }
    }

    fn with(names: &[&str]) -> Report {
        let volumes = names.iter().map(|name| ((*name).to_owned(), Row::default())).collect();
        Report { free: 5, volumes, ..Report::default() }
    }

    #[test]
    fn failures_mean_what_the_report_and_the_log_say() {
        let check = |code, message: &str, after: Option<Report>, expected: &str| {
            let error = of_existing(&tried(), &output(code, message), after.as_ref());
            let kind = match &error {
                Error::NoVolume { .. } => "no volume",
                Error::NoRoom { wanted: 7, free: 5, .. } => "no room",
                Error::Busy { .. } => "busy",
                Error::Invalid(_) => "invalid",
                Error::Transient(_) => "transient",
                other => panic!("{other:?}"),
            };
            assert_eq!(kind, expected, "{code} {message}: {error}");
        };
        let here = || Some(with(&["v"]));
        let gone = || Some(with(&[]));
        check(5, "Failed to find logical volume \"g/v\"", gone(), "no volume");
        // The text alone proves nothing: the group itself may be what is missing.
        check(5, "Failed to find logical volume \"g/v\"", None, "transient");
        check(5, "Volume group \"g\" not found", None, "transient");
        check(5, "Failed to find logical volume \"g/v\"", here(), "transient");
        check(5, "Insufficient free space: 10 extents needed, but only 3 available", here(), "no room");
        check(5, "Insufficient suitable allocatable extents for logical volume v", here(), "no room");
        check(5, "Logical volume g/v contains a filesystem in use.", here(), "busy");
        check(5, "Logical volume g/v is used by another device.", here(), "busy");
        check(
            5,
            "Snapshot origin volumes can be resized only while inactive: try lvchange -an.",
            here(),
            "busy",
        );
        check(3, "", here(), "invalid");
        check(5, "", here(), "transient");
        check(-1, "", here(), "transient");
    }
}
