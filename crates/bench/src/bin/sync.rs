//! The stream to a peer against rsync through stunnel with a pre-shared key, which is what VolSync's mover runs.
//!
//! Both carry the same tree over loopback, encrypted, to the same file system: everything, then one percent, then nothing. What is compared is
//! processor time of both ends together, the sum over all processes, because two ends on one machine share it. rsync runs with VolSync's options
//! but without packing, which it would only pay for here, with extended attributes, which it needs to carry the same things, and once, where
//! VolSync runs it twice.
#![expect(clippy::print_stdout, reason = "it tells what it is doing")]

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use lifeboat_bench::findings::{Findings, millis};
use lifeboat_bench::server::{own_processor_time, processor_time};
use lifeboat_stream::{
    CHECKPOINT, Destination, Destinations, Event, Job, Key, Place, Policy, Receiver, Sending, Sent, Source,
    Timing, Trust, send,
};
use tokio::sync::{mpsc, watch};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

#[derive(Parser)]
struct Args {
    /// Not used; every benchmark gets it.
    #[arg(long)]
    lifeboat: Option<PathBuf>,
    /// Where the findings go, as JSON; the trees go next to it.
    #[arg(long)]
    output: PathBuf,
    /// Files in the tree.
    #[arg(long, default_value_t = 10_000)]
    files: u64,
    /// Bytes in all files together.
    #[arg(long, default_value_t = 1 << 30)]
    bytes: u64,
    /// Runs of each; the one with the least processor time counts.
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

/// What one sync took.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    processor: Duration,
    time: Duration,
    wire: u64,
}

impl Cost {
    fn least(self, other: Option<Self>) -> Self {
        other.filter(|other| other.processor <= self.processor).unwrap_or(self)
    }
}

/// The three syncs of one side.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    initial: Option<Cost>,
    incremental: Option<Cost>,
    idle: Option<Cost>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let folder = tempfile::Builder::new()
        .prefix("sync-")
        .tempdir_in(args.output.parent().unwrap_or(Path::new(".")))?;
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    let mut changed = 0;
    for run in 0..args.runs {
        let source = folder.path().join(format!("source-{run}"));
        fill(&source, &args)?;
        let mut stream = Stream::start(&folder.path().join(format!("ours-{run}"))).await?;
        let rsync = Rsync::start(&folder.path().join(format!("theirs-{run}")))?;
        println!("run {}", run + 1);
        let cost = rsync.sync(&source)?;
        theirs.initial = Some(cost.least(theirs.initial));
        let cost = stream.sync(&source, "g1").await?;
        ours.initial = Some(cost.least(ours.initial));
        stream.publish("g1")?;
        changed = change(&source, &args)?;
        let cost = rsync.sync(&source)?;
        theirs.incremental = Some(cost.least(theirs.incremental));
        let cost = stream.sync(&source, "g2").await?;
        ours.incremental = Some(cost.least(ours.incremental));
        stream.publish("g2")?;
        let cost = rsync.sync(&source)?;
        theirs.idle = Some(cost.least(theirs.idle));
        let cost = stream.sync(&source, "g3").await?;
        ours.idle = Some(cost.least(ours.idle));
        for copy in [&stream.staging(), &rsync.target] {
            compare(&source, copy)?;
        }
        fs::remove_dir_all(&source)?;
    }
    report(&args, ours, theirs, changed)
}

fn report(args: &Args, ours: Side, theirs: Side, changed: u64) -> Result<()> {
    let mut findings = Findings::default();
    let steps = [
        ("initial", ours.initial, theirs.initial, args.bytes),
        ("incremental", ours.incremental, theirs.incremental, changed),
        ("idle", ours.idle, theirs.idle, 0),
    ];
    for (name, ours, theirs, bytes) in steps {
        let (Some(ours), Some(theirs)) = (ours, theirs) else { bail!("no run was made") };
        // Bytes in a second of processor time: the same bytes, so the ratio is that of the times, turned round.
        findings.ratio(
            &format!("{name}_vs_rsync"),
            theirs.processor.as_secs_f64(),
            ours.processor.as_secs_f64(),
        );
        for (side, cost) in [("", ours), ("rsync_", theirs)] {
            findings.figure(&format!("{side}{name}_sync_cpu_ms"), millis(cost.processor));
            findings.figure(&format!("{side}{name}_sync_ms"), millis(cost.time));
            if bytes > 0 {
                let speed = bytes as f64 / 1e6 / cost.processor.as_secs_f64();
                findings.figure(&format!("{side}{name}_mb_per_cpu_second"), speed);
            }
        }
        findings.figure(&format!("{name}_bytes_on_wire"), ours.wire as f64);
    }
    let idle = ours.idle.map_or(0.0, |cost| millis(cost.processor));
    findings.figure("idle_sync_cpu_ms", idle);
    findings.figure("bytes_changed", changed as f64);
    findings.figure("files", args.files as f64);
    findings.write(&args.output)
}

