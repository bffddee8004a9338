//! A `lifeboat up` that ends with the test.

use kube::config::{KubeConfigOptions, Kubeconfig};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running `lifeboat up`.
pub struct Up {
    child: Child,
    /// What it said until it was ready.
    pub said: String,
}

impl Up {
    /// Starts it and waits until it is ready.
    pub fn start(data: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lifeboat"))
            .arg("up")
            .arg("--data")
            .arg(data)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .expect("lifeboat starts");
        let mut said = String::new();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        for line in output.lines() {
            let line = line.expect("text");
            said.push_str(&line);
            said.push('\n');
            if line.contains("Ctrl-C") {
                break;
            }
        }
        assert!(said.contains("Ctrl-C"), "lifeboat up ended early: {said}");
        Self { child, said }
    }

    /// Kills it as the kernel would.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Asks it to stop and gives its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        let id = i32::try_from(self.child.id()).expect("a process id");
        let process = rustix::process::Pid::from_raw(id).expect("a process id");
        rustix::process::kill_process(process, rustix::process::Signal::INT).expect("signalled");
        self.child.wait().expect("ended").code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Ended already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of one cluster.
pub async fn client(data: &Path, context: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(data.join("kubeconfig")).expect("a kubeconfig");
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a context");
    kube::Client::try_from(config).expect("a client")
}
