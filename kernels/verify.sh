#!/bin/sh
# usage: verify.sh PROGRAM...
#
# Runs prebuilt programs under qemu-aarch64 as an A64FX with vectors of 512, 256 and 128 bits. Every program checks its own
# result; a run that a vector length does not allow must report it (exit status 2).
set -u
cd "$(dirname "$0")"
QEMU=${QEMU:-qemu-aarch64}
[ $# -gt 0 ] || { echo "usage: verify.sh PROGRAM..." >&2; exit 2; }
programs=$*
failures=0
runs=0

# Whether a program is among those to run.
wanted() { case " $programs " in *" $1 "*) ;; *) return 1 ;; esac; }

# run VECTOR_BYTES EXPECTED_STATUS PROGRAM [OPTION]...
run() {
    bytes=$1 expected=$2 program=$3
    shift 3
    wanted "$program" || return 0
    runs=$((runs + 1))
    output=$($QEMU -cpu "a64fx,sve-default-vector-length=$bytes" "prebuilt/$program.elf" "$@" 2>&1)
    status=$?
    if [ "$status" -ne "$expected" ]; then
        echo "vl=$((bytes * 8)) $program $*: exit status $status instead of $expected: $output" >&2
        failures=$((failures + 1))
    fi
}

for bytes in 64 32 16; do
    for name in $programs; do
        # Rows of 6 doubles, the default of rowadd, do not fit into shorter vectors, nor do eight points of axhelm or five
        # channels of dtrn3.
        if [ $bytes -lt 64 ] && case $name in rowadd | axhelm | dtrn3) true ;; *) false ;; esac; then
            run $bytes 2 "$name"
        elif [ $name = collect ]; then
            run $bytes 0 "$name" repeat=1
        else
            run $bytes 0 "$name"
        fi
    done
    for illness in stride gather false-sharing tlb small-pages aliasing interlock imbalance first-touch remote denormals division streams lock \
        scalar chain branches; do
        run $bytes 0 ill illness=$illness ill=0
        run $bytes 0 ill illness=$illness ill=1
    done
    for n in 64 2048; do
        run $bytes 0 triad-l1 n=$n passes=1
        run $bytes 0 triad-mem n=$n passes=1
        run $bytes 0 triad-mem-8x n=$n passes=1
    done
    for lines in 1 3 100; do
        run $bytes 0 triad-mem-zfill n=2048 passes=2 zero-lines=$lines
        run $bytes 0 triad-mem-swpf n=8192 passes=2 zero-lines=$lines
    done
    for type in single short; do
        for form in wide swpf-l1 swpf zfill-swpf; do
            run $bytes 0 types type=$type form=$form bytes=131072 passes=2 threads=3
        done
    done
    for type in single long int; do
        for op in add sub mul fma; do
            run $bytes 0 arith-types type=$type op=$op form=vector passes=2
            run $bytes 0 arith-types type=$type op=$op form=scalar passes=2
        done
    done
    for type in f64 f32 f16 i64 i32 i16 i8; do
        for op in load store copy add sub mul fma max min abs sign; do
            run $bytes 0 family op=$op type=$type n=4096 passes=2
            run $bytes 0 family op=$op type=$type n=4096 passes=2 load=pairs store=pairs offset=16
            run $bytes 0 family op=$op type=$type n=16384 passes=2 threads=3 l1-lines=4 l2-lines=20 store-offset=8
        done
        run $bytes 0 family type=$type n=16384 passes=2 threads=3 zero-lines=4
        run $bytes 0 family type=$type n=16384 passes=2 threads=3 zero-lines=4 l1-lines=4 l2-lines=20
        run $bytes 0 family type=$type n=8192 passes=2 threads=3 block=1024 pitch=1536 l1-lines=4
    done
    for type in f64 f32 i64 i32; do
        for load in contiguous strided indirect; do
            for store in contiguous strided indirect; do
                run $bytes 0 family type=$type load=$load store=$store n=4096 passes=2 threads=2
                run $bytes 0 family type=$type load=$load store=$store n=2048 stride=3 passes=2
            done
        done
        for order in ascending random; do
            run $bytes 0 family type=$type load=indirect store=indirect order=$order stride=2 n=4096 passes=2
        done
        run $bytes 0 family type=$type load=indirect stride=0 passes=2
        run $bytes 0 family type=$type load=indirect stride=16 n=128 passes=2
        run $bytes 0 family type=$type load=strided zero-lines=4 n=16384 passes=2 threads=3
    done
    for op in div mod recip sqrt sqrt-series aint anint; do
        for type in f64 f32 f16; do
            run $bytes 0 family op=$op type=$type passes=2 n=4096
        done
    done
    for op in exp log sin cos atan pow; do
        run $bytes 0 family op=$op type=f64 passes=2
        run $bytes 0 family op=$op type=f32 passes=2
    done
    for conversion in double-f32 double-i32 single-f64 single-i32 int-f64 int-f32 nint-f64 nint-f32 div-i64 mod-i32; do
        run $bytes 0 family op=${conversion%-*} type=${conversion#*-} passes=2
    done
    for lines in 1 18 100; do
        run $bytes 0 copy-zfill bytes=12800 passes=2 zero-lines=$lines
    done
    for load in contiguous gather; do
        for store in contiguous scatter; do
            run $bytes 0 gather-threads load=$load store=$store n=6400
            run $bytes 0 gather load=$load store=$store compiled=unknown passes=2
        done
    done
    for load in double quad vector; do
        run $bytes 0 vector-chase load=$load nodes=1 hops=3
        run $bytes 0 vector-chase load=$load nodes=100 hops=1234
    done
    for prefetch in none all masked; do
        run $bytes 0 masked-triad prefetch=$prefetch n=6400 every=1 threads=3
        run $bytes 0 masked-triad prefetch=$prefetch n=6400 every=30 lines=100
    done
    run $bytes 0 arenas n=1000 blocks=7 threads=3
    for by in loop zero-fill memcpy; do
        run $bytes 0 copies by=$by bytes=256 caches=cleaned
        run $bytes 0 copies by=$by bytes=25600 threads=7 passes=3
    done
    run $bytes 0 streams20 n=6400 software=0
    run $bytes 0 streams20 n=6400 software=18
    run $bytes 0 chase footprint=32768 hops=100000 state=warm
    run $bytes 0 chase footprint=512 hops=7 state=warm
    for degree in 1 2 3 4 5 6 7 8 9; do
        run $bytes 0 horner degree=$degree m=0 rows=16 passes=3
        run $bytes 0 horner degree=$degree m=1 rows=16 passes=3
        run $bytes 0 horner degree=$degree m=0 form=interleaved rows=16 passes=3
        for rows in 8 16 24; do
            run $bytes 0 horner degree=$degree m=0 form=pipelined rows=$rows passes=3
        done
    done
    for x in 1 2 3 4 5 6 7 8; do
        expected=0
        [ $((x * 8)) -le $bytes ] || expected=2
        run $bytes $expected rowadd x=$x passes=3
        run $bytes $expected rowadd x=$x pitch=8 passes=3
    done
    for type in double single; do
        for store in contiguous scatter; do
            run $bytes 0 gather type=$type load=contiguous store=$store passes=3
            for stride in 1 2 16; do
                run $bytes 0 gather type=$type load=gather store=$store stride=$stride passes=3
            done
        done
        run $bytes 0 gather type=$type load=gather store=contiguous stride=0 passes=3
        run $bytes 0 gather type=$type load=gather store=contiguous offset=24 passes=3
    done
    for case in gather page unaligned pairs small-pairs low-bits missed both-missed; do
        for clear in 0 1; do
            run $bytes 0 interlock case=$case clear=$clear rounds=100
        done
    done
    for clear in 0 1 2; do
        run $bytes $((bytes < 64 ? 2 : 0)) interlock case=rows clear=$clear rounds=10
    done
    run $bytes 0 dgemm-threads m=96 n=96 k=164 threads=5 passes=2
    run $bytes 0 dgemm-threads m=8 n=24 k=4 threads=3
    for size in 1 8 256 1000 8192 100003; do
        run $bytes 0 copy bytes=$size passes=2
    done
    for op in load copy update triad daxpy; do
        run $bytes 0 plain op=$op n=8 passes=2
        run $bytes 0 plain op=$op n=1000 passes=3
    done
    for tile in 5x4 8x3; do
        for k in 4 32 1024; do
            run $bytes 0 dgemm-tile tile=$tile k=$k passes=3
        done
    done
    for op in add mul fma div div-series max; do
        run $bytes 0 arith op=$op passes=2
    done
    run $bytes 0 arith op=div-series form=scalar n=128 passes=2
    for op in add mul fma max; do
        run $bytes 0 arith op=$op form=scalar n=64 passes=2
        run $bytes 0 arith op=$op form=scalar passes=2
    done
    for op in add mul fma load load4 store zero; do
        run $bytes 0 steps op=$op rounds=3
    done
    for op in abs aint dble real int; do
        for form in vector scalar; do
            run $bytes 0 unary op=$op form=$form n=64 passes=2
            run $bytes 0 unary op=$op form=$form passes=2
        done
    done
    for n in 128 192 256; do
        run $bytes 0 arith op=div-series n=$n passes=2
    done
    for pointers in plain tagged; do
        run $bytes 0 sector n=4096 m=100 pointers=$pointers passes=3
        run $bytes 0 sector n=64 m=1000 pointers=$pointers passes=1
    done
    for n in 2 17 1000; do
        run $bytes 0 sort n=$n passes=3
    done
    for form in wide plain swpf-l1 swpf zfill zfill-swpf; do
        for threads in 1 5 48; do
            run $bytes 0 triad-threads n=17472 passes=2 threads=$threads form=$form
        done
    done
    run $bytes 0 triad-threads n=64 passes=2 threads=4 init=one
    for threads in 1 5 48; do
        run $bytes 0 stencil n1=19 n2=5 n3=30 pointers=tagged passes=2 threads=$threads
    done
    run $bytes 0 stencil n1=3 n2=3 n3=3 passes=1
    run $bytes 0 barrier kind=spin threads=3 cpus=0
    run $bytes 0 barrier kind=futex threads=64 rounds=3
    run $bytes 0 barrier kind=memory meeting=flags threads=7 rounds=3
    run $bytes 0 barrier kind=memory meeting=pairs threads=7 rounds=3
    # There is no hardware barrier.
    run $bytes 2 barrier kind=hardware
    run $bytes 0 sharing layout=own-lines
    run $bytes 0 sharing threads=32 rounds=10
    for op in ldadd exclusive cas; do
        run $bytes 0 atomics op=$op threads=3 rounds=200
    done
    run $bytes 0 lock waiting=wfe rounds=20
    run $bytes 0 sector-threads n=4096 m=100 pointers=tagged passes=2 threads=7
    run $bytes 0 sector-threads n=16 m=100 threads=3
    for op in load copy update triad daxpy; do
        run $bytes 0 plain-threads op=$op n=1000 passes=3 threads=7
    done
    for layout in soa aos; do
        run $bytes 0 nbody layout=$layout n=256
        run $bytes 0 nbody layout=$layout n=64 passes=2
    done
    run $bytes 0 twst inner=columns passes=2
    run $bytes 0 dtrn3 inner=levels passes=3
    for pointers in contiguous strided; do
        run $bytes 0 triadt pointers=$pointers n=4096 passes=3 threads=5
    done
    for size in 65536 100000 4194304; do
        run $bytes 0 maps count=5 bytes=$size rounds=3
    done
    for access in store load scatter gather; do
        for state in absent untouched used; do
            run $bytes 0 masked access=$access state=$state rows=100
        done
        run $bytes 0 masked access=$access state=used active=1 rows=100
        run $bytes 0 masked access=$access state=untouched active=2 rows=5 inner=1 step=65536
        run $bytes 2 masked access=$access state=absent active=1
    done
    for part in all guards state; do
        run $bytes 0 blocks part=$part blocks=100
    done
    run $bytes 0 blocks blocks=96 evaluations=5
    run $bytes 0 masked form=branch state=absent
    run $bytes 0 masked form=branch state=used active=2 inner=3
    run $bytes 2 masked form=branch access=load
    run $bytes 0 tlb-stride stride=1048576 count=100 rounds=3
    run $bytes 0 tlb-arrays span=1073741824 work=20 steps=5 visits=3
    run $bytes 0 tlb-segments threads=5
    for table in linear chains; do
        run $bytes 0 hashjoin table=$table build=1 probe=7 matches=50
        run $bytes 0 hashjoin table=$table build=1000 probe=7000 matches=0
        run $bytes 0 hashjoin table=$table build=30000 probe=7000 matches=100 seed=77
    done
    for n in 1 5 40 41 257; do
        run $bytes 0 dgemm n=$n passes=2
    done
    for format in crs ccs msr dia ell jds bsr bsc vbr coo; do
        for matrix in banded diagonals blocks stencil2d stencil3d stencil27 powerlaw random arrow denserow; do
            run $bytes 0 spmv format=$format matrix=$matrix n=301 row=9 band=20 block=3
        done
        run $bytes 0 spmv format=$format matrix=random n=1003 row=40 block=8 reps=3
        run $bytes 0 spmv format=$format matrix=blocks n=1003 row=40 block=8
        run $bytes 0 spmv format=$format matrix=powerlaw n=20 row=100 block=4
        run $bytes 0 spmv format=$format n=1 row=1
    done
done

for pattern in 1 2 3; do
    run 64 0 streamlike pattern=$pattern levels=3 threads=5 passes=2
done
for pattern in 1 2; do
    run 64 0 streamlike pattern=$pattern levels=7 threads=3 passes=2 zero-lines=1
    run 64 0 streamlike pattern=$pattern levels=7 threads=3 passes=2 zero-lines=16
done
run 64 2 streamlike pattern=3 zero-lines=16
for elements in 1 7 30; do
    run 64 0 axhelm form=terms elements=$elements passes=2 threads=5
    run 64 0 axhelm form=points elements=$elements threads=7
done

# The emulator's threads run concurrently, with the host's memory order, which is stronger than Arm's.
for test in mp sb lb s r 2+2w iriw corr; do
    for form in plain ordered dmb; do
        # QEMU on x86 allows a load to overtake an ordered store, which sb and r can observe; the processor does not.
        case $test-$form in sb-ordered | r-ordered) continue ;; esac
        run 64 0 litmus test=$test form=$form rounds=5
    done
