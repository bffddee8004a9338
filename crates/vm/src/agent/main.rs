//! The agent: answers the host inside the machine.
//!
//! It starts and kills programs, passes on what they write, and reads and writes files. It knows nothing of tests, and
//! leaves mounting and loading modules to the init script that starts it.
#![expect(clippy::print_stderr, reason = "it goes to the machine's console, and so into the kernel's log")]

#[cfg_attr(not(test), expect(dead_code, reason = "the other half is the host's"))]
#[path = "../wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use wire::{Answer, PORT, Request};

/// What all threads share: the port, and the process of each conversation that has one.
#[derive(Clone)]
struct Host {
    port: Arc<Mutex<File>>,
    running: Arc<Mutex<BTreeMap<u32, u32>>>,
}

fn main() -> io::Result<()> {
    let mut requests = OpenOptions::new().read(true).write(true).open(port()?)?;
    let host = Host { port: Arc::new(Mutex::new(requests.try_clone()?)), running: Arc::default() };
    host.tell(&Answer::Ready);
    loop {
        let request = Request::receive(&mut requests)?;
        host.serve(request);
    }
}

/// The device of the port: without udev nothing links it by its name.
fn port() -> io::Result<String> {
    for entry in fs::read_dir("/sys/class/virtio-ports")? {
        let entry = entry?;
        let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        if name.trim() == PORT {
            return Ok(format!("/dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no port to the host"))
}

impl Host {
    fn serve(&self, request: Request) {
        match request {
            Request::Start { id, argv, env, stdin } => match start(&argv, &env) {
                Ok(child) => self.follow(id, child, stdin),
                Err(error) => self.fail(id, &format!("starting {argv:?}"), &error),
            },
            Request::Kill { id } => self.kill(id, ""),
            Request::KillGroup { id } => self.kill(id, "-"),
            Request::Read { id, path } => match fs::read(&path) {
                Ok(bytes) => self.tell(&Answer::Content { id, bytes }),
                Err(error) => self.fail(id, &format!("reading {path}"), &error),
            },
            Request::Write { id, path, mode, content } => match write(&path, mode, &content) {
                Ok(()) => self.tell(&Answer::Done { id }),
                Err(error) => self.fail(id, &format!("writing {path}"), &error),
            },
        }
    }

    fn tell(&self, answer: &Answer) {
        if let Err(error) = answer.send(&mut *lock(&self.port)) {
            eprintln!("agent: telling the host: {error}");
        }
    }

    fn fail(&self, id: u32, what: &str, error: &io::Error) {
        self.tell(&Answer::Failed { id, why: format!("{what}: {error}") });
    }

    fn follow(&self, id: u32, mut child: Child, stdin: Vec<u8>) {
        lock(&self.running).insert(id, child.id());
        self.tell(&Answer::Started { id });
        if let Some(mut input) = child.stdin.take() {
            // A program may end without having read everything; that is its own affair.
            thread::spawn(move || drop(input.write_all(&stdin)));
        }
        let outputs = [
            child
                .stdout
                .take()
                .map(|pipe| self.clone().pass_on(pipe, move |bytes| Answer::Stdout { id, bytes })),
            child
                .stderr
                .take()
                .map(|pipe| self.clone().pass_on(pipe, move |bytes| Answer::Stderr { id, bytes })),
        ];
        let host = self.clone();
        thread::spawn(move || {
            match child.wait() {
                Ok(status) => host.tell(&last_word(id, status)),
                Err(error) => host.fail(id, "waiting", &error),
            }
            // A grandchild may hold the outputs open, so this is told apart.
            for output in outputs.into_iter().flatten() {
                let _ = output.join();
            }
            // Until now there may have been something of its process group to kill, and so nobody else had its number.
            lock(&host.running).remove(&id);
            host.tell(&Answer::Closed { id });
        });
    }

    fn pass_on(
        self,
        mut pipe: impl Read + Send + 'static,
        answer: impl Fn(Vec<u8>) -> Answer + Send + 'static,
    ) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                self.tell(&answer(buffer[..count].to_vec()));
            }
        })
    }

    fn kill(&self, id: u32, group: &str) {
        let Some(pid) = lock(&self.running).get(&id).copied() else { return };
        let killed =
            Command::new("/bin/busybox").args(["kill", "-9", "--", &format!("{group}{pid}")]).status();
        if let Err(error) = killed {
            eprintln!("agent: killing {pid}: {error}");
        }
    }
}

fn start(argv: &[String], env: &[String]) -> io::Result<Child> {
    let (program, args) =
        argv.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program named"))?;
    Command::new(program)
        .args(args)
        .envs(env.chunks_exact(2).map(|pair| (&pair[0], &pair[1])))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

fn last_word(id: u32, status: ExitStatus) -> Answer {
    match status.code() {
        Some(code) => Answer::Exited { id, code },
        None => Answer::Killed { id, signal: status.signal().unwrap_or_default() },
    }
}

fn write(path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(content)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
