#!/bin/sh
# usage: kernels/demo.sh FXSCOPE
#
# Triad from L1, L2 and memory on the modelled A64FX, about the same number of instructions each, side by side.
set -eu
fxscope=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

show() {
    name=$1
    shift
    echo "\$ fxscope run -o $name.fxr -- kernels/prebuilt/$name.elf $*" >&2
    "$fxscope" run --quiet -o "$folder/$name.fxr" -- "kernels/prebuilt/$name.elf" "$@"
}

show triad-l1 n=2048 passes=2000
show triad-l2 n=29056 passes=140
show triad-mem n=1048512 passes=3
cd "$folder"
echo "\$ fxscope report triad-l1.fxr triad-l2.fxr triad-mem.fxr --region triad" >&2
"$fxscope" report triad-l1.fxr triad-l2.fxr triad-mem.fxr --region triad
