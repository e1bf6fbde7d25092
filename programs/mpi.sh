#!/bin/bash
# usage: programs/mpi.sh [--fetch] [FOLDER]
#
# Runs programs with MPI by Debian's arm64 Open MPI and MPICH, as installed: messages and collectives whose results they check
# (programs/src/mpi.c) on 2, 4 and 12 ranks in functional mode, and on 2 and 4 ranks with times in timing mode. A run on 2 ranks that is
# continued from each of its snapshots must end with the same output and counts. Then programs of Debian on 2 and 4 ranks of Open MPI in functional mode: LAMMPS, GROMACS and Quantum ESPRESSO, whose energies must be those of
# one process under qemu-aarch64, and Python's mpi4py. One line per run. The exit status is 1 if any fails.
#
# FOLDER (target/mpi) keeps packages and the unpacked trees between runs.
#
# --fetch    only unpacks MPICH, for the examples
# FXSCOPE    the fxscope to use (target/release/fxscope)
# ONLY       run only programs whose names match this pattern: openmpi, mpich, lammps, gromacs, espresso, mpi4py
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=programs/packages.sh
. "$here/packages.sh"
fetch=
if [ "${1:-}" = --fetch ]; then fetch=1; shift; fi
folder=${1:-$here/../target/mpi}
fxscope=$(realpath -m "${FXSCOPE:-$here/../target/release/fxscope}")
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# A tree of its own for each: both have the same commands.
declare -A packages=([openmpi]="openmpi-bin libopenmpi-dev" [mpich]="mpich libmpich-dev"
    [applications]="openmpi-bin lammps gromacs gromacs-data quantum-espresso quantum-espresso-data python3-mpi4py python3-numpy")

wanted() { [[ $1 =~ ${ONLY:-} ]]; }

# Unpacks the packages of a tree.
unpack() {
    local why
    # shellcheck disable=SC2086 # a list of words
    why=$(unpack_packages "$folder" "$folder/$1" ${packages[$1]} coreutils dash libgomp1) || { echo "mpi: $why" >&2; exit 1; }
}

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

# usage: report NAME RANKS MODE RESULT
report() {
    printf '%-8s %2d ranks  %-10s  %s\n' "$@"
    if [ "${4%%,*}" != ok ]; then failures=$((failures + 1)); tail -n 5 "$folder/errors" | sed 's/^/    /'; fi
}

# usage: run IMPLEMENTATION RANKS MODE ARGUMENT...
run() {
    local mpi=$1 ranks=$2 mode=$3 result=ok
    shift 3
    timeout 900 "$fxscope" run -q --mode "$mode" --ranks "$ranks" --sysroot "$folder/$mpi" -- "$folder/$mpi.elf" "$@" \
        >"$folder/output" 2>"$folder/errors" </dev/null || result="exit status $?"
    if ! grep -qx "mpi ok ranks=$ranks" "$folder/output"; then result="$result, wrong output"; fi
    report "$mpi" "$ranks" "$mode" "$result"
    if [ "$mode" = timing ]; then sed 's/^/    /' "$folder/output"; fi
}

# usage: counts FILE    prints a JSON report without what it says of the host
counts() { sed '/^  "host": {/,/^  }/d' "$1"; }

