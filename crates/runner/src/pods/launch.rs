//! From a container to what is started: its program, variables and folders, and what cannot be had here. Pure.
//!
//! There are no mount namespaces: a volume wanted at `/data` is found at `data` in the process's own folder, which it starts in, and
//! its real place is in the variable `LIFEBOAT_VOLUME_NAME`. Arguments may say `$(LIFEBOAT_VOLUME_NAME)`, as Kubernetes has it for
//! any variable.

use crate::machine::{Mounted, ProcessId, Run};
use crate::words::{name, spec, uid};
use k8s_openapi::api::core::v1::{Container, EnvVar, Pod};
use lifeboat_engine::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Where a pod's volume comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A claim that has its volume.
    Bound {
        /// The claim.
        claim: String,
        /// The volume's handle.
        handle: String,
        /// Whether one pod at a time may write to it.
        one_writer: bool,
    },
    /// A claim without a volume.
    Unbound {
        /// The claim.
        claim: String,
    },
    /// A folder that lives with the pod.
    Scratch,
    /// Something else.
    Other,
}

/// What a pod asks for and cannot have here.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Unsupported {
    /// Containers that run before the others.
    InitContainers,
    /// A container names no program: images are not pulled, so nobody knows the image's own.
    NoCommand {
        /// The container.
        container: String,
    },
    /// The program is not on the list.
    Program {
        /// The container.
        container: String,
        /// The program.
        program: String,
    },
    /// A volume that is neither a claim nor an empty folder.
    Volume {
        /// The volume.
        volume: String,
    },
    /// A raw block device.
    BlockDevice {
        /// The container.
        container: String,
    },
    /// A variable that is not given by value or from the pod's own name.
    Variable {
        /// The container.
        container: String,
        /// The variable.
        variable: String,
    },
    /// A probe: readiness that nobody checks would be a lie.
    Probe {
        /// The container.
        container: String,
    },
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitContainers => {
                f.write_str("init containers are not run here; fold them into the container")
            }
            Self::NoCommand { container } => write!(
                f,
                "container {container} names no command; no image is pulled here, so the command must be given"
            ),
            Self::Program { container, program } => write!(
                f,
                "container {container} wants to run {program:?}, which is not among the programs that pods may run here"
            ),
            Self::Volume { volume } => {
                write!(
                    f,
                    "volume {volume} is neither a claim nor an emptyDir, and only these are mounted here"
                )
            }
            Self::BlockDevice { container } => {
                write!(f, "container {container} wants a raw block device; only filesystems are mounted here")
            }
            Self::Variable { container, variable } => write!(
                f,
                "variable {variable} of container {container} is not given by value; only values and the pod's own name, namespace and uid are known here"
            ),
            Self::Probe { container } => {
                write!(f, "container {container} has probes, which are not carried out here; leave them out")
            }
        }
    }
}

/// The first thing that a pod asks for and cannot have.
pub(super) fn unsupported(
    pod: &Pod,
    volumes: &BTreeMap<String, Source>,
    programs: &BTreeSet<String>,
) -> Option<Unsupported> {
    let wanted = spec(pod)?;
    if wanted.init_containers.as_ref().is_some_and(|some| !some.is_empty()) {
        return Some(Unsupported::InitContainers);
    }
    wanted.containers.iter().find_map(|one| of_container(one, volumes, programs))
}

fn of_container(
    one: &Container,
    volumes: &BTreeMap<String, Source>,
    programs: &BTreeSet<String>,
) -> Option<Unsupported> {
    let container = || one.name.clone();
    let Some(program) = one.command.iter().flatten().next() else {
        return Some(Unsupported::NoCommand { container: container() });
    };
    if !programs.contains(program) {
        return Some(Unsupported::Program { container: container(), program: program.clone() });
    }
    if one.volume_devices.as_ref().is_some_and(|some| !some.is_empty()) {
        return Some(Unsupported::BlockDevice { container: container() });
    }
    if [&one.liveness_probe, &one.readiness_probe, &one.startup_probe].into_iter().any(Option::is_some) {
        return Some(Unsupported::Probe { container: container() });
    }
    if one.env_from.as_ref().is_some_and(|some| !some.is_empty()) {
        return Some(Unsupported::Variable { container: container(), variable: "envFrom".to_owned() });
    }
    let unknown = one.env.iter().flatten().find(|variable| value_of(variable, &Pod::default()).is_none());
    if let Some(variable) = unknown {
        return Some(Unsupported::Variable { container: container(), variable: variable.name.clone() });
    }
    let other = one.volume_mounts.iter().flatten().find(|mount| {
        // A projected token is of no use to a process that has the machine's own network and files anyway.
        !mount.mount_path.starts_with("/var/run/secrets/kubernetes.io")
            && matches!(volumes.get(&mount.name), None | Some(Source::Other))
    });
    other.map(|mount| Unsupported::Volume { volume: mount.name.clone() })
}

