#!/bin/busybox sh
# Makes a used machine like new: no programs left, nothing mounted, no mapped devices, empty disks. Fails where that cannot be had.
for process in /proc/[0-9]*; do
  case "${process#/proc/} $(readlink "$process/exe")" in
    "1 "*|"$$ "*|*" "|*" /bin/agent") ;;
    *) kill -9 "${process#/proc/}" ;;
  esac
done
while read -r device place rest; do
  case "$device $place" in
    *" /cargo") ;;
    /dev/*) echo "$place" ;;
  esac
done < /proc/mounts | tac | while read -r place; do
  # What was killed above may take a moment to let go.
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    umount "$(printf '%b' "$place")" && continue 2
    sleep 0.2
  done
  exit 1
done || exit 1
losetup -D
if [ "$(dmsetup ls)" != "No devices found" ]; then
  dmsetup remove_all --force
fi
[ "$(dmsetup ls)" = "No devices found" ] || exit 1
for disk in "$@"; do
  blkdiscard -f "$disk" || exit 1
done
for link in /dev/*/*; do
  case "$(readlink "$link")" in
    /dev/mapper/*|../mapper/*|../dm-*) rm "$link" ;;
  esac
done
for folder in /dev/*/; do
  rmdir "$folder" 2>/dev/null
done
rm -rf /etc/lvm/archive /etc/lvm/backup /etc/lvm/devices /run/lvm/* /run/lock/lvm/* /run/blkid
rm -rf /tmp/* /tmp/.[!.]* /mnt/*
mkdir -p /dev/mapper /dev/shm
exit 0