# usage: saved IMPLEMENTATION MODE INSTRUCTIONS    saves a run every N instructions (INSTRUCTIONS) and continues it from each snapshot
saved() {
    local mpi=$1 mode=$2 result=ok number
    rm -rf "$folder/saved"
    mkdir "$folder/saved"
    cd "$folder/saved"
    local options=(-q --mode "$mode" --ranks 2 --sysroot "$folder/$mpi" --json run.json)
    "$fxscope" run "${options[@]}" -- "$folder/$mpi.elf" 1 4096 >whole 2>"$folder/errors" </dev/null || result="exit status $?"
    counts run.json >whole.json
    "$fxscope" run "${options[@]}" --checkpoint kept --every "$3" --keep 100 -- "$folder/$mpi.elf" 1 4096 >output \
        2>>"$folder/errors" </dev/null || result="exit status $? with snapshots"
    counts run.json | cmp -s - whole.json || result="other counts with snapshots"
    cmp -s output whole || result="other output with snapshots"
    [ -e kept/000003.snapshot ] || result="no snapshots"
    for number in $("$fxscope" resume kept --list | sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p'); do
        # What continues saves further snapshots.
        rm -rf again
        cp -r kept again
        "$fxscope" resume again --at "$number" -q >>output 2>>"$folder/errors" </dev/null || result="exit status $? from $number"
        counts run.json | cmp -s - whole.json || result="other counts from snapshot $number"
        cmp -s output whole || result="other output from snapshot $number"
    done
    report "$mpi" 2 "$mode" "$result, continued from snapshots"
    cd "$folder"
}

# Unpacks the applications. Which BLAS and LAPACK there are would be chosen when the packages are installed.
unpack_applications() {
    local libraries=$folder/applications/usr/lib/aarch64-linux-gnu name
    unpack applications
    for name in blas lapack; do ln -sf "$name/lib$name.so.3" "$libraries/lib$name.so.3"; done
}

# Each runs a program and prints what must be the same everywhere. The arguments are the command that starts it. GROMACS adds in
# double precision: in single precision, the order of the ranks shows in the digits that it prints.
lammps() {
    "$@" lmp -in "$here/inputs/argon.lmp" | grep -A 3 '^ *Step'
}

gromacs() {
    "$@" gmx_mpi_d mdrun -s "$folder/argon.tpr" -ntomp 1 -pin off >/dev/null && grep -A 4 '^ *Energies' md.log
}

espresso() {
    "$@" pw.x -in "$here/inputs/silicon.in" | grep '^!'
}

mpi4py() {
    "$@" python3 "$here/src/ranks.py" | grep -o '^mpi4py ok'
}

# usage: qemu PROGRAM ARGUMENT...
qemu() {
    local program=$1
    shift
    qemu-aarch64 -L "$folder/applications" -E OMPI_MCA_ess_singleton_isolated=1 \
        "$folder/applications/usr/bin/$program" "$@"
}

# usage: expected APPLICATION
expected() {
    case $1 in
        mpi4py) echo "mpi4py ok" ;;
        *) OMP_NUM_THREADS=1 "$1" qemu ;;
    esac
}

# usage: try APPLICATION
try() {
    local name=$1 ranks result
    mkdir -p "$folder/work"
    cd "$folder/work"
    ln -sfn "$folder/applications/usr/share/espresso/pseudo" pseudo
    if [ "$name" = gromacs ]; then
        "$here/inputs/argon.sh" >argon.gro
        qemu gmx_mpi_d grompp -f "$here/inputs/argon.mdp" -p "$here/inputs/argon.top" -c argon.gro -o "$folder/argon.tpr" \
            >"$folder/errors" 2>&1 </dev/null
    fi
    expected "$name" >"$folder/expected" 2>"$folder/errors" </dev/null || echo "qemu-aarch64 failed" >"$folder/expected"
    for ranks in 2 4; do
        result=ok
        OMP_NUM_THREADS=1 "$name" timeout 900 "$fxscope" run -q --mode functional --ranks "$ranks" \
            --sysroot "$folder/applications" -- >"$folder/output" 2>"$folder/errors" </dev/null || result="no result"
        if ! cmp -s "$folder/output" "$folder/expected"; then result="$result, other output"; fi
        report "$name" "$ranks" functional "$result"
    done
}

if [ -n "$fetch" ]; then unpack mpich; exit 0; fi
for mpi in openmpi mpich; do
    if ! wanted "$mpi"; then continue; fi
    unpack "$mpi"
    build "$mpi"
    for ranks in 2 4 12; do run "$mpi" "$ranks" functional 3 65536; done
    for ranks in 2 4; do run "$mpi" "$ranks" timing 5 65536; done
    saved "$mpi" functional 10M
done
for name in lammps gromacs espresso mpi4py; do
    if ! wanted "$name"; then continue; fi
    unpack_applications
    try "$name"
done
exit $((failures > 0))
