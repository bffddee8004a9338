#!/bin/busybox sh
# The machine's first process: makes the system ready, runs the agent, and collects the processes that lost their parent.
export PATH=/bin HOME=/ TMPDIR=/tmp RUST_BACKTRACE=1 LVM_SUPPRESS_FD_WARNINGS=1
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/pts /dev/shm /run/lock /tmp /mnt
/bin/busybox mount -t devpts devpts /dev/pts
/bin/busybox mount -t tmpfs tmpfs /run
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox mkdir -p /run/lock/lvm /run/lvm
/bin/busybox hostname machine
/bin/busybox ifconfig lo 127.0.0.1 up
for module in @MODULES@; do
  /bin/busybox modprobe "$module"
done
if [ -n "@CARGO@" ]; then
  /bin/busybox mkdir -p /cargo
  /bin/busybox mount -t ext4 -o ro,noload "@CARGO@" /cargo
fi
/bin/agent
echo "agent: ended with $?"
/bin/busybox poweroff -f
