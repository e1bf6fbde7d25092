#!/bin/bash
# usage: programs/npb.sh [FOLDER]
#
# Runs the NAS Parallel Benchmarks with OpenMP (the folder NPB-OMP of NPB-CPP) on 12 threads in timing mode. One
# line per benchmark: name, whether it verified its results, simulated time, cycles, instructions, MIPS, and seconds on the
# host. The exit status is 1 if any did not verify.
#
# FOLDER (target/npb) keeps sources, programs and reports between runs. The sources come from their authors' repository.
#
# NPB        a folder with the sources of NPB-CPP to use instead
# FXSCOPE    the fxscope to use (target/release/fxscope)
# THREADS    number of threads (12)
# CLASS      size of the problems, S, W, A, B or C (S)
# OPTIONS    further options of fxscope run, such as --sample, without which class A takes hours
# ONLY       run only benchmarks whose names match this pattern
# LIMIT      seconds after which a benchmark is stopped (3600)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../target/npb}
fxscope=$(realpath "${FXSCOPE:-$here/../target/release/fxscope}")
threads=${THREADS:-12}
class=${CLASS:-S}
repository=https://github.com/GMAP/NPB-CPP
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

fetch() {
    if [ -e "$folder/sources/.complete" ]; then return; fi
    rm -rf "$folder/sources"
    if [ -n "${NPB:-}" ]; then
        cp -r "$NPB" "$folder/sources"
    elif ! git clone -q --depth 1 "$repository" "$folder/sources"; then
        echo "npb: the sources are not available from $repository; NPB=FOLDER names a copy of them" >&2
        exit 1
    fi
    touch "$folder/sources/.complete"
}

build() {
    local omp=$folder/sources/NPB-OMP cc="aarch64-linux-gnu-g++ -std=c++14 -static -fopenmp"
    mkdir -p "$omp/bin"
    for name in bt cg ep ft is lu mg sp; do
        if [ -x "$omp/bin/$name.$class" ]; then continue; fi
        make -s -C "$omp" "$name" CLASS="$class" CC="$cc" CLINK="$cc" UCC="g++ -fopenmp" \
            CFLAGS="-O3 -mcpu=a64fx -fopenmp" CLINKFLAGS="-O3 -fopenmp" >"$folder/$name.$class.build" 2>&1 ||
            { echo "npb: $name cannot be built, see $folder/$name.$class.build" >&2; exit 1; }
    done
}

# Prints the value of a key in a JSON report.
field() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),\{0,1\}$/\1/p" "$2" | head -n 1; }

failures=0

try() {
    local name=$1 result=verified report=$folder/$1.$class.json out=$folder/$1.$class.out
    rm -f "$report"
    # shellcheck disable=SC2086 # options are words
    timeout "${LIMIT:-3600}" "$fxscope" run -q --json "$report" ${OPTIONS:-} -e OMP_NUM_THREADS="$threads" -e OMP_PROC_BIND=close \
        -- "$folder/sources/NPB-OMP/bin/$name.$class" >"$out" 2>&1 || result="exit status $?, see $out"
    if [ "$result" = verified ] && ! grep -Eq 'Verification *= *SUCCESSFUL' "$out"; then
        result="not verified, see $out"
    fi
    if [ "$result" != verified ]; then failures=$((failures + 1)); fi
    if [ -s "$report" ]; then
        awk -v name="$name" -v s="$(field seconds "$report")" -v c="$(field cycles "$report")" -v result="$result" \
            -v i="$(field instructions "$report")" -v m="$(field mips "$report")" -v w="$(field wall_seconds "$report")" \
            'BEGIN { printf "%-3s %9.3f ms %10.1f M cycles %9.1f M instructions %6.1f MIPS %7.1f s  %s\n",
                     name, s * 1e3, c / 1e6, i / 1e6, m, w, result }'
    else
        printf '%-3s %s\n' "$name" "$result"
    fi
}

fetch
build
for name in is cg mg ft sp lu bt ep; do
    # shellcheck disable=SC2053 # a pattern
    if [[ $name == ${ONLY:-*} ]]; then try "$name"; fi
done
[ "$failures" = 0 ]