done

for construct in parallel for parallel-for barrier single critical lock ordered atomic reduction; do
    run 64 0 openmp construct=$construct threads=4 rounds=96
done

# Wrong arguments are refused.
run 64 2 openmp rounds=97
run 64 2 openmp construct=atomic barrier=hardware
run 64 2 dgemm-threads n=100
run 64 2 copies bytes=300
run 64 2 pingpong cpus=0
run 64 2 sector-threads n=24
run 64 2 plain-threads n=320 threads=11
run 64 2 tlb-stride stride=1099511627776 count=1048576
run 64 2 triad-l1 n=65
run 64 2 triad-l1 n=999999999
run 64 2 triad-l1 fish=1
run 64 2 triad-l1 2048 1 1
run 64 2 gather type=half
run 64 2 gather offset=4
run 64 2 sector n=24
run 64 2 sector l2-ways=15
run 64 2 stencil n1=4096 n2=4096
run 64 2 barrier cpus=1023
run 64 2 barrier cpus=1024
run 64 2 barrier cpus=
run 64 2 barrier cpus=1-
run 64 2 barrier cpus=1-0
run 64 2 horner m=1 form=interleaved
run 64 2 arith op=div form=scalar
run 64 2 horner m=1 form=pipelined
run 64 2 spmv matrix=diagonals row=1
run 64 2 spmv matrix=file
run 64 2 spmv file=/nonexistent
run 64 2 family type=i8 load=strided
run 64 2 family op=exp type=i64
run 64 2 family load=pairs
run 64 2 family load=indirect zero-lines=4
run 64 2 family n=1000

# Formats that need more memory than the limit.
run 64 3 spmv format=ell matrix=arrow n=200000
run 64 3 spmv format=dia matrix=denserow n=200000
run 64 3 spmv format=ell matrix=denserow n=80000000 row=1 limit=4000
run 64 3 spmv n=2147483646

if [ $failures -ne 0 ]; then
    echo "$failures of $runs runs failed" >&2
    exit 1
fi
echo "kernels: $runs runs passed"
