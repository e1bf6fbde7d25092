#!/bin/bash
# usage: argon.sh >argon.gro
#
# Writes 1,000 atoms of argon on a simple cubic lattice in GROMACS's format for coordinates, in nm.
awk 'BEGIN {
    side = 10; distance = 0.36; number = 0
    print "Argon on a simple cubic lattice"
    print side ^ 3
    for (x = 0; x < side; x++) for (y = 0; y < side; y++) for (z = 0; z < side; z++) {
        number++
        printf "%5d%-5s%5s%5d%8.3f%8.3f%8.3f\n", number, "AR", "AR", number, x * distance, y * distance, z * distance
    }
    printf "%10.5f%10.5f%10.5f\n", side * distance, side * distance, side * distance
}'
