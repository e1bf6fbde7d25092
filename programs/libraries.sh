#!/bin/bash
# usage: programs/libraries.sh [FOLDER]
#
# Prepares the family `libraries` of `fxscope validate`: unpacks Debian's arm64 packages of OpenBLAS and xxHash into FOLDER/root
# (FOLDER is target/libraries) and builds the program that calls them, FOLDER/libraries.elf. A prepared folder is left as it
# is. If the packages cannot be had, says why; the exit status is 1.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=programs/packages.sh
. "$here/packages.sh"
folder=${1:-$here/../target/libraries}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

why=$(unpack_packages "$folder" "$folder/root" libc6 libopenblas0-serial libxxhash0) || { echo "libraries: $why" >&2; exit 1; }
aarch64-linux-gnu-gcc -O2 -Wall -Wextra -o "$folder/libraries.elf" "$here/src/libraries.c"
