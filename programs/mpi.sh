#!/bin/bash
# usage: programs/mpi.sh [FOLDER]
#
# Runs programs with MPI by Debian's arm64 Open MPI and MPICH, as installed: messages and collectives whose results they check
# (programs/src/mpi.c) on 2, 4 and 12 ranks in functional mode, and on 2 and 4 ranks with times in timing mode. One line per run.
# The exit status is 1 if any fails.
#
# FOLDER (target/mpi) keeps packages and the unpacked trees between runs.
#
# FXSCOPE    the fxscope to use (target/release/fxscope)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=programs/packages.sh
. "$here/packages.sh"
folder=${1:-$here/../target/mpi}
fxscope=$(realpath -m "${FXSCOPE:-$here/../target/release/fxscope}")
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# A tree of its own for each: both have the same commands.
declare -A packages=([openmpi]="openmpi-bin libopenmpi-dev" [mpich]="mpich libmpich-dev")

build() {
    local root=$folder/$1 libraries=$folder/$1/usr/lib/aarch64-linux-gnu include library
    case $1 in
        openmpi) include=$libraries/openmpi/include library=$libraries/openmpi/lib/libmpi.so ;;
        mpich) include=$root/usr/include/aarch64-linux-gnu/mpich library=$libraries/libmpich.so.12 ;;
    esac
    aarch64-linux-gnu-gcc -O2 -mcpu=a64fx -w -I"$include" -o "$folder/$1.elf" "$here/src/mpi.c" "$library" \
        -Wl,-rpath-link,"$libraries" -Wl,--allow-shlib-undefined
}

failures=0

# usage: run IMPLEMENTATION RANKS MODE ARGUMENT...
run() {
    local mpi=$1 ranks=$2 mode=$3 result=ok
    shift 3
    timeout 900 "$fxscope" run -q --mode "$mode" --ranks "$ranks" --sysroot "$folder/$mpi" -- "$folder/$mpi.elf" "$@" \
        >"$folder/output" 2>"$folder/errors" </dev/null || result="exit status $?"
    if ! grep -qx "mpi ok ranks=$ranks" "$folder/output"; then result="$result, wrong output"; fi
    printf '%-8s %2d ranks  %-10s  %s\n' "$mpi" "$ranks" "$mode" "$result"
    if [ "$mode" = timing ]; then sed 's/^/    /' "$folder/output"; fi
    if [ "$result" != ok ]; then failures=$((failures + 1)); tail -n 5 "$folder/errors" | sed 's/^/    /'; fi
}

for mpi in openmpi mpich; do
    # shellcheck disable=SC2086 # a list of words
    why=$(unpack_packages "$folder" "$folder/$mpi" ${packages[$mpi]} coreutils dash libgomp1) ||
        { echo "mpi: $why" >&2; exit 1; }
    build "$mpi"
    for ranks in 2 4 12; do run "$mpi" "$ranks" functional 3 65536; done
    for ranks in 2 4; do run "$mpi" "$ranks" timing 5 65536; done
done
exit $((failures > 0))
