//! lvmd's configuration file: TopoLVM's keys with their meaning, and a few of our own. Pure.

use crate::dir::DirectoryClass;
use crate::lvm2::{Guard, Kind, LvmClass, Wipe};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Where TopoLVM's clients look for lvmd.
pub const DEFAULT_SOCKET: &str = "/run/topolvm/lvmd.sock";

/// From inside a pod, LVM runs in the namespaces of the host, where its locks and udev are.
const DEFAULT_PREFIX: [&str; 9] = ["/usr/bin/nsenter", "-m", "-u", "-i", "-n", "-p", "-t", "1", "/sbin/lvm"];

/// Gibibytes of a thick class never given away unless said otherwise.
const DEFAULT_SPARE_GB: u64 = 10;

/// What lvmd serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The unix socket.
    pub socket: PathBuf,
    /// What stands before the arguments of LVM, the program included.
    pub prefix: Vec<String>,
    /// More of LVM's own configuration for every command.
    pub lvm_config: String,
    /// Classes on LVM.
    pub lvm: Vec<LvmClass>,
    /// Classes on directories.
    pub directories: Vec<DirectoryClass>,
    /// Named sets of `lvcreate` options.
    pub option_classes: BTreeMap<String, Vec<String>>,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not the YAML that is expected.
    #[error("lvmd's configuration cannot be read: {0}")]
    Syntax(String),
    /// A class makes no sense.
    #[error("device class {class:?}: {fault}")]
    Class {
        /// The class.
        class: String,
        /// What is wrong and what to write instead.
        fault: String,
    },
    /// Something about all classes makes no sense.
    #[error("{0}")]
    Whole(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    socket_name: Option<PathBuf>,
    lvm_command_prefix: Option<Vec<String>>,
    #[serde(default)]
    lvm_config: String,
    #[serde(default)]
    device_classes: Vec<FileClass>,
    #[serde(default)]
    lvcreate_option_classes: Vec<FileOptions>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FileOptions {
    name: String,
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FileClass {
    name: String,
    #[serde(default)]
    volume_group: String,
    #[serde(default)]
    default: bool,
    #[serde(default)]
    r#type: FileKind,
    spare_gb: Option<u64>,
    stripe: Option<u32>,
    stripe_size: Option<String>,
    #[serde(default)]
    lvcreate_options: Vec<String>,
    thin_pool: Option<FilePool>,
    path: Option<PathBuf>,
    limit_gb: Option<u64>,
    wipe: Option<Wipe>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileKind {
    #[default]
    #[serde(alias = "")]
    Thick,
    Thin,
    Dir,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FilePool {
    name: String,
    overprovision_ratio: f64,
    #[serde(default)]
    guard: Guard,
}

impl Config {
    /// Reads and checks the text of a configuration file.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        let file: File =
            serde_saphyr::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        let mut config = Self {
            socket: file.socket_name.unwrap_or_else(|| DEFAULT_SOCKET.into()),
            prefix: file.lvm_command_prefix.unwrap_or_else(|| DEFAULT_PREFIX.map(str::to_owned).to_vec()),
            lvm_config: file.lvm_config,
            lvm: Vec::new(),
            directories: Vec::new(),
            option_classes: BTreeMap::new(),
        };
        if config.prefix.is_empty() {
            return Err(ConfigError::Whole(
                "lvm-command-prefix is empty: leave it out or name lvm".to_owned(),
            ));
        }
        for options in file.lvcreate_option_classes {
            let name = options.name.clone();
            check_class_name(&name)?;
            if config.option_classes.insert(options.name, options.options).is_some() {
                return Err(ConfigError::Whole(format!("lvcreate option class {name:?} is given twice")));
            }
        }
        if file.device_classes.is_empty() {
            return Err(ConfigError::Whole("device-classes is empty: name at least one".to_owned()));
        }
        let (mut names, mut targets, mut defaults) = (BTreeSet::new(), BTreeSet::new(), 0);
        for class in file.device_classes {
            check_class_name(&class.name)?;
            let name = class.name.clone();
            let fault = |fault: String| ConfigError::Class { class: name.clone(), fault };
            if !names.insert(name.clone()) {
                return Err(fault("is given twice; names must differ".to_owned()));
            }
            defaults += u32::from(class.default);
            let target = class.target().map_err(fault)?;
            if !targets.insert(target.clone()) {
                return Err(fault(format!("{target} is used by another class already")));
            }
            config.add(class).map_err(fault)?;
        }
        if defaults > 1 {
            return Err(ConfigError::Whole(
                "more than one device class is the default one; keep one".to_owned(),
            ));
        }
        Ok(config)
    }

    fn add(&mut self, class: FileClass) -> Result<(), String> {
        if let FileKind::Dir = class.r#type {
            let path = class.path.ok_or("type dir needs a path")?;
            self.directories.push(DirectoryClass {
                default: class.default,
                limit: class.limit_gb.map(gibibytes).transpose()?,
                spare: gibibytes(class.spare_gb.unwrap_or(0))?,
                ..DirectoryClass::new(&class.name, path)
            });
            return Ok(());
        }
        let kind = match (class.r#type, class.thin_pool) {
            (FileKind::Thin, Some(pool)) => {
                // Written so that NaN is refused as well.
                if !(pool.overprovision_ratio >= 1.0 && pool.overprovision_ratio.is_finite()) {
                    return Err("overprovision-ratio must be at least 1.0".to_owned());
                }
                check_guard(&pool.guard)?;
                Kind::Thin { pool: pool.name, overprovision: pool.overprovision_ratio, guard: pool.guard }
            }
            (FileKind::Thin, None) => return Err("type thin needs thin-pool with a name".to_owned()),
            (_, Some(_)) => {
                return Err("thin-pool is given, but the type is thick; write type: thin".to_owned());
            }
            (_, None) => Kind::Thick { spare: gibibytes(class.spare_gb.unwrap_or(DEFAULT_SPARE_GB))? },
        };
        self.lvm.push(LvmClass {
            default: class.default,
            stripe: class.stripe.filter(|stripe| *stripe > 0),
            stripe_size: class.stripe_size.filter(|size| !size.is_empty()),
            options: class.lvcreate_options,
            wipe: class.wipe.unwrap_or_default(),
            ..LvmClass::new(&class.name, &class.volume_group, kind)
        });
        Ok(())
    }
}

impl FileClass {
    /// What the class is carved from, which no other class may use.
    fn target(&self) -> Result<String, String> {
        match (&self.r#type, &self.path) {
            (FileKind::Dir, Some(path)) => return Ok(format!("path {}", path.display())),
            (FileKind::Dir, None) => return Err("type dir needs a path".to_owned()),
            (_, Some(_)) => return Err("path is for type dir; name a volume-group".to_owned()),
            (_, None) if self.volume_group.is_empty() => return Err("volume-group is missing".to_owned()),
            (_, None) => {}
        }
        match &self.thin_pool {
            Some(pool) if pool.name.is_empty() => Err("thin-pool needs a name".to_owned()),
            Some(pool) => Ok(format!("thin pool {}/{}", self.volume_group, pool.name)),
            None => Ok(format!("volume group {}", self.volume_group)),
        }
    }
}

fn gibibytes(count: u64) -> Result<u64, String> {
    count.checked_mul(1 << 30).ok_or_else(|| format!("{count} GiB are more than can be counted"))
}

fn check_guard(guard: &Guard) -> Result<(), String> {
    let ordered =
        0.0 < guard.warn_percent && guard.warn_percent <= guard.stop_percent && guard.stop_percent <= 100.0;
    if ordered && (0.0..=100.0).contains(&guard.extend_percent) {
        return Ok(());
    }
    Err("guard needs 0 < warn-percent <= stop-percent <= 100 and extend-percent from 0 to 100".to_owned())
}

/// Kubernetes makes an annotation of the name.
fn check_class_name(name: &str) -> Result<(), ConfigError> {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let inner = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    if bytes.len() <= 63 && edge(bytes.first()) && edge(bytes.last()) && inner {
        return Ok(());
    }
    let fault =
        "a name has 1 to 63 letters, digits, '-', '_' or '.', and starts and ends with a letter or digit";
    Err(ConfigError::Class { class: name.to_owned(), fault: fault.to_owned() })
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
