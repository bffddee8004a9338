//! The embedded API server against kube-apiserver with etcd: time to ready, durable creates, memory, events.
//!
//! Both sides get the same client, the same transport, the same concurrency and the same file system, one after the
//! other, and both sync every write to the disk before they answer.
#![expect(clippy::print_stdout, reason = "it tells what it is doing")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::Parser;
use http::{Method, StatusCode};
use lifeboat_bench::creates::{self, Load};
use lifeboat_bench::findings::{Findings, median, millis, percentile};
use lifeboat_bench::server::{Server, own_processor_time};
use lifeboat_bench::watchers;

#[derive(Parser)]
struct Args {
    /// The lifeboat binary, built for release.
    #[arg(long)]
    lifeboat: PathBuf,
    /// Where the findings go, as JSON; data of the servers goes next to it.
    #[arg(long)]
    output: PathBuf,
    /// Objects for the measure of memory.
    #[arg(long, default_value_t = 100_000)]
    objects: u64,
    /// Creates that are timed, a part of all objects; as many go before them to warm up, up to 5000.
    #[arg(long, default_value_t = 40_000)]
    creates: u64,
    /// Watchers at once.
    #[arg(long, default_value_t = 1000)]
    watchers: usize,
    /// Writes that the watchers see.
    #[arg(long, default_value_t = 100)]
    events: usize,
    /// Connections of the creating clients.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Requests under way on each connection.
    #[arg(long, default_value_t = 32)]
    streams: usize,
    /// Starts of each server for the time to ready.
    #[arg(long, default_value_t = 3)]
    starts: usize,
    /// Leave the embedded server out: only the figures of kube-apiserver.
    #[arg(long)]
    only_real: bool,
}

/// What one side achieved.
struct Measured {
    ready: Duration,
    creates_per_second: f64,
    create_p50: Duration,
    create_p99: Duration,
    /// Processors kept busy during the creates, by the client and by the server.
    create_client_cores: f64,
    create_server_cores: f64,
    event_p50: Duration,
    event_p99: Duration,
    list: Duration,
    memory: Vec<(&'static str, u64)>,
}

impl Measured {
    fn memory_in_all(&self) -> f64 {
        self.memory.iter().map(|(_, bytes)| *bytes as f64).sum()
    }

    fn note(&self, findings: &mut Findings, prefix: &str) {
        let mut figure = |name: &str, value: f64| findings.figure(&format!("{prefix}{name}"), value);
        figure("time_to_ready_ms", millis(self.ready));
        figure("durable_creates_per_second", self.creates_per_second);
        figure("create_p50_ms", millis(self.create_p50));
        figure("create_p99_ms", millis(self.create_p99));
        figure("create_client_cores", self.create_client_cores);
        figure("create_server_cores", self.create_server_cores);
        figure("event_p50_ms_1000_watchers", millis(self.event_p50));
        figure("event_p99_ms_1000_watchers", millis(self.event_p99));
        figure("list_all_objects_ms", millis(self.list));
        for (process, bytes) in &self.memory {
            figure(&format!("memory_mb_{}", process.replace('-', "_")), *bytes as f64 / 1e6);
        }
    }
}

enum Side<'a> {
    Embedded(&'a Path),
    Real,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut findings = Findings::default();
    println!("kube-apiserver and etcd");
    let theirs = measure(&Side::Real, &args).await?;
    theirs.note(&mut findings, "kube_apiserver_");
    if !args.only_real {
        println!("lifeboat up");
        let ours = measure(&Side::Embedded(&args.lifeboat), &args).await?;
        ours.note(&mut findings, "");
        let ratios = [
            ("durable_creates_vs_kube_apiserver", ours.creates_per_second, theirs.creates_per_second),
            ("memory_at_100k_objects_vs_kube_apiserver", ours.memory_in_all(), theirs.memory_in_all()),
            ("time_to_ready_vs_kube_apiserver", millis(ours.ready), millis(theirs.ready)),
            ("event_p99_vs_kube_apiserver", millis(ours.event_p99), millis(theirs.event_p99)),
        ];
        for (name, ours, theirs) in ratios {
            findings.ratio(name, ours, theirs);
        }
    }
    findings.figure("objects", args.objects as f64);
    findings.figure("watchers", args.watchers as f64);
    findings.figure("requests_under_way", (args.connections * args.streams) as f64);
    findings.write(&args.output)
}

async fn start(side: &Side<'_>, folder: &Path) -> Result<Server> {
    match side {
        Side::Embedded(program) => Server::embedded(program, folder).await,
        Side::Real => Server::real(folder).await,
    }
}

async fn measure(side: &Side<'_>, args: &Args) -> Result<Measured> {
    // The data lies on the file system of the output, not in a folder that may be memory.
    let folder = args.output.parent().unwrap_or(Path::new("."));
    let mut ready = Vec::new();
    for _ in 1..args.starts {
        ready.push(start(side, folder).await?.time_to_ready);
    }
    let server = start(side, folder).await?;
    ready.push(server.time_to_ready);
    let ready = median(&mut ready);
    println!("  ready after {:.0} ms", millis(ready));

    let mut events = watchers::run(&server.access, args.watchers, args.events).await?;
    let (event_p50, event_p99) = (percentile(&mut events, 0.5), percentile(&mut events, 0.99));
    println!("  events: p50 {:.1} ms, p99 {:.1} ms", millis(event_p50), millis(event_p99));

    let load = Load { connections: args.connections, streams: args.streams, payload: 512 };
    let warm = args.creates.min(5000);
    creates::run(&server.access, load, "warm", warm).await?;
    let (client, processes) = (own_processor_time()?, server.processor_time()?);
    let mut timed = creates::run(&server.access, load, "timed", args.creates).await?;
    let cores = |now: Duration, before: Duration| (now - before).as_secs_f64() / timed.time.as_secs_f64();
    let create_client_cores = cores(own_processor_time()?, client);
    let create_server_cores = cores(server.processor_time()?, processes);
    let (create_p50, create_p99) =
        (percentile(&mut timed.latencies, 0.5), percentile(&mut timed.latencies, 0.99));
    println!(
        "  creates: {:.0}/s, p50 {:.1} ms, p99 {:.1} ms",
        timed.rate(),
        millis(create_p50),
        millis(create_p99)
    );

    let left = args.objects.saturating_sub(args.events as u64 + warm + args.creates);
    creates::run(&server.access, load, "fill", left).await?;
    // Both sides get the same time to give back what only the load needed.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let memory = server.memory()?;
    println!("  memory: {memory:?}");

    let begin = std::time::Instant::now();
    let mut connection = server.access.connect().await?;
    let path = "/api/v1/configmaps?resourceVersion=0";
    connection.call(Method::GET, path, Bytes::new(), StatusCode::OK).await?;
    let list = begin.elapsed();
    println!("  list: {:.0} ms", millis(list));
    Ok(Measured {
        ready,
        creates_per_second: timed.rate(),
        create_p50,
        create_p99,
        create_client_cores,
        create_server_cores,
        event_p50,
        event_p99,
        list,
        memory,
    })
}
