//! Runs a target for some time without libFuzzer: `soak TARGET --seconds N --seed S`.
//!
//! The target runs in a child, because a stack that overflows or memory that runs out can not be caught. The child writes
//! each input down before it runs it; the parent watches its clock and its memory and, when it ends badly, tells the
//! input.

use clap::Parser;
use lifeboat_fuzz::mutate::{self, Chance};
use lifeboat_fuzz::{TARGETS, Target};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

/// How often the parent looks.
const LOOK: Duration = Duration::from_millis(50);
/// What of an input is shown as text.
const SHOWN: usize = 2000;

#[derive(Parser, Clone)]
#[command(about = "Feeds a target with hostile input and watches what it does to time and memory")]
struct Args {
    /// The target, or `all`.
    target: String,
    /// How long to run each target.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// The same seed gives the same inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most memory that the target may hold.
    #[arg(long, default_value_t = 1024)]
    max_rss_mib: u64,
    /// The most time that one input may take.
    #[arg(long, default_value_t = 20)]
    max_input_seconds: u64,
    /// Goes on after a panic, and tells every place that panics once.
    #[arg(long)]
    keep_going: bool,
    /// Runs this one input instead: hexadecimal digits, or @FILE.
    #[arg(long)]
    input: Option<String>,
    /// Where the child writes its inputs down.
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen: Vec<Target> =
        TARGETS.iter().copied().filter(|(name, _)| args.target == "all" || args.target == *name).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("no target {}; there are: all, {}", args.target, names.join(", "));
        return ExitCode::from(2);
    }
    let outcome = match (&args.input, &args.child) {
        (Some(input), _) => one(input, &chosen),
        (None, Some(file)) => child(&args, chosen[0], file),
        (None, None) => chosen.iter().try_for_each(|(name, _)| watch(&args, name)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one input, with nothing around it.
fn one(input: &str, chosen: &[Target]) -> Result<(), String> {
    let bytes = match input.strip_prefix('@') {
        Some(path) => std::fs::read(path).map_err(|why| format!("reading {path}: {why}"))?,
        None => unhex(input).ok_or("the input is not hexadecimal")?,
    };
    for (name, run) in chosen {
        let begin = Instant::now();
        run(&bytes);
        println!("{name}: sound, in {:?}", begin.elapsed());
    }
    Ok(())
}

/// Starts the child and watches it.
fn watch(args: &Args, target: &str) -> Result<(), String> {
    let trouble = |what: &str, why: std::io::Error| format!("{what}: {why}");
    let folder = tempfile::tempdir().map_err(|why| trouble("making a folder", why))?;
    let file = folder.path().join("input");
    File::create(&file).map_err(|why| trouble("making a file", why))?;
    let program = std::env::current_exe().map_err(|why| trouble("finding this program", why))?;
    let mut child = Command::new(program)
        .args([target, "--seconds", &args.seconds.to_string(), "--seed", &args.seed.to_string()])
        .args(args.keep_going.then_some("--keep-going"))
        .arg("--child")
        .arg(&file)
        .spawn()
        .map_err(|why| trouble("starting the child", why))?;
    let outcome = follow(args, &mut child, &file);
    if let Err(why) = &outcome {
        // It may be over already.
        let _ = child.kill();
        let _ = child.wait();
        let (count, input) = read_input(&file);
        return Err(format!(
            "{target}: {why}\nseed {}, input {count} of {} bytes:\n{}\nas text:\n{}",
            args.seed,
            input.len(),
            hex(&input),
            String::from_utf8_lossy(&input[..input.len().min(SHOWN)])
        ));
    }
    Ok(())
}

fn follow(args: &Args, child: &mut Child, file: &Path) -> Result<(), String> {
    let mut last = (0, Instant::now());
    loop {
        if let Some(status) = child.try_wait().map_err(|why| format!("waiting for the child: {why}"))? {
            return if status.success() { Ok(()) } else { Err(format!("the target failed: {status}")) };
        }
        let (count, _) = read_input(file);
        if count != last.0 {
            last = (count, Instant::now());
        } else if last.1.elapsed() > Duration::from_secs(args.max_input_seconds) {
            return Err(format!("one input takes more than {} s", args.max_input_seconds));
        }
        let rss = resident_mib(&format!("/proc/{}/status", child.id()), "VmRSS:");
        if rss > args.max_rss_mib {
            return Err(format!("the target holds {rss} MiB"));
        }
        std::thread::sleep(LOOK);
    }
}

/// Makes inputs and runs them until the time is up.
fn child(args: &Args, (name, run): Target, file: &Path) -> Result<(), String> {
    let file =
        File::options().write(true).open(file).map_err(|why| format!("opening {}: {why}", file.display()))?;
    let seeds = mutate::seeds(name).map_err(|why| format!("reading the seeds of {name}: {why}"))?;
    // Panics of code that is fenced in are no news; the last one is told when it was not.
    let last = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let heard = last.clone();
    std::panic::set_hook(Box::new(move |info| {
        let trace = std::backtrace::Backtrace::force_capture();
        *heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = format!("{info}\n{trace}");
    }));
    let mut chance = Chance::new(args.seed);
    let begin = Instant::now();
    let mut slowest = (Duration::ZERO, Vec::new());
    let mut count = 0_u64;
    let mut failures = BTreeSet::new();
    while begin.elapsed() < Duration::from_secs(args.seconds) {
        // The seeds as they are come first.
        let input = match seeds.get(count as usize) {
            Some(seed) => seed.clone(),
            None => mutate::input(&mut chance, &seeds),
        };
        count += 1;
        write_input(&file, count, &input).map_err(|why| format!("writing the input down: {why}"))?;
        let start = Instant::now();
        if catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
            let told = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
            // The frames of std are nobody's news.
            let of_std = |line: &&str| line.contains("at /rustc/") || line.contains("std::panicking");
            let lines = told.lines().filter(|line| line.starts_with("panicked") || !of_std(line));
            let why = lines.take(60).collect::<Vec<_>>().join("\n");
            if !args.keep_going {
                return Err(why);
            }
            if failures.insert(place(&told)) {
                eprintln!("{name}: {why}\ninput {count}:\n{}\n", hex(&input));
            }
        }
        let taken = start.elapsed();
        if taken > slowest.0 {
            slowest = (taken, input);
        }
    }
    let peak = resident_mib("/proc/self/status", "VmHWM:");
    println!("{name}: {count} runs in {} s with seed {}, at most {peak} MiB", args.seconds, args.seed);
    let shown = &slowest.1[..slowest.1.len().min(SHOWN)];
    let more = if shown.len() < slowest.1.len() { "..." } else { "" };
    println!("{name}: the slowest took {:?}: {}{more}", slowest.0, hex(shown));
    if failures.is_empty() { Ok(()) } else { Err(format!("{} different failures", failures.len())) }
}

/// Where a panic came from: its own line, the beginning of what it says, and the first frame in our crates.
fn place(told: &str) -> String {
    let mut lines = told.lines();
    let own = lines.next().unwrap_or_default();
    let words: String = lines.next().unwrap_or_default().chars().take(40).collect();
    let frame = lines.find(|line| line.contains("/crates/")).unwrap_or_default();
    format!("{own}\n{words}\n{frame}")
}

fn write_input(file: &File, count: u64, input: &[u8]) -> std::io::Result<()> {
    let head = [count.to_le_bytes(), (input.len() as u64).to_le_bytes()].concat();
    file.write_all_at(&[&head, input].concat(), 0)
}

/// The input that runs, and its number.
fn read_input(file: &Path) -> (u64, Vec<u8>) {
    let bytes = std::fs::read(file).unwrap_or_default();
    let number = |at: usize| {
        let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_le_bytes)
    };
    let end = (16 + number(8) as usize).min(bytes.len());
    (number(0), bytes.get(16..end).unwrap_or_default().to_vec())
}

/// A line of a status file of the kernel; zero where there is none.
fn resident_mib(path: &str, line: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().find_map(|text| text.strip_prefix(line));
    found.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(pair).collect()
}
