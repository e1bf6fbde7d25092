#!/bin/bash
# usage: programs/debian.sh [--fast | --fetch] [FOLDER]
#
# Runs Debian's own arm64 programs, numpy, and a few programs of ours against Debian's libraries, each under fxscope
# (functional mode) and under qemu-aarch64 -cpu a64fx, and compares output and exit status. One line per program: name,
# result, instructions, MIPS. The exit status is 1 if any differs.
#
# FOLDER (target/programs) keeps packages and the unpacked tree between runs. Packages come from the sources that this
# machine's apt is configured for, without root and without changing its lists; a Debian machine has them.
#
# --fast     only programs that take seconds; if packages are not available, says so and succeeds
# --fetch    only fetches the packages, for tests that use them; if they are not available, says so and succeeds
# FXSCOPE    the fxscope to use (target/release/fxscope)
# ONLY       run only programs whose names match this pattern
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=programs/packages.sh
. "$here/packages.sh"
fast=
fetch=
case ${1:-} in
    --fast) fast=1; shift ;;
    --fetch) fast=1; fetch=1; shift ;;
esac
folder=${1:-$here/../target/programs}
fxscope=$(realpath -m "${FXSCOPE:-$here/../target/release/fxscope}")
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root
libraries=$root/usr/lib/aarch64-linux-gnu

packages=(python3 zstd xz-utils sqlite3 openssl numactl hwloc-nox util-linux coreutils dash bash gawk
    libstdc++6 libgfortran5 libgomp1 libomp5-14 libopenblas0-pthread)
numpy=2.2.6 # the last version for the Python of Debian 12

give_up() {
    echo "programs: $1" >&2
    if [ -n "$fast" ]; then
        echo "programs: skipped" >&2
        if [ -n "${FXSCOPE_SKIPPED:-}" ]; then echo "programs/debian.sh: $1" >>"$FXSCOPE_SKIPPED"; fi
        exit 0
    fi
    exit 1
}

unpack() {
    local why
    why=$(unpack_packages "$folder" "$root" "${packages[@]}") || give_up "$why"
}

unpack_numpy() {
    if [ -e "$folder/numpy/numpy" ]; then return; fi
    python3 -m pip --version >/dev/null 2>&1 || return 0
    python3 -m pip download -q --no-deps --platform manylinux2014_aarch64 --only-binary=:all: --python-version 3.11 \
        --implementation cp -d "$folder/wheels" "numpy==$numpy" >"$folder/pip.log" 2>&1 || return 0
    python3 -m zipfile -e "$folder"/wheels/numpy-"$numpy"-*.whl "$folder/numpy"
}

# Our own programs, linked with Debian's libraries.
build() {
    mkdir -p "$folder/bin"
    local flags=(-O2 -mcpu=a64fx) paths=(-Wl,-rpath-link,"$libraries" -Wl,-rpath-link,"$root/lib/aarch64-linux-gnu")
    local blas=$libraries/openblas-pthread
    aarch64-linux-gnu-g++ "${flags[@]}" -pthread -o "$folder/bin/threads" "$here/src/threads.cpp"
    aarch64-linux-gnu-gfortran "${flags[@]}" -o "$folder/bin/fortran" "$here/src/fortran.f90"
    aarch64-linux-gnu-gcc "${flags[@]}" -fopenmp -o "$folder/bin/libgomp" "$here/src/openmp.c" -lm
    aarch64-linux-gnu-gcc "${flags[@]}" -fopenmp -c -o "$folder/bin/openmp.o" "$here/src/openmp.c"
    aarch64-linux-gnu-gcc -o "$folder/bin/libomp" "$folder/bin/openmp.o" "$libraries/libomp.so.5" -lm "${paths[@]}"
    aarch64-linux-gnu-gcc "${flags[@]}" -o "$folder/bin/openblas" "$here/src/dgemm.c" "$blas/libopenblas.so.0" \
        -Wl,-rpath,/usr/lib/aarch64-linux-gnu/openblas-pthread "${paths[@]}"
}

threads=4
failures=0

# Prints the value of a key in a JSON report.
field() { sed -n "s/^ *\"$1\": \([0-9.]*\),\{0,1\}$/\1/p" "$2" | head -n 1; }

