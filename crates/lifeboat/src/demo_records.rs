//! `lifeboat write-records` and `lifeboat check-records`: the application that the demo protects, and who tells what became of its data.

use crate::status::{Format, say};
use anyhow::Context as _;
use lifeboat_engine::Clock;
use lifeboat_runner::sample::{FILE, Findings, Log, check};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Options of `lifeboat write-records`.
#[derive(clap::Args)]
pub struct WriteArgs {
    /// The folder that the records are in.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Milliseconds between two records.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 20)]
    every: u64,
    /// Who writes; the host's name when not given.
    #[arg(long, value_name = "NAME", env = "HOSTNAME", default_value = "nobody")]
    writer: String,
    /// End when nobody holds the other end of the standard input any more.
    #[arg(long)]
    while_watched: bool,
}

/// Writes until SIGTERM or Ctrl-C.
pub fn write(args: &WriteArgs) -> anyhow::Result<()> {
    let mut log = Log::open(&args.folder, &args.writer)
        .with_context(|| format!("opening the records in {}", args.folder.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("starting the runtime")?;
    let watched = args.while_watched;
    runtime.block_on(async {
        let stop = tokio_util::sync::CancellationToken::new();
        let mut signals = std::pin::pin!(crate::process::signals(stop.clone())?);
        if watched {
            let gone = stop.clone();
            let wait = move || {
                // Blocks until the other end is closed, which the system does when its holder dies.
                let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
                gone.cancel();
            };
            #[expect(
                clippy::disallowed_methods,
                reason = "reading the standard input blocks, and cannot be stopped"
            )]
            std::thread::spawn(wait);
        }
        let clock = Clock::system();
        let mut tick = tokio::time::interval(Duration::from_millis(args.every.max(1)));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut last = 0;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = &mut signals => break,
                _ = tick.tick() => {}
            }
            last = log.append(clock.now().as_millisecond()).context("writing a record")?;
        }
        // Nobody may be there to read it.
        let _ = say(&format!("{LAST}{last}\n"));
        Ok(())
    })
}

/// What a writer that was stopped says last, before the number of its last record.
pub const LAST: &str = "last record ";

/// Options of `lifeboat check-records`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 every record up to the last is there and good, 1 they cannot be read, 2 wrong usage, 3 some are missing or damaged."
)]
pub struct CheckArgs {
    /// The folder that the records are in.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// How to print it.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// Reads and tells.
pub fn tell(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let path = args.folder.join(FILE);
    let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let found = check(&text);
    match args.output {
        Format::Json => say(&(serde_json::to_string_pretty(&found).context("writing JSON")? + "\n"))?,
        Format::Text => say(&words(&found))?,
    }
    Ok(if found.is_whole() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn words(found: &Findings) -> String {
    let mut out = format!("{} good records, unbroken up to number {}\n", found.records, found.last_number());
    for span in &found.writers {
        out.push_str(&format!("  {} to {} by {}\n", span.from, span.to, span.writer));
    }
    if let Some(first) = found.first_missing {
        out.push_str(&format!("number {first} is missing\n"));
    }
    if !found.damaged.is_empty() {
        let lines: Vec<String> = found.damaged.iter().take(10).map(ToString::to_string).collect();
        out.push_str(&format!(
            "{} lines are damaged, the first being {}\n",
            found.damaged.len(),
            lines.join(", ")
        ));
    }
    if found.torn > 0 {
        out.push_str(&format!("{} bytes of a record that was being written\n", found.torn));
    }
    out
}
