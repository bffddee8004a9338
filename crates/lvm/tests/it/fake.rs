//! An LVM that lives in memory and can be slow, fail, stop half-way or talk nonsense.

use async_trait::async_trait;
use lifeboat_lvm::{Output, Patience, Run, Wipe};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub const EXTENT: u64 = 4 << 20;

/// What happens instead of the next command of a name.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It says this and does nothing.
    Fails(i32, &'static str),
    /// It does its work and then fails.
    HalfDone,
    /// It cannot be started, or ran past its deadline.
    Unstartable,
    /// It prints this in place of a report.
    Prints(&'static str),
    /// It waits for [`FakeLvm::go`].
    Waits,
}

#[derive(Clone, Debug, Default)]
pub struct Lv {
    pub size: u64,
    pub tags: BTreeSet<String>,
    pub pool: Option<String>,
    pub origin: Option<String>,
    pub cow: Option<u64>,
    pub read_only: bool,
    pub open: bool,
    pub active: bool,
}

#[derive(Debug)]
pub struct State {
    pub present: bool,
    pub size: u64,
    pub data_percent: f64,
    pub pool: Option<u64>,
    pub volumes: BTreeMap<String, Lv>,
    pub commands: Vec<Vec<String>>,
    pub wiped: Vec<String>,
    pub faults: BTreeMap<String, VecDeque<Fault>>,
}

/// One volume group `g`, with a pool `pool` if asked for.
#[derive(Clone)]
pub struct FakeLvm {
    pub state: Arc<Mutex<State>>,
    gate: Arc<Semaphore>,
}

impl FakeLvm {
    pub fn new(size: u64, pool: Option<u64>) -> Self {
        let state = State {
            present: true,
            size,
            data_percent: 0.0,
            pool,
            volumes: BTreeMap::new(),
            commands: Vec::new(),
            wiped: Vec::new(),
            faults: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), gate: Arc::new(Semaphore::new(0)) }
    }

    pub fn fault(&self, command: &str, fault: Fault) {
        self.state.lock().faults.entry(command.to_owned()).or_default().push_back(fault);
    }

    /// Lets one waiting command go on.
    pub fn go(&self) {
        self.gate.add_permits(1);
    }

    /// How often a command was run.
    pub fn count(&self, command: &str) -> usize {
        self.state.lock().commands.iter().filter(|arguments| arguments[0] == command).count()
    }
}

#[async_trait]
impl Run for FakeLvm {
    async fn lvm(&self, arguments: &[String], patience: Patience) -> std::io::Result<Output> {
        let command = arguments[0].clone();
        assert_eq!(arguments[1], "--config");
        assert_eq!(patience == Patience::Endless, command != "fullreport", "only reports may be stopped");
        let fault = {
            let mut state = self.state.lock();
            state.commands.push(arguments.to_vec());
            state.faults.get_mut(&command).and_then(VecDeque::pop_front)
        };
        let failed = |code, message: &str| Output {
            code,
            stdout: serde_json::json!({"log": [{"log_type": "error", "log_message": message}]}).to_string(),
            stderr: String::new(),
        };
        match fault {
            Some(Fault::Fails(code, message)) => return Ok(failed(code, message)),
            Some(Fault::Unstartable) => return Err(std::io::Error::other("no such program")),
            Some(Fault::Prints(text)) => {
                return Ok(Output { code: 0, stdout: text.to_owned(), stderr: String::new() });
            }
            Some(Fault::Waits) => self.gate.acquire().await.unwrap().forget(),
            Some(Fault::HalfDone) => {
                let _ = self.state.lock().run(&arguments[3..], &command);
                return Ok(failed(5, "Internal error: lost my way"));
            }
            None => {}
        }
        Ok(match self.state.lock().run(&arguments[3..], &command) {
            Ok(stdout) => Output { code: 0, stdout, stderr: String::new() },
            Err(message) => failed(5, &message),
        })
    }

    async fn wipe(&self, device: &Path, how: Wipe) -> std::io::Result<()> {
        assert_ne!(how, Wipe::None);
        let fault = self.state.lock().faults.get_mut("wipe").and_then(VecDeque::pop_front);
        match fault {
            Some(Fault::Waits) => self.gate.acquire().await.unwrap().forget(),
            Some(_) => return Err(std::io::Error::other("the disk is broken")),
            None => {}
        }
        self.state.lock().wiped.push(device.file_name().unwrap().to_str().unwrap().to_owned());
        Ok(())
    }
}

impl State {
    pub fn free(&self) -> u64 {
        let used: u64 =
            self.volumes.values().filter(|lv| lv.pool.is_none()).map(|lv| lv.cow.unwrap_or(lv.size)).sum();
        self.size - used - self.pool.unwrap_or(0)
    }