/// Bytes that look like nothing.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn file(source: &Path, number: u64) -> PathBuf {
    source.join(format!("folder-{}", number / 100)).join(format!("file-{number}"))
}

fn fill(source: &Path, args: &Args) -> Result<()> {
    let size = (args.bytes / args.files) as usize;
    for number in 0..args.files {
        if number % 100 == 0 {
            fs::create_dir_all(source.join(format!("folder-{}", number / 100)))?;
        }
        fs::write(file(source, number), noise(number, size))?;
    }
    Ok(())
}

/// Changes one percent: half of it pages inside of files, a quarter appended, a quarter files written anew.
fn change(source: &Path, args: &Args) -> Result<u64> {
    let (share, size) = (args.bytes / 100, args.bytes / args.files);
    let mut changed = 0;
    let mut number = 0;
    let mut next = |step: u64| {
        number = (number + step) % args.files;
        file(source, number)
    };
    let mut seed = 1 << 40;
    while changed < share {
        seed += 1;
        if changed < share / 2 {
            let at = seed % (size / 4096).max(1) * 4096;
            let length = 4096.min(size - at.min(size - 1));
            fs::OpenOptions::new()
                .write(true)
                .open(next(7))?
                .write_all_at(&noise(seed, length as usize), at)?;
            changed += length;
        } else if changed < share * 3 / 4 {
            fs::OpenOptions::new().append(true).open(next(7))?.write_all(&noise(seed, 4096))?;
            changed += 4096;
        } else {
            fs::write(next(7), noise(seed, size as usize))?;
            changed += size;
        }
    }
    Ok(changed)
}

fn compare(one: &Path, other: &Path) -> Result<()> {
    let status = Command::new("diff").arg("-rq").arg(one).arg(other).status().context("running diff")?;
    if status.success() { Ok(()) } else { bail!("{} is not {}", other.display(), one.display()) }
}

/// Our side: sender and receiver in this process.
struct Stream {
    folder: PathBuf,
    address: SocketAddr,
    destinations: Destinations,
    events: mpsc::UnboundedReceiver<Event>,
    copies: u32,
}

impl Stream {
    async fn start(folder: &Path) -> Result<Self> {
        let (receiver, destinations, events) =
            Receiver::bind("127.0.0.1:0".parse()?, Timing::default()).await?;
        let address = receiver.address()?;
        tokio::spawn(receiver.run());
        let stream = Self { folder: folder.to_owned(), address, destinations, events, copies: 0 };
        fs::create_dir_all(stream.staging())?;
        stream.expect(None)?;
        Ok(stream)
    }

    fn staging(&self) -> PathBuf {
        self.folder.join("staging")
    }

    fn expect(&self, base: Option<&str>) -> Result<()> {
        Ok(self.destinations.register(Destination {
            id: "volume".into(),
            key: Key::parse(&format!("bench:{SECRET}"))?,
            epoch: 1,
            place: Place::Tree(self.staging()),
            base: base.map(str::to_owned),
            incarnation: self.copies.to_string(),
            state: self.folder.join("state"),
            policy: Policy::default(),
            checkpoint: CHECKPOINT,
            terms: lifeboat_stream::Terms::default(),
        })?)
    }

    /// The next sync goes into the same tree, as rsync's does; copies and snapshots are not measured here.
    fn publish(&mut self, generation: &str) -> Result<()> {
        self.copies += 1;
        self.expect(Some(generation))
    }

