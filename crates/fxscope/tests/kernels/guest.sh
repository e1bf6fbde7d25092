#!/bin/busybox sh
# The first process of the emulated machine: measures it with fxscope, and exports the traces.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tracefs nodev /sys/kernel/tracing

measure() {
    trace=/out/$1.fxn
    shift
    fxscope jitter measure "$@" -o "$trace" || echo "measure $*: status $?"
}

measure spin --loop spin --cores 1 --duration 5s
measure fwq --loop fwq --duration 2s
# The time that this process takes is known: it has a higher priority than anything else on the core.
inject 1 20 1000 3 >/out/injected.txt &
measure injected --loop spin --cores 1 --threshold 100us --duration 2s
wait
# Ending processes cause work of the kernel, which it does in soft interrupts.
taskset 2 sh -c 'while :; do /bin/true; /bin/true; /bin/true; usleep 10000; done' &
measure processes --loop spin --cores 1 --duration 3s
kill $!
cat /sys/kernel/tracing/osnoise/options >/out/options.txt 2>/dev/null

stty -F /dev/ttyS1 raw
tar -c -C /out -f /dev/ttyS1 .
sync
poweroff -f