fn value_of(variable: &EnvVar, pod: &Pod) -> Option<String> {
    let Some(source) = &variable.value_from else { return Some(variable.value.clone().unwrap_or_default()) };
    let meta = &pod.metadata;
    match source.field_ref.as_ref()?.field_path.as_str() {
        "metadata.name" => Some(meta.name.clone().unwrap_or_default()),
        "metadata.namespace" => Some(meta.namespace.clone().unwrap_or_default()),
        "metadata.uid" => Some(meta.uid.clone().unwrap_or_default()),
        "spec.nodeName" => Some(spec(pod).and_then(|spec| spec.node_name.clone()).unwrap_or_default()),
        _ => None,
    }
}

/// What to start for a container; folders of claims are found by whoever starts it.
pub(super) fn run_of(
    pod: &Pod,
    container: &str,
    volumes: &BTreeMap<String, Source>,
    restarts: i32,
    in_a_row: u32,
) -> Option<Run> {
    let one = spec(pod)?.containers.iter().find(|one| one.name == container)?;
    let argv = one.command.iter().flatten().chain(one.args.iter().flatten()).cloned().collect();
    let mut env = vec![("HOSTNAME".to_owned(), name(&pod.metadata).to_owned())];
    for variable in one.env.iter().flatten() {
        env.push((variable.name.clone(), value_of(variable, pod)?));
    }
    let mount = |mount: &k8s_openapi::api::core::v1::VolumeMount| {
        let handle = match volumes.get(&mount.name)? {
            Source::Bound { handle, .. } => Some(handle.clone()),
            Source::Scratch => None,
            Source::Unbound { .. } | Source::Other => return None,
        };
        Some(Mounted {
            volume: mount.name.clone(),
            path: mount.mount_path.clone(),
            below: mount.sub_path.clone().filter(|below| !below.is_empty()),
            folder: None,
            handle,
        })
    };
    Some(Run {
        id: ProcessId { pod: uid(&pod.metadata).to_owned(), container: container.to_owned() },
        key: ObjectKey::of(pod),
        restarts,
        in_a_row,
        argv,
        env,
        mounts: one.volume_mounts.iter().flatten().filter_map(mount).collect(),
    })
}

/// Name of the variable that tells where a volume is.
pub(crate) fn variable_of(volume: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("LIFEBOAT_VOLUME_{}", volume.chars().map(plain).collect::<String>())
}

/// Puts variables in the place of `$(NAME)`; `$$(NAME)` stays `$(NAME)`, and what is not known stays as it is.
pub(crate) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let named = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match named.and_then(|(name, after)| Some((variables.get(name)?, after))) {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => out.push('$'),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_stand_in_arguments_as_in_kubernetes() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        let check = |text: &str, expected: &str| assert_eq!(expand(text, &known), expected);
        check("plain", "plain");
        check("x$(A)y", "x1y");
        check("$(A)$(A)", "11");
        check("$(B)", "$(A)");
        check("$$(A)", "$(A)");
        check("$(C)", "$(C)");
        check("$(A", "$(A");
        check("a$", "a$");
        check("$A", "$A");
    }

    #[test]
    fn a_volume_has_its_variable() {
        assert_eq!(variable_of("data"), "LIFEBOAT_VOLUME_DATA");
        assert_eq!(variable_of("my-data.1"), "LIFEBOAT_VOLUME_MY_DATA_1");
    }
}
