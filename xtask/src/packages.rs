//! Gets what is missing from Debian, where this runs as root on Debian.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Installs a package when the version on offer is good enough.
pub(crate) fn install(package: &str, good_enough: impl Fn((u32, u32)) -> bool) -> Result<()> {
    needs_root_on_debian().with_context(|| format!("{package} is not installed here"))?;
    let mut policy = candidate(package)?;
    if policy.is_none() {
        renew()?;
        policy = candidate(package)?;
    }
    match policy {
        Some(version) if good_enough(version) => {
            shell::run(&mut apt(&["install", "-y", "-q", "--no-install-recommends", package]))
        }
        Some((major, minor)) => bail!("Debian offers {package} {major}.{minor}, which is too old"),
        None => bail!("Debian offers no {package}"),
    }
}

/// Renews the lists of what Debian offers.
pub(crate) fn renew() -> Result<()> {
    needs_root_on_debian()?;
    shell::run(&mut apt(&["update", "-q"]))
}

fn needs_root_on_debian() -> Result<()> {
    if !Path::new("/etc/debian_version").exists() {
        bail!("this is no Debian");
    }
    if shell::read(Command::new("id").arg("-u"))?.trim() != "0" {
        bail!("that needs root");
    }
    Ok(())
}

fn apt(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command
}

fn candidate(package: &str) -> Result<Option<(u32, u32)>> {
    let text = shell::read(Command::new("apt-cache").args(["policy", package]).env("LC_ALL", "C"))
        .context("asking apt for what it offers")?;
    Ok(offered(&text))
}

/// Major and minor version of the line `Candidate: 2:1.24~2`.
fn offered(policy: &str) -> Option<(u32, u32)> {
    let line = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    let version = line.split_once(':').map_or(line, |(_epoch, version)| version);
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offered_version_is_read() {
        let check = |text, expected| assert_eq!(offered(text), expected, "{text}");
        check("golang-go:\n  Installed: (none)\n  Candidate: 2:1.24~2\n", Some((1, 24)));
        check("x:\n  Candidate: 3.6.16+ds-1\n", Some((3, 6)));
        check("x:\n  Candidate: (none)\n", None);
        check("", None);
    }
}
