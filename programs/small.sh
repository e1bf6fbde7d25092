#!/bin/bash
# usage: programs/small.sh [FOLDER]
#
# Builds programs/src/small.c and programs/src/unseen.c, small benchmarks of the kinds that compare languages, into FOLDER (target/programs/bin).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../target/programs/bin}
mkdir -p "$folder"
for name in small unseen; do
    aarch64-linux-gnu-gcc -O2 -march=armv8.2-a+sve -static -o "$folder/$name" "$here/src/$name.c" -lm
done
