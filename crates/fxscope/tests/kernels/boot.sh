#!/bin/bash
# usage: boot.sh FLAVOUR GUEST FOLDER PROGRAM...
#
# Boots Debian's newest kernel of FLAVOUR (rt-amd64, cloud-amd64) on an emulated machine of two processors without a disk.
# It contains busybox and the PROGRAMs with the libraries that they need, all in /bin; the script GUEST runs as the first process
# and writes a tar archive to the second serial line, which is unpacked to FOLDER/FLAVOUR/out.
#
# FOLDER keeps packages between runs. They come from the sources that this machine's apt is configured for, and their backports, without root
# and without changing its lists; a Debian machine has them.
set -euo pipefail

flavour=$1 guest=$(realpath "$2") folder=$(realpath -m "$3")
shift 3
here=$folder/$flavour
mkdir -p "$here"

give_up() {
    echo "kernels: $1" >&2
    exit 1
}

# apt with separate lists and cache; kernels before 6.2 cannot run osnoise without its own threads, backports can.
private_apt() {
    local apt=$folder/apt
    mkdir -p "$apt"/{state/lists/partial,cache/archives/partial}
    : >"$apt/state/status"
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
        awk '$3 == "Debian" && $2 !~ /-/ { print "deb", $1, $2, "main"; print "deb", $1, $2 "-backports", "main" }' |
        sort -u >"$apt/sources.list"
    [ -s "$apt/sources.list" ] || give_up "apt knows no source of Debian's packages"
    cat >"$apt/apt.conf" <<CONF
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
APT::Sandbox::User "";
CONF
    export APT_CONFIG=$apt/apt.conf
    apt-get update -qq >"$folder/apt.log" 2>&1 || give_up "apt-get update failed, see $folder/apt.log"
}

unpack() {
    [ ! -e "$here/.complete" ] || return 0
    private_apt
    local kernel
    kernel=$(apt-cache show "linux-image-$flavour" | sed -n 's/^Depends: .*\(linux-image-[^ ,]*\).*/\1/p' | head -1)
    (cd "$here" && rm -rf ./*.deb root && apt-get download "$kernel" busybox-static >>"$folder/apt.log" 2>&1) ||
        give_up "the packages cannot be downloaded, see $folder/apt.log"
    mkdir "$here/root"
    dpkg-deb --fsys-tarfile "$here"/linux-image-*.deb | tar -x -C "$here/root" --wildcards -f - './boot/vmlinuz-*'
    dpkg-deb --fsys-tarfile "$here"/busybox-static*.deb | tar -x -C "$here/root" --wildcards -f - './*bin/busybox'
    rm "$here"/*.deb
    touch "$here/.complete"
}

# Builds the initial file system of the kernel in $1, with the given programs.
initramfs() {
    local tree=$1 busybox
    shift
    busybox=$(find "$here/root" -name busybox)
    rm -rf "$tree"
    mkdir -p "$tree"/{bin,dev,out,proc,sys,tmp}
    cp "$busybox" "$@" "$tree/bin"
    install -m 755 "$guest" "$tree/init"
    ldd "$@" | grep -o '/[^ :]*\.so[^ :]*' | sort -u | xargs -r cp -L --parents -t "$tree"
    (cd "$tree" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$tree.gz"
}

# Emulated time advances with instructions, so activity of this machine is not noise there.
run() {
    rm -rf "$here/out"
    mkdir "$here/out"
    timeout 300 qemu-system-x86_64 -accel tcg -icount shift=2,sleep=off -cpu max -smp 2 -m 1G -display none -nic none \
        -no-reboot -serial "file:$here/console.log" -serial "file:$here/out.tar" \
        -kernel "$here"/root/boot/vmlinuz-* -initrd "$here/tree.gz" -append 'console=ttyS0 quiet panic=-1' &&
        tar -x -m -C "$here/out" -f "$here/out.tar"
}

unpack
initramfs "$here/tree" "$@"
# The emulator sometimes crashes a kernel that modifies its own code, as when tracers start (QEMU 7.2: double faults).
run || run || run || give_up "the machine has told nothing, see $here/console.log"
