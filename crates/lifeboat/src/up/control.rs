//! How people lose a cluster of `lifeboat up` and bring it back: a socket in the fleet's folder, with one command to a line.

use super::fleet::Fleet;
use anyhow::{Context as _, bail};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

const LOSE: &str = "lose";
const REVIVE: &str = "revive";
const DONE: &str = "done";

/// Options of `lifeboat lose` and `lifeboat revive`.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the cluster.
    cluster: String,
    /// The folder that `lifeboat up --data` was given.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Ends a cluster of a running fleet where it stands: its API server, its controllers, its object store and its pods.
pub fn lose(args: &Args) -> anyhow::Result<()> {
    ask(args, LOSE)
}

/// Starts it again, with the disks and the objects it had.
pub fn revive(args: &Args) -> anyhow::Result<()> {
    ask(args, REVIVE)
}

fn ask(args: &Args, what: &str) -> anyhow::Result<()> {
    let path = path(&args.data);
    let mut stream = UnixStream::connect(&path)
        .with_context(|| format!("no `lifeboat up --data {}` is running", args.data.display()))?;
    writeln!(stream, "{what} {}", args.cluster).context("asking the fleet")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).context("hearing from the fleet")?;
    match answer.trim_end() {
        DONE => Ok(()),
        "" => bail!("the fleet ended before it answered"),
        why => bail!("{why}"),
    }
}

fn path(home: &Path) -> PathBuf {
    home.join("control")
}

/// Opens the socket of a fleet; what an earlier process left there is replaced.
pub fn open(home: &Path) -> anyhow::Result<UnixListener> {
    let path = path(home);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("removing {}", path.display()));
        }
        _ => {}
    }
    UnixListener::bind(&path).with_context(|| format!("listening on {}", path.display()))
}

/// Serves whoever asks, for ever. One who says nonsense, or leaves early, changes nothing.
pub async fn serve(listener: &UnixListener, fleet: &mut Fleet) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let (read, mut write) = stream.split();
        let mut line = String::new();
        if tokio::io::BufReader::new(read).read_line(&mut line).await.is_err() {
            continue;
        }
        let answer = match carry_out(fleet, line.trim_end()).await {
            Ok(()) => DONE.to_owned(),
            Err(error) => format!("{error:#}"),
        };
        // Whoever asked may be gone.
        let _ = write.write_all(format!("{answer}\n").as_bytes()).await;
    }
}

async fn carry_out(fleet: &mut Fleet, line: &str) -> anyhow::Result<()> {
    let (what, cluster) = line.split_once(' ').unwrap_or((line, ""));
    match (what, fleet.is_running(cluster)?) {
        (LOSE, true) => tokio::task::block_in_place(|| fleet.kill(cluster)),
        (REVIVE, false) => {
            tokio::task::block_in_place(|| fleet.revive(cluster))?;
            fleet.furnish_anew(cluster).await
        }
        (LOSE, false) => bail!("cluster {cluster} is lost already"),
        (REVIVE, true) => bail!("cluster {cluster} is running"),
        _ => bail!("there is no command {what:?}"),
    }
}
