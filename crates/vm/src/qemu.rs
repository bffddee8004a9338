//! How the emulator is called.

use std::path::{Path, PathBuf};

use crate::builder::Builder;
use crate::kit::Kit;
use crate::wire::PORT;
use crate::{Error, volatile};

/// How the emulator treats files of disks: in the host's page cache, and without flushing that (see the crate's
/// documentation); what the guest discards becomes a hole.
const WAYS: &str = "cache.direct=off,cache.no-flush=on,discard=unmap";

/// A kernel that panics ends the machine, which is noticed at once. The rest makes the boot shorter: no random addresses,
/// no guards against spying neighbours, no self-tests of ciphers.
const KERNEL_OPTIONS: &str =
    "console=ttyS0 panic=-1 oops=panic nokaslr mitigations=off cryptomgr.notests no_timer_check";

/// Everything that a boot needs to know.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) kit: &'a Kit,
    pub(crate) spec: &'a Builder,
    pub(crate) kernel: &'a Path,
    pub(crate) initramfs: &'a Path,
    /// Where the host listens for the agent.
    pub(crate) socket: &'a Path,
    /// Where the kernel's log goes.
    pub(crate) console: &'a Path,
    pub(crate) disks: &'a [PathBuf],
    pub(crate) cargo: Option<&'a Path>,
}

impl Plan<'_> {
    /// Arguments for `env`, which sets the path of libraries and becomes the emulator.
    pub(crate) fn arguments(&self) -> Result<Vec<String>, Error> {
        let mut args = vec![format!("LD_LIBRARY_PATH={}", self.kit.library_path())];
        let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        add(&[&plain(&self.kit.qemu()?), "-machine", "q35,accel=tcg", "-cpu", "max"]);
        add(&["-m", &self.spec.memory_mib.to_string(), "-smp", "1"]);
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        for folder in self.kit.firmware() {
            add(&["-L", &plain(&folder)]);
        }
        add(&["-kernel", &plain(self.kernel), "-initrd", &plain(self.initramfs), "-append", KERNEL_OPTIONS]);
        add(&["-serial", &format!("file:{}", plain(self.console))]);
        add(&["-chardev", &format!("socket,id=port,path={}", quoted(self.socket))]);
        add(&["-device", "virtio-serial-pci"]);
        add(&["-device", &format!("virtserialport,chardev=port,name={PORT}")]);
        for (number, path) in self.disks.iter().enumerate() {
            self.nodes(number, path).iter().for_each(|node| add(&["-blockdev", node]));
            add(&["-device", &format!("virtio-blk-pci,drive=disk{number}")]);
        }
        if let Some(path) = self.cargo {
            let drive = format!("if=none,id=cargo,format=raw,readonly=on,file={}", quoted(path));
            add(&["-drive", &drive, "-device", "virtio-blk-pci,drive=cargo"]);
        }
        Ok(args)
    }

    /// The layers of one disk; the last is what the guest sees.
    fn nodes(&self, number: usize, path: &Path) -> Vec<String> {
        let file = format!("driver=file,node-name=file{number},{WAYS},filename={}", quoted(path));
        let raw = |name: &str| format!("driver=raw,node-name={name}{number},file=file{number},discard=unmap");
        if !self.spec.forgetful {
            return vec![file, raw("disk")];
        }
        let record = quoted(&volatile::record(path));
        vec![
            file,
            raw("plain"),
            format!("driver=file,node-name=record{number},{WAYS},filename={record}"),
            format!("driver=raw,node-name=log{number},file=record{number}"),
            format!(
                "driver=blklogwrites,node-name=disk{number},file=plain{number},log=log{number},discard=unmap"
            ),
        ]
    }
}

fn plain(path: &Path) -> String {
    path.display().to_string()
}

/// A path as part of an option: there a comma ends the value, and twice it stands for itself.
fn quoted(path: &Path) -> String {
    plain(path).replace(',', ",,")
}