# usage: try NAME [slow] [VARIABLE=VALUE]... PROGRAM [ARGUMENT]...
# Runs the program twice, each time in a new folder with the same files, and compares.
try() {
    local name=$1; shift
    if [ "${1:-}" = slow ]; then shift; if [ -n "$fast" ]; then return; fi; fi
    # shellcheck disable=SC2053 # a pattern
    if [[ $name != ${ONLY:-*} ]]; then return; fi
    local variables=(OMP_NUM_THREADS=$threads OPENBLAS_NUM_THREADS=$threads LANG=C.UTF-8 HOME=/ PYTHONDONTWRITEBYTECODE=1) switches=()
    while [[ $1 == *=* ]]; do variables+=("$1"); shift; done
    for variable in "${variables[@]}"; do switches+=(-e "$variable"); done
    local side status=()
    for side in fxscope qemu; do
        rm -rf "${folder:?}/$side"; mkdir "$folder/$side"; cp "$folder"/data/* "$folder/$side"
    done
    local report=$folder/report.json
    (cd "$folder/fxscope" && timeout 900 "$fxscope" run -q --mode functional --json "$report" --sysroot "$root" \
        "${switches[@]}" -- "$@" >stdout 2>../stderr.fxscope </dev/null) && status[0]=0 || status[0]=$?
    (cd "$folder/qemu" && env -i PATH=/usr/bin:/bin "${variables[@]}" timeout 900 \
        qemu-aarch64 -cpu a64fx -L "$root" "$@" >stdout 2>../stderr.qemu </dev/null) && status[1]=0 || status[1]=$?
    local instructions=- mips=- result=ok
    if [ -s "$report" ]; then
        instructions=$(awk -v n="$(field instructions "$report")" 'BEGIN { printf "%.1f M", n / 1e6 }')
        mips=$(awk -v n="$(field mips "$report")" 'BEGIN { printf "%.1f", n }')
    fi
    rm -f "$report"
    if [ "${status[0]}" != "${status[1]}" ]; then
        result="exit status ${status[0]}, ${status[1]} under QEMU"
    elif ! diff -r "$folder/fxscope" "$folder/qemu" >"$folder/$name.diff"; then
        result="different, see $folder/$name.diff"
    fi
    printf '%-18s %12s instructions %8s MIPS  %s\n' "$name" "$instructions" "$mips" "$result"
    if [ "$result" != ok ]; then failures=$((failures + 1)); tail -n 3 "$folder/stderr.fxscope" | sed 's/^/    /'; fi
}

# usage: expect NAME LINE PROGRAM [ARGUMENT]...
# Runs a program whose output differs under QEMU, because it describes the machine or starts further programs: one line of
# its output must be LINE, ignoring blanks.
expect() {
    local name=$1 line=$2 result=ok; shift 2
    # shellcheck disable=SC2053 # a pattern
    if [[ $name != ${ONLY:-*} ]]; then return; fi
    "$fxscope" run -q --mode functional --sysroot "$root" -e PATH=/usr/bin:/bin -- "$@" >"$folder/$name.out" 2>&1 </dev/null || true
    if ! tr -s ' ' <"$folder/$name.out" | sed 's/^ //' | grep -qxF -- "$line"; then
        result="does not say \"$line\", see $folder/$name.out"
        failures=$((failures + 1))
    fi
    printf '%-18s %12s instructions %8s MIPS  %s\n' "$name" - - "$result"
}

# Input of the programs: a text with little structure and a file with much, the same on every machine.
data() {
    rm -rf "$folder/data"; mkdir "$folder/data"
    awk 'BEGIN { for (i = 0; i < 60000; i++) { x = (x * 1103515245 + 12345) % 2147483648; print i, x % 977, x } }' \
        >"$folder/data/numbers.txt"
    cp "$here"/src/*.py "$here"/src/*.sql "$folder/data"
}

run() {
    local bin=$root/usr/bin python=$root/usr/bin/python3
    expect numactl "node 7 cpus: 48 49 50 51 52 53 54 55 56 57 58 59" "$bin/numactl" -H
    expect lscpu "NUMA node4 CPU(s): 12-23" "$bin/lscpu"
    expect hwloc "L1d L#47 (64KB) + L1i L#47 (64KB) + Core L#47 + PU L#47 (P#59)" "$bin/lstopo-no-graphics"
    expect hwloc-memory "NUMANode L#3 (P#7 8192MB)" "$bin/lstopo-no-graphics"
    expect processors 48 "$bin/nproc"
    # shellcheck disable=SC2016 # the guest's shell expands it
    expect shell-pipes "aarch64 3 c b" "$bin/bash" --norc -c \
        'm=$(uname -m); (exit 3); echo $m $? $(printf "%s\n" a b c | sort -r | head -n 2)'
    expect python-processes "HI 42 0 5" "$python" "$folder/data/processes.py"
    try xz-compress "$bin/xz" -T1 -k numbers.txt
    xz -k -c "$folder/data/numbers.txt" >"$folder/data/packed.xz"
    try xz-restore "$bin/xz" -d -k packed.xz
    rm "$folder/data/packed.xz"
    try zstd-compress "$bin/zstd" -q -9 numbers.txt -o numbers.zst
    try zstd-threads slow "$bin/zstd" -q -19 -T4 numbers.txt -o numbers.zst
    cp "$folder/qemu/numbers.zst" "$folder/data/packed.zst" 2>/dev/null || true
    if [ -s "$folder/data/packed.zst" ]; then try zstd-restore "$bin/zstd" -q -d packed.zst -o restored.txt; fi
    rm -f "$folder/data/packed.zst"
    try sqlite3 "$bin/sqlite3" file.db ".read statements.sql"
    try openssl-digest "$bin/openssl" dgst -sha512 numbers.txt
    try openssl-sha3 "$bin/openssl" dgst -sha3-256 numbers.txt
    try openssl-aes "$bin/openssl" enc -aes-256-cbc -in numbers.txt -out numbers.aes \
        -K 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f -iv 0f0e0d0c0b0a09080706050403020100
    try openssl-chacha20 "$bin/openssl" enc -chacha20 -in numbers.txt -out numbers.chacha \
        -K 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f -iv 0f0e0d0c0b0a09080706050403020100
    try awk "$bin/gawk" '{ s[$2 % 10] += $3 } END { for (i = 0; i < 10; i++) print i, s[i] }' numbers.txt
    try sort "$bin/sort" --parallel=1 -k2,2n -k3,3n numbers.txt -o sorted.txt
    try sha256sum "$bin/sha256sum" numbers.txt
    try bash "$root/bin/bash" -c 'for i in {1..20000}; do x=$((x * 31 + i & 65535)); done; echo $x'
    try python3 "$python" script.py
    try python3-threads "$python" threads.py
    try fortran "$folder/bin/fortran"
    try c++-threads "$folder/bin/threads"
    try libgomp "$folder/bin/libgomp"
    try libomp "$folder/bin/libomp"
    try openblas slow "$folder/bin/openblas" 600
    if [ -n "$fast" ]; then return; fi
    if [ -e "$folder/numpy/numpy" ]; then
        try numpy slow PYTHONPATH="$folder/numpy" "$python" arrays.py
    else
        echo "numpy: not tried, its wheel could not be downloaded (see $folder/pip.log)"
        failures=$((failures + 1))
    fi
}

for tool in qemu-aarch64:qemu-user aarch64-linux-gnu-g++:g++-aarch64-linux-gnu dpkg-deb:dpkg xz:xz-utils \
    aarch64-linux-gnu-gfortran:gfortran-aarch64-linux-gnu aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu; do
    command -v "${tool%%:*}" >/dev/null || give_up "${tool%%:*} is missing: apt-get install ${tool#*:}"
done
if [ -n "$fetch" ]; then unpack; exit 0; fi
[ -x "$fxscope" ] || give_up "$fxscope is missing: cargo build --release, or set FXSCOPE"
unpack
if [ -z "$fast" ]; then unpack_numpy; fi
build
data
run
if [ "$failures" -gt 0 ]; then echo "programs: $failures differ" >&2; exit 1; fi
