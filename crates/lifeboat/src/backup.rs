//! `lifeboat backup`: what a person does with a backup repository by hand.
//!
//! Passwords and keys come from files or the environment, never from the command line, where everybody on the machine can read them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use lifeboat_mover::{Mover as _, Repository, Rustic, S3Store, Secret, Store};

/// Options of `lifeboat backup`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check a repository: that every snapshot finds all its data and, if asked, that every byte is as it was written.
    Verify(Verify),
}

/// Options of `lifeboat backup verify`.
#[derive(clap::Args)]
struct Verify {
    /// A directory, or `s3:https://host/bucket/prefix`; the keys come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
    /// `AWS_SESSION_TOKEN` and `AWS_REGION`.
    #[arg(long)]
    store: String,
    /// File with the repository's password; without it, `RESTIC_PASSWORD` holds the password.
    #[arg(long)]
    password_file: Option<PathBuf>,
    /// Read everything back and compare it with its checksums.
    #[arg(long)]
    read_data: bool,
    /// File with PEM certificates to trust besides the system's.
    #[arg(long)]
    ca_bundle: Option<PathBuf>,
}

/// Runs a command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let Command::Verify(verify) = &args.command;
    let repository = repository(verify, |name| std::env::var(name).ok())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(async {
        let mover = Rustic::new();
        let snapshots = mover.find(&repository, &BTreeMap::new()).await?;
        anyhow::Ok((snapshots.len(), mover.verify(&repository, verify.read_data).await?))
    });
    let (snapshots, verified) = found.with_context(|| format!("checking {}", repository.store))?;
    let mut out = std::io::stdout().lock();
    for fault in &verified.faults {
        writeln!(out, "fault: {fault}")?;
    }
    let read = match verify.read_data {
        true => format!("{} bytes read back", verified.bytes_read),
        false => "data not read back; --read-data does".to_owned(),
    };
    writeln!(out, "{snapshots} snapshots, {} faults, {read}", verified.faults.len())?;
    Ok(if verified.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn repository(verify: &Verify, variable: impl Fn(&str) -> Option<String>) -> Result<Repository> {
    let read =
        |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let password = match &verify.password_file {
        Some(path) => read(path)?.trim_end_matches(['\n', '\r']).to_owned(),
        None => {
            variable("RESTIC_PASSWORD").context("give --password-file, or the password in RESTIC_PASSWORD")?
        }
    };
    let store = match verify.store.strip_prefix("s3:") {
        None => Store::Local(verify.store.clone().into()),
        Some(address) => {
            let (scheme, rest) = address.split_once("://").unwrap_or(("https", address));
            let mut parts = rest.splitn(3, '/');
            let (Some(host), Some(bucket)) = (parts.next(), parts.next().filter(|bucket| !bucket.is_empty()))
            else {
                bail!("an S3 store is written s3:https://host/bucket/prefix");
            };
            let secret = |name: &str| variable(name).map(Secret::new);
            Store::S3(S3Store {
                endpoint: format!("{scheme}://{host}"),
                bucket: bucket.to_owned(),
                prefix: parts.next().unwrap_or_default().trim_matches('/').to_owned(),
                region: variable("AWS_REGION").unwrap_or_default(),
                access_key: secret("AWS_ACCESS_KEY_ID").context("AWS_ACCESS_KEY_ID is not set")?,
                secret_key: secret("AWS_SECRET_ACCESS_KEY").context("AWS_SECRET_ACCESS_KEY is not set")?,
                session_token: secret("AWS_SESSION_TOKEN"),
                ca_bundle: verify.ca_bundle.as_ref().map(read).transpose()?,
                ..S3Store::default()
            })
        }
    };
    Ok(Repository { store, password: Secret::new(password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_read_from_the_command_line() {
        let check = |store: &str, expected: Option<&str>| {
            let verify =
                Verify { store: store.into(), password_file: None, read_data: false, ca_bundle: None };
            let repository = repository(&verify, |name| Some(format!("canary-{name}")));
            assert_eq!(repository.ok().map(|found| found.store.to_string()).as_deref(), expected, "{store}");
        };
        check("/srv/backups", Some("/srv/backups"));
        check("s3:https://host:9000/bucket/a/b", Some("s3:https://host:9000/bucket/a/b"));
        check("s3:https://host/bucket/", Some("s3:https://host/bucket"));
        check("s3:host/bucket", Some("s3:https://host/bucket"));
        check("s3:https://host", None);
        check("s3:https://host/", None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let verify =
            Verify { store: "s3:h/b".into(), password_file: None, read_data: false, ca_bundle: None };
        let error = repository(&verify, |_| None).unwrap_err();
        assert!(error.to_string().contains("RESTIC_PASSWORD"), "{error}");
        let error = repository(&verify, |name| (name == "RESTIC_PASSWORD").then(String::new)).unwrap_err();
        assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
    }
}
