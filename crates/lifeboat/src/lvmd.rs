//! `lifeboat lvmd`: node storage over gRPC on a unix socket, in the place of TopoLVM's lvmd.

use anyhow::Context as _;
use lifeboat_lvm::{Config, Program, Storage};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `lifeboat lvmd`.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration file: TopoLVM's lvmd.yaml, or ours.
    #[arg(long, value_name = "FILE", default_value = "/etc/topolvm/lvmd.yaml")]
    config: PathBuf,
    /// Serve on this socket in place of the one that the file names.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Read and check the file, and do nothing else.
    #[arg(long)]
    check: bool,
}

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&args.config)
        .with_context(|| format!("reading the configuration {}", args.config.display()))?;
    let config = Config::read(&text).with_context(|| format!("in {}", args.config.display()))?;
    if args.check {
        return Ok(());
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(async {
        let socket = args.socket.clone().unwrap_or_else(|| config.socket.clone());
        let program = Arc::new(Program { prefix: config.prefix.clone() });
        let storage = Arc::new(Storage::open(config, program).context("opening the device classes")?);
        let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .context("listening for SIGTERM")?;
        let stop = async move {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        lifeboat_lvm::serve(storage, &socket, stop).await.context("serving node storage")
    })
}