    fn run(&mut self, arguments: &[String], command: &str) -> Result<String, String> {
        if !self.present {
            return Err("Volume group \"g\" not found".to_owned());
        }
        let last = arguments.last().unwrap().as_str();
        let name = last.strip_prefix("g/").unwrap_or(last).to_owned();
        let option = |short: &str| {
            arguments.iter().position(|argument| argument == short).map(|at| arguments[at + 1].clone())
        };
        let size = |short: &str| option(short).map(|text| text.trim_end_matches('b').parse::<u64>().unwrap());
        let listed = |short: &str| -> BTreeSet<String> {
            arguments.windows(2).filter(|pair| pair[0] == short).map(|pair| pair[1].clone()).collect()
        };
        match command {
            "fullreport" => return Ok(self.report()),
            "lvcreate" => {
                let name = option("-n").unwrap();
                if self.volumes.contains_key(&name) {
                    return Err(format!("Logical Volume \"{name}\" already exists in volume group \"g\""));
                }
                let mut lv = Lv { tags: listed("--addtag"), active: true, ..Lv::default() };
                lv.read_only = option("-p").as_deref() == Some("r");
                if arguments[0] == "-s" {
                    let source = last.strip_prefix("g/").unwrap().to_owned();
                    let from = self.volumes.get(&source).ok_or("Failed to find logical volume")?;
                    (lv.size, lv.pool, lv.cow) = (from.size, from.pool.clone(), size("-L"));
                    lv.origin = Some(source);
                } else if let Some(size) = size("-V") {
                    (lv.size, lv.pool) = (size, Some("pool".to_owned()));
                } else {
                    lv.size = size("-L").unwrap();
                }
                if lv.pool.is_none() && lv.cow.unwrap_or(lv.size) > self.free() {
                    return Err("Volume group \"g\" has insufficient free space".to_owned());
                }
                self.volumes.insert(name, lv);
                return Ok(String::new());
            }
            "lvrename" => {
                let [_, from, to] = arguments else { panic!("{arguments:?}") };
                let lv = self.volumes.remove(from).ok_or("Existing logical volume not found")?;
                self.volumes.insert(to.clone(), lv);
                for other in self.volumes.values_mut() {
                    if other.origin.as_ref() == Some(from) {
                        other.origin = Some(to.clone());
                    }
                }
                return Ok(String::new());
            }
            _ => {}
        }
        if name == "pool" {
            *self.pool.as_mut().unwrap() = size("-L").unwrap();
            return Ok(String::new());
        }
        let lv = self.volumes.get_mut(&name).ok_or(format!("Failed to find logical volume \"g/{name}\""))?;
        match command {
            "lvextend" => lv.size = size("-L").unwrap(),
            "lvchange" => {
                lv.tags.retain(|tag| !listed("--deltag").contains(tag));
                lv.tags.extend(listed("--addtag"));
                lv.active |= option("-a").as_deref() == Some("y") && arguments.contains(&"-K".to_owned());
            }
            "lvremove" => drop(self.volumes.remove(&name)),
            other => panic!("{other} is not known here"),
        }
        Ok(String::new())
    }

    fn report(&self) -> String {
        let mut rows: Vec<_> = self.volumes.iter().map(|(name, lv)| {
            let kind = if lv.cow.is_some() { 's' } else if lv.pool.is_some() { 'V' } else { '-' };
            let letters = format!(
                "{kind}{}i-{}{}----",
                if lv.read_only { 'r' } else { 'w' },
                if lv.active { 'a' } else { '-' },
                if lv.open { 'o' } else { '-' }
            );
            let origin = lv.origin.as_ref().filter(|origin| self.volumes.contains_key(*origin));
            serde_json::json!({
                "lv_name": name, "lv_path": format!("/dev/g/{name}"), "lv_size": lv.cow.unwrap_or(lv.size).to_string(),
                "lv_attr": letters, "lv_tags": lv.tags.iter().cloned().collect::<Vec<_>>().join(","),
                "origin": origin.cloned().unwrap_or_default(), "origin_size": lv.size.to_string(),
                "pool_lv": lv.pool.clone().unwrap_or_default(), "lv_kernel_major": "253", "lv_kernel_minor": "-1",
            })
        }).collect();
        if let Some(size) = self.pool {
            rows.push(serde_json::json!({
                "lv_name": "pool", "lv_attr": "twi-aotz--", "lv_size": size.to_string(), "lv_metadata_size": "4194304",
                "data_percent": format!("{:.2}", self.data_percent), "metadata_percent": "1.00",
            }));
        }
        let group = serde_json::json!({
            "vg_name": "g", "vg_size": self.size.to_string(), "vg_free": self.free().to_string(),
            "vg_extent_size": EXTENT.to_string(), "vg_missing_pv_count": "0",
        });
        serde_json::json!({"report": [{"vg": [group], "lv": rows}]}).to_string()
    }
}
