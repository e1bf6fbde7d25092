#!/bin/sh
# usage: kernels/demo.sh first ANSWER FOLDER     Triad from L1, with the library's example, whose answer needs half of fxscope
#        kernels/demo.sh others FXSCOPE FOLDER   Triad from L2 and memory, and all three side by side
#
# Triad on the modelled A64FX, about the same number of instructions each. Records are in FOLDER.
set -eu
command=$(realpath "$2")
mkdir -p "$3"
folder=$(realpath "$3")
cd "$(dirname "$0")/.."

show() {
    name=$1
    shift
    echo "\$ fxscope run -o $name.fxr -- kernels/prebuilt/$name.elf $*" >&2
    "$command" run --quiet -o "$folder/$name.fxr" -- "kernels/prebuilt/$name.elf" "$@"
}

case $1 in
    first)
        rm -f "$folder"/*.fxr
        echo "\$ answer triad-l1.fxr kernels/prebuilt/triad-l1.elf n=2048 passes=2000" >&2
        "$command" "$folder/triad-l1.fxr" kernels/prebuilt/triad-l1.elf n=2048 passes=2000
        ;;
    others)
        show triad-l2 n=29056 passes=140
        show triad-mem n=1048512 passes=3
        cd "$folder"
        echo "\$ fxscope report triad-l1.fxr triad-l2.fxr triad-mem.fxr --region triad" >&2
        "$command" report triad-l1.fxr triad-l2.fxr triad-mem.fxr --region triad
        ;;
esac
