//! A machine boots and runs programs.
use std::time::{Duration, Instant};
use lifeboat_vm::Machine;

#[test]
fn boots() {
    lifeboat_vm::fetch().unwrap();
    let t = Instant::now();
    let m = Machine::builder().disk(1 << 30).boot().unwrap_or_else(|e| panic!("{e}"));
    println!("{:?}", t.elapsed());
    println!("{}", m.run(&["sh", "-c", "uname -a; cat /proc/modules; free -m; dmesg | tail -30"], Duration::from_secs(20)).unwrap().ok().unwrap());
    println!("{}", m.run(&["sh", "-xc", "pvcreate /dev/vda; vgcreate vg /dev/vda; lvcreate -L 64m -n thick vg; lvcreate -s -L 16m -n snap vg/thick; lvcreate -T -L 100m -V 300m -n thin vg/pool; lvs -a; mkfs.ext4 /dev/vg/thick; mkfs.xfs -f /dev/vg/thin; mount /dev/vg/thin /mnt; df; dmsetup ls"], Duration::from_secs(60)).map(|o| format!("{}{}", o.stdout, o.stderr)).unwrap());println!("{}", m.kernel_log().lines().rev().take(20).collect::<Vec<_>>().join("\n"));
    println!("{:?}", t.elapsed());
}
