// Small uses of everything that a machine's description covers: freestanding, so a run takes a few thousand instructions.
// The first argument names the part by its first letter.

typedef unsigned long u64;
typedef unsigned char u8;

static long sys(long n, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static char *map(u64 bytes, int flags) { return (char *)sys(222, 0, bytes, 3, flags, -1, 0); }
enum { PRIVATE = 0x22, SHARED = 0x21 };

#define REGISTER(name) ({ u64 v; __asm__ volatile("mrs %0, " name : "=r"(v)); v; })

// Identification registers, the auxiliary vector, CPUs, nodes, memory and the hardware barrier, on standard output; and a pipe.
static void identity(u64 *auxv) {
    static u64 out[64];
    u64 n = 0;
    out[n++] = REGISTER("S3_0_C0_C0_0"), out[n++] = REGISTER("ctr_el0"), out[n++] = REGISTER("dczid_el0");
    out[n++] = REGISTER("S3_0_C0_C6_0"), out[n++] = REGISTER("S3_0_C0_C6_1"), out[n++] = REGISTER("S3_0_C0_C4_0");
    out[n++] = REGISTER("S3_0_C0_C4_4"), out[n++] = REGISTER("cntfrq_el0");
    for (; auxv[0]; auxv += 2)
        if (auxv[0] == 16 || auxv[0] == 26) out[n++] = auxv[1];
    unsigned cpu = 0, node = 0;
    sys(168, (long)&cpu, (long)&node, 0, 0, 0, 0);
    out[n++] = cpu, out[n++] = node;
    sys(123, 0, 128, (long)&out[n], 0, 0, 0);
    n += 16;
    u64 info[14];
    sys(179, (long)info, 0, 0, 0, 0, 0);
    out[n++] = info[4];
    sys(64, 1, (long)out, n * 8, 0, 0, 0);
    static const char *const files[] = {"/sys/class/misc/fujitsu_hwb/hwinfo", "/sys/devices/system/node/node4/distance"};
    for (u64 i = 0; i < 2; i++) {
        long file = sys(56, -100, (long)files[i], 0, 0, 0, 0);
        sys(64, 1, (long)out, sys(63, file, (long)out, sizeof out, 0, 0, 0), 0, 0, 0);
    }
    static u8 copied[16384];
    int ends[2];
    sys(59, (long)ends, 0, 0, 0, 0, 0);
    sys(64, ends[1], (long)copied, sizeof copied, 0, 0, 0);
    sys(63, ends[0], (long)copied, sizeof copied, 0, 0, 0);
}

static u64 state = 1;
static u64 draw(void) { return state = state * 6364136223846793005ul + 1442695040888963407ul, state >> 33; }

// Calls, returns and targets: deeper than the return stack, more branches than table entries, patterns of directions.
__attribute__((noinline)) static u64 deep(u64 n) { return n ? deep(n - 1) + 1 : 0; }
__attribute__((noinline)) static u64 one(u64 x) { return x + 1; }
__attribute__((noinline)) static u64 two(u64 x) { return x * 3; }
__attribute__((noinline)) static u64 three(u64 x) { return x ^ 5; }
static u64 (*volatile targets[])(u64) = {one, two, three, one, three, two, two};
#define B1 "b.eq 1f\n1: subs x9, x9, x10\n cbz x9, 2f\n2: tbnz x9, #3, 3f\n3:\n"
#define B4 B1 B1 B1 B1
#define B16 B4 B4 B4 B4
#define B64 B16 B16 B16 B16
#define B256 B64 B64 B64 B64
static void branches(void) {
    u64 sum = 0;
    for (u64 i = 0; i < 40; i++) sum += deep(5 + i % 12);
    for (u64 i = 0; i < 300; i++) sum = targets[i * i % 7](sum);
    for (u64 i = 0; i < 400; i++) {
        if (draw() & 1) sum += i;
        if (i % 3 == 0) sum ^= i;
        for (u64 j = 0; j < i % 5; j++) sum += j * sum;
        for (u64 j = 0; j < 20; j++) __asm__ volatile("");
    }
    for (u64 i = 0; i < 200; i++)
        __asm__ volatile("b 1f\n .skip 64\n1: b 2f\n .skip 64\n2: b 3f\n .skip 64\n3:");
    for (u64 i = 0; i < 3; i++)
        __asm__ volatile("mov x9, #77\n mov x10, %0\n cmp x9, x10\n" B256 B256 B256 B256 ::"r"(i) : "x9", "x10", "cc");
    __asm__ volatile("" ::"r"(sum));
}

// Operations of every kind of pipe, each passing its result to every other.
#define R4(x) x x x x
#define R16(x) R4(x) R4(x) R4(x) R4(x)
static void operations(void) {
    for (u64 i = 0; i < 20; i++)
        __asm__ volatile(
            "ptrue p0.d\n fmov z0.d, #1.5\n fmov z1.d, #2.5\n index z2.d, #0, #1\n mov x9, #3\n mov x10, #1000\n"
            R16("fadd z0.d, z0.d, z1.d\n fmla z3.d, p0/m, z0.d, z1.d\n add x9, x9, x10\n eor x11, x9, x10\n")
            R16("movprfx z4, z0\n fmad z4.d, p0/m, z1.d, z2.d\n")
            R4("cmp x9, x10\n csel x12, x9, x10, lt\n fcsel d5, d0, d1, gt\n fcmp d0, d1\n cinc x12, x12, eq\n fcsel d6, d1, d0, lt\n")
            R4("whilelo p1.d, x9, x10\n csinc x12, x12, x9, mi\n fcsel d5, d5, d0, mi\n sel z6.d, p1, z0.d, z1.d\n incp x12, p1.d\n")
            R4("fcmgt p2.d, p0/z, z0.d, z1.d\n sel z7.d, p2, z0.d, z1.d\n and p3.b, p0/z, p2.b, p1.b\n cntp x13, p0, p2.d\n")
            R4("cmpgt p2.d, p0/z, z2.d, #3\n b.mi 1f\n1: fcsel d5, d5, d0, mi\n csel x12, x9, x12, mi\n cmpgt p2.d, p0/z, z2.d, #2\n and p3.b, p0/z, p2.b, p1.b\n")
            R4("ptest p0, p2.b\n b.ne 1f\n1: csel x12, x9, x12, ne\n fcsel d5, d5, d0, ne\n")
            R4("udiv x14, x10, x9\n sdiv w15, w10, w9\n fdiv d5, d0, d1\n fsqrt d6, d1\n mul x14, x14, x10\n")
            R4("adrp x14, .\n adr x15, .\n adrp x14, .\n adrp x15, .\n")
            R16("addvl x16, x9, #1\n lsl x17, x9, #3\n ror x17, x17, #7\n")
            ::: "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "cc");
}

// Subnormal results, and results that would leave one pipe in the same cycle.
static void numbers(void) {
    volatile double least = 2.2250738585072014e-308;
    double sum = 0;
    for (u64 i = 0; i < 20; i++) sum += least * 0.25;
    __asm__ volatile("" ::"w"(sum));
    // Flushed denormals of all formats; exceptions are not checked.
    __asm__ volatile("msr fpcr, %0" ::"r"(1ul << 24 | 1ul << 19));
    for (u64 i = 0; i < 50; i++)
        __asm__ volatile(R16("fmul d1, d2, d3\n eor v4.16b, v5.16b, v6.16b\n fadd d7, d2, d3\n frintz d16, d2\n cnt v17.8b, v5.8b\n "
                             "addv b18, v5.16b\n")
                         ::: "v1", "v4", "v7", "v16", "v17", "v18");
}

static char area[1 << 16] __attribute__((aligned(4096)));
static char filled[1 << 16] __attribute__((aligned(4096))) = {1};

// Loads and stores of every width: forwarded, partly covered, split, in structures, and many at once.
static void accesses(void) {
    char *p = area;
    for (u64 i = 0; i < 20; i++) {
        __asm__ volatile(
            "ptrue p0.b\n ptrue p1.d\n mov x10, #1\n fmov d3, #2.0\n"
            R4("str x10, [%0]\n ldr x11, [%0]\n str x11, [%0, #8]\n ldr w12, [%0, #10]\n")
            R4("str d3, [%0, #16]\n ldr d4, [%0, #16]\n str q4, [%0, #32]\n ldr q5, [%0, #36]\n")
            R4("st1d z3.d, p1, [%0]\n ld1d z5.d, p1/z, [%0]\n st1b z3.b, p0, [%0, #1, mul vl]\n ld1b z6.b, p0/z, [%0, #1, mul vl]\n")
            R4("str p0, [%0, #40, mul vl]\n ldr p2, [%0, #40, mul vl]\n and p3.b, p0/z, p2.b, p0.b\n sel z8.b, p2, z3.b, z5.b\n")
            "add x13, %0, #120\n add x14, %0, #4096\n"
            R16("ldr q6, [x13]\n str q6, [x13]\n ldr x12, [x14, #4]\n str x10, [x14, #8]\n")
            "mov x15, %0\n"
            R4("ldr p2, [x15]\n and p3.b, p0/z, p2.b, p2.b\n cntp x12, p0, p3.b\n lsr x12, x12, #63\n add x15, %0, x12\n")
            R4("ldr p2, [x15]\n sel z8.b, p2, z3.b, z5.b\n umov w12, v8.b[0]\n lsr x12, x12, #63\n add x15, %0, x12\n")
            "add x15, %0, #1\n"
            R4("st1b z3.b, p0, [x15]\n ldrb w12, [%0, #66]\n st4d {z16.d, z17.d, z18.d, z19.d}, p1, [x14]\n ldr x12, [x14, #304]\n")
            R4("st2d {z16.d, z17.d}, p1, [x14]\n ld2d {z18.d, z19.d}, p1/z, [x14]\n ld2b {z18.b, z19.b}, p0/z, [x14]\n st2b {z16.b, z17.b}, p0, [x14]\n")
            "index z20.d, #0, #4\n"
            R16("ld1d z21.d, p1/z, [x14, z20.d]\n st1d z21.d, p1, [x14, z20.d]\n ld1b z22.d, p1/z, [x14, z20.d]\n")
            R16("strb w10, [%0, #3]\n strb w10, [%0, #19]\n strh w10, [%0, #50]\n str x10, [%0, #64]\n str x10, [%0, #200]\n str x10, [%0, #304]\n")
            R4("ldr x15, [%0, #64]\n ldr d16, [%0, #64]\n ld1d z17.d, p1/z, [%0]\n ldadd x10, x11, [%0]\n ldaxr x11, [%0]\n stxr w12, x11, [%0]\n")
            ::"r"(p) : "x10", "x11", "x12", "x13", "x14", "x15", "memory", "v3", "v4", "v5", "v6", "z8", "z16", "z17", "z18", "z19", "z20", "z21", "z22");
        p += 512;
    }
}

// A stream through memory, with write-backs and prefetch hints; then its lines out of order.
static void streams(void) {
    enum { BYTES = 1 << 20 };
    char *p = map(BYTES, PRIVATE);
    for (u64 pass = 0; pass < 2; pass++) {
        for (u64 i = 0; i < BYTES / 2; i += 64) *(volatile u64 *)(p + i) += *(volatile u64 *)(p + BYTES / 2 + i);
        for (u64 i = 0; i < 1000; i++) *(volatile u64 *)(p + (draw() & (BYTES - 1) & ~63ul)) += 1;
    }
    // Pointers without hardware prefetch into L2.
    for (u64 i = 0; i < BYTES / 4; i += 256) *(volatile u64 *)((u64)(p + i) | 2ul << 60);
    for (u64 i = 0; i < 200; i++) __asm__ volatile("prfm pldl2keep, [%0]" ::"r"(p + i * 4096));
    for (u64 i = 0; i < 40; i++) __asm__ volatile("dc zva, %0\n str xzr, [%0]\n ldr x9, [%0, #8]" ::"r"(p + i * 2048) : "x9", "memory");
}

// Two sectors of the caches, which access the same lines alternately.
static void sectors(void) {
    enum { BYTES = 128 << 10 };
    u64 p = (u64)map(4 * BYTES, PRIVATE);
    for (u64 pass = 0; pass < 4; pass++) {
        for (u64 i = 0; i < sizeof area; i += 256) *(volatile char *)(area + i);
        for (u64 i = 0; i < BYTES / 8; i += 64) *(volatile u64 *)(p + i | (pass & 1) << 56);
        for (u64 i = 0; i < 4 * BYTES; i += 256) *(volatile u64 *)(p + i | (~pass & 1) << 56);
        for (u64 i = 0; i < BYTES; i += 128) *(volatile u64 *)(p + i) = i;
    }
}

// Pages of every kind: first touched, more than the TLBs hold, shared, moved to another node, freed.
static void pages(void) {
    enum { EACH = 65536, COUNT = 160, STACK = 0x20000, HUGE = 0x40000 };
    char *p = map((u64)EACH * COUNT, PRIVATE), *shared = map(4 * EACH, SHARED), *stack = map(4 * EACH, PRIVATE | STACK);
    char *heap = (char *)sys(214, 0, 0, 0, 0, 0, 0);
    sys(214, (long)heap + 4 * EACH, 0, 0, 0, 0, 0);
    for (u64 i = 0; i < 4; i++) heap[i * EACH] = shared[i * EACH] = stack[i * EACH] = 1, area[i * 4096] = filled[i * 4096] = 2;
    for (u64 pass = 0; pass < 2; pass++)
        for (u64 i = 0; i < COUNT; i++) p[(i * 89 % COUNT) * (u64)EACH + i * 64]++;
    // One page repeatedly between others: it stays in a TLB with LRU replacement.
    volatile char *again = p;
    for (u64 i = 0; i < 40; i++) again[0]++, again[(i + 1) * EACH]++;
    void *moved[4] = {p, p + 2 * EACH, p + 40 * EACH, p + 80 * EACH};
    int nodes[4] = {5, 5, 5, 5}, status[4];
    sys(239, 0, 4, (long)moved, (long)nodes, (long)status, 2);
    for (u64 i = 0; i < COUNT; i++) p[i * EACH]++;
    sys(215, (long)p, (u64)EACH * COUNT, 0, 0, 0, 0);
    // Pages of one size, if available.
    char there[4];
    for (u64 i = 0; i < 4; i++) there[i] = (long)map(1ul << (22 + 3 * i), PRIVATE | HUGE | (22 + 3 * i) << 26) > 0;
    sys(64, 1, (long)there, 4, 0, 0, 0);
    // With a false mask: to a page that was never touched, and to one that does not exist.
    char *other = map(EACH * 4, PRIVATE);
    sys(215, (long)other + EACH, EACH, 0, 0, 0, 0);
    for (u64 i = 0; i < 4; i++)
        __asm__ volatile("pfalse p1.b\n st1d z0.d, p1, [%0]\n ld1d z1.d, p1/z, [%0]" ::"r"(other + i * EACH) : "memory", "z1");
}

// Code slightly smaller than a small L1 instruction cache, and larger: 15 KiB and 20 KiB.
#define A16 R16("add x9, x9, #1\n add x10, x10, #1\n add x11, x11, #1\n add x12, x12, #1\n")
static void code(void) {
    for (u64 i = 0; i < 3; i++)
        __asm__ volatile(R4(A16 A16 A16) R16(A16 A16 A16) ::: "x9", "x10", "x11", "x12");
    for (u64 i = 0; i < 3; i++)
        __asm__ volatile(R16(A16 A16 A16 A16 A16) ::: "x9", "x10", "x11", "x12");
}

// Maps memory, touches it and unmaps it.
static void churn(void) {
    enum { EACH = 65536, COUNT = 16 };
    char *p = map((u64)EACH * COUNT, PRIVATE);
    for (u64 i = 0; i < COUNT; i++) p[i * (u64)EACH] = 1;
    sys(215, (long)p, (u64)EACH * COUNT, 0, 0, 0, 0);
}

// Maps more than fits into fast memory, and reads all pages in turn, one after the other.
static void heat(void) {
    enum { EACH = 65536, COUNT = 48 };
    volatile char *p = map((u64)EACH * COUNT, PRIVATE);
    u64 sum = 0;
    for (u64 round = 0; round < 40; round++)
        for (u64 i = 0; i < COUNT; i++) sum += p[(i * 7 + sum) % COUNT * EACH + round * 256];
}

// Touches blocks of 2 MiB: with advice, in windows of 64 and 128 KiB between memory that shall have no huge pages, without advice, and half
// and whole blocks that are advised later. Another process shares two pages of the half block. With `more`, fills that many more.
static void folios(u64 more) {
    enum { BLOCK = 1 << 21, EACH = 65536, UNRESERVED = 0x4000, HUGE = 14, NOT_HUGE = 15 };
    char *p = map(140ul * BLOCK, PRIVATE | UNRESERVED);
    p = (char *)(((u64)p + BLOCK - 1) & -(u64)BLOCK);
    sys(233, (long)p, BLOCK, HUGE, 0, 0, 0);
    sys(233, (long)p + BLOCK, BLOCK - EACH, NOT_HUGE, 0, 0, 0);
    sys(233, (long)p + 2 * BLOCK, BLOCK - 2 * EACH, NOT_HUGE, 0, 0, 0);
    sys(233, (long)p + 8 * BLOCK, more * BLOCK, HUGE, 0, 0, 0);
    p[0] = p[2 * BLOCK - 1] = p[3 * BLOCK - 1] = p[3 * BLOCK] = 1;
    for (u64 i = 0; i < more; i++) p[(8 + i) * BLOCK] = 1;
    for (u64 i = 0; i < 16; i++) p[4 * BLOCK + 2 * i * EACH] = 1;
    for (u64 i = 0; i < 32; i++) p[6 * BLOCK + i * EACH] = 1;
    long child = sys(220, 17, 0, 0, 0, 0, 0);
    if (child == 0) {
        u64 time[2] = {0, 300000};
        sys(101, (long)time, 0, 0, 0, 0, 0);
        sys(94, 0, 0, 0, 0, 0, 0);
    }
    for (u64 i = 2; i < 16; i++) p[4 * BLOCK + 2 * i * EACH] = 2;
    for (u64 i = 0; i < 32; i++) p[6 * BLOCK + i * EACH] = 2;
    sys(233, (long)p + 4 * BLOCK, 3 * BLOCK, HUGE, 0, 0, 0);
    volatile char *again = p + 4 * BLOCK;
    for (u64 i = 0; i < 200000; i++) __asm__ volatile("");
    for (u64 i = 0; i < 256; i++) again[i % 16 * 2 * EACH]++, again[2 * BLOCK + i % 32 * EACH]++;
    sys(260, child, 0, 0, 0, 0, 0);
}

// A thread that sleeps until it is woken; then both threads map and unmap memory.
static int word;
static char stack[1 << 14] __attribute__((aligned(4096)));
static void threads(void) {
    long id;
    register long x0 __asm__("x0") = 0x50f00, x1 __asm__("x1") = (long)(stack + sizeof stack), x8 __asm__("x8") = 220;
    register long x2 __asm__("x2") = 0, x3 __asm__("x3") = 0, x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8) : "memory");
    id = x0;
    if (id == 0) {
        sys(98, (long)&word, 128, 0, 0, 0, 0);
        for (u64 i = 0; i < 100; i++) area[i * 64]++;
        churn();
        sys(94, 0, 0, 0, 0, 0, 0);
    }
    for (u64 i = 0; i < 2000; i++) __asm__ volatile("");
    word = 1;
    sys(98, (long)&word, 129, 1, 0, 0, 0);
    churn();
    for (u64 i = 0; i < 20000; i++) __asm__ volatile("");
}

void start(u64 *sp) {
    u64 n = sp[0];
    char part = *(char *)sp[2];
    u64 *end = sp + 2 + n;
    while (*end) end++;
    switch (part) {
    case 'i': identity(end + 1); break;
    case 'b': branches(); break;
    case 'o': operations(); break;
    case 'n': numbers(); break;
    case 'a': accesses(); break;
    case 's': streams(); break;
    case 'x': sectors(); break;
    case 'p': pages(); break;
    case 'c': code(); break;
    case 't': threads(); break;
    case 'h': heat(); break;
    case 'f': folios(0); break;
    case 'g': folios(125); break;
    }
    sys(94, 0, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start: mov x0, sp\n bl start\n");