    async fn sync(&mut self, source: &Path, generation: &str) -> Result<Cost> {
        let (before, begin) = (own_processor_time()?, Instant::now());
        let job = Job::new("volume", 1, generation, jiff::Timestamp::now(), self.folder.join("index"));
        let source = Source::Tree { path: source.to_owned(), trust: Trust::Stamps };
        let key = Key::parse(&format!("bench:{SECRET}"))?;
        let sent: Sent =
            send(source, self.address, &key, job, watch::Sender::new(Sending::default())).await?;
        while !matches!(self.events.recv().await.context("the receiver is gone")?, Event::Completed(_)) {}
        let cost = Cost {
            processor: own_processor_time()? - before,
            time: begin.elapsed(),
            wire: sent.bytes_on_wire,
        };
        println!("  ours  {generation}: {cost:?} changed {}", sent.bytes_changed);
        Ok(cost)
    }
}

/// Their side: an rsync daemon behind stunnel, and an rsync that goes through another.
struct Rsync {
    target: PathBuf,
    port: u16,
    running: Vec<Child>,
}

impl Drop for Rsync {
    fn drop(&mut self) {
        for child in &mut self.running {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Rsync {
    fn start(folder: &Path) -> Result<Self> {
        let target = folder.join("target");
        fs::create_dir_all(&target)?;
        let (daemon, sealed, open) = (free_port()?, free_port()?, free_port()?);
        let config = folder.join("rsyncd.conf");
        let root = "uid = 0\ngid = 0\nuse chroot = no\nmunge symlinks = no\nread only = no\n";
        fs::write(&config, format!("{root}[data]\npath = {}\n", target.display()))?;
        fs::write(folder.join("psk.txt"), format!("bench:{SECRET}\n"))?;
        let stunnel = |client: bool, accept: u16, connect: u16| {
            format!(
                "foreground = yes\npid =\ndebug = err\nsocket = l:TCP_NODELAY=1\nsocket = r:TCP_NODELAY=1\n[rsync]\nclient = {}\n\
                 ciphers = PSK\nPSKsecrets = {}\naccept = 127.0.0.1:{accept}\nconnect = 127.0.0.1:{connect}\n",
                if client { "yes" } else { "no" },
                folder.join("psk.txt").display()
            )
        };
        let mut running = Vec::new();
        let mut command = Command::new("rsync");
        command.args(["--daemon", "--no-detach", "--address=127.0.0.1"]);
        command.arg(format!("--port={daemon}")).arg(format!("--config={}", config.display()));
        running.push(command.stdin(Stdio::null()).spawn().context("starting rsync")?);
        for (name, client, accept, connect) in
            [("server", false, sealed, daemon), ("client", true, open, sealed)]
        {
            let config = folder.join(format!("stunnel-{name}.conf"));
            fs::write(&config, stunnel(client, accept, connect))?;
            running.push(Command::new("stunnel4").arg(config).spawn().context("starting stunnel4")?);
        }
        let begin = Instant::now();
        while [daemon, sealed, open]
            .iter()
            .any(|port| std::net::TcpStream::connect(("127.0.0.1", *port)).is_err())
        {
            if begin.elapsed() > Duration::from_secs(30) {
                bail!("rsync behind stunnel does not listen");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { target, port: open, running })
    }

    /// Processor time of all that runs here, of those that were waited for included.
    fn processor(&self) -> Result<Duration> {
        let mut time = waited_for("self")?;
        for child in &self.running {
            let pid = child.id().to_string();
            time += processor_time(&pid)? + waited_for(&pid)?;
        }
        Ok(time)
    }

    fn sync(&self, source: &Path) -> Result<Cost> {
        let (before, begin) = (self.processor()?, Instant::now());
        let mut command = Command::new("rsync");
        command.args(["-aAXHSx", "--delete"]);
        command.arg(format!("{}/", source.display())).arg(format!("rsync://127.0.0.1:{}/data/", self.port));
        let status = command.status().context("running rsync")?;
        if !status.success() {
            bail!("rsync ended with {status}");
        }
        // Ours is on the disk when it returns; so is this.
        Command::new("sync").arg("-f").arg(&self.target).status().context("running sync")?;
        let time = begin.elapsed();
        // The daemon's child ends a moment after the client.
        std::thread::sleep(Duration::from_millis(200));
        let cost = Cost { processor: self.processor()? - before, time, wire: 0 };
        println!("  rsync: {cost:?}");
        Ok(cost)
    }
}

/// Processor time of the children of a process that it has waited for.
fn waited_for(process: &str) -> Result<Duration> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let (_, fields) = text.rsplit_once(')').with_context(|| format!("{path} has no name"))?;
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}
