/* Sectors of the caches for programs: the functions of fxscope.h. */
#include "fxscope.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__aarch64__) && defined(__linux__)

#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>

/* Implementer and part of A64FX in MIDR_EL1, which Linux lets programs read where the auxiliary vector says so. */
enum { IMPLEMENTER_AND_PART = 0x46001, HAS_IDENTITY = 1 << 11 };

/* Most ways of a sector, and the distance of the registers' fields. */
enum { L1_WAYS = 4, L1_FIELD = 4, L2_WAYS = 16, L2_FIELD = 8 };

/* Bits 57:56 of a pointer name its sector; the processor does not use them as part of the address. */
enum { SECTORS = 4, TAG_AT = 56 };

enum { UNKNOWN, BEING_TRIED, USABLE, NOT_USABLE };

/* Whether programs can use the registers: known after the first try. */
static int state = UNKNOWN;
static __thread sigjmp_buf refused;

/* What a thread found in the registers before it changed them. */
static __thread struct {
    uint64_t l1, l2;
    int l1_known, l2_known;
} before;

/* IMP_SCCR_L1_EL0 and IMP_SCCR_VSCCR_L2_EL0. */
static uint64_t read_l1(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, S3_3_C11_C8_2" : "=r"(value));
    return value;
}

static uint64_t read_l2(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, S3_3_C15_C8_2" : "=r"(value));
    return value;
}

static void write_l1(uint64_t value)
{
    __asm__ volatile("msr S3_3_C11_C8_2, %0" : : "r"(value) : "memory");
}

static void write_l2(uint64_t value)
{
    __asm__ volatile("msr S3_3_C15_C8_2, %0" : : "r"(value) : "memory");
}

static int is_a64fx(void)
{
    uint64_t identity;
    if (!(getauxval(AT_HWCAP) & HAS_IDENTITY))
        return 0;
    __asm__("mrs %0, MIDR_EL1" : "=r"(identity));
    return ((identity >> 24 & 0xff) << 12 | (identity >> 4 & 0xfff)) == IMPLEMENTER_AND_PART;
}

static void on_refusal(int signal)
{
    (void)signal;
    siglongjmp(refused, 1);
}

/* Reads both registers; where the operating system does not allow it, that raises SIGILL. */
static int try_registers(void)
{
    struct sigaction now = {.sa_handler = on_refusal}, old;
    volatile int usable = 0;
    if (!is_a64fx() || sigaction(SIGILL, &now, &old))
        return 0;
    if (!sigsetjmp(refused, 1)) {
        read_l1();
        read_l2();
        usable = 1;
    }
    sigaction(SIGILL, &old, NULL);
    return usable;
}

/* Returns whether programs can use the registers. The first thread to ask tries, others wait for it. */
static int are_usable(void)
{
    int found = UNKNOWN;
    if (__atomic_compare_exchange_n(&state, &found, BEING_TRIED, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        found = try_registers() ? USABLE : NOT_USABLE;
        __atomic_store_n(&state, found, __ATOMIC_RELEASE);
    }
    while (found == BEING_TRIED)
        found = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    return found == USABLE;
}

/* Returns the register with these ways, or -1 if one is out of range. */
static int64_t fields(const int *ways, int count, int most, int distance)
{
    int64_t value = 0;
    for (int sector = 0; sector < count; sector++) {
        if (ways[sector] < 0 || ways[sector] > most)
            return -1;
        value |= (int64_t)ways[sector] << (sector * distance);
    }
    return value;
}

int fxscope_sector_l1_ways(int ways0, int ways1, int ways2, int ways3)
{
    const int ways[] = {ways0, ways1, ways2, ways3};
    int64_t value = fields(ways, 4, L1_WAYS, L1_FIELD);
    if (value < 0 || !are_usable())
        return value < 0 ? -1 : 0;
    if (!before.l1_known)
        before.l1 = read_l1();
    before.l1_known = 1;
    write_l1((uint64_t)value);
    return 1;
}

int fxscope_sector_l2_ways(int ways0, int ways1)
{
    const int ways[] = {ways0, ways1};
    int64_t value = fields(ways, 2, L2_WAYS, L2_FIELD);
    if (value < 0 || !are_usable())
        return value < 0 ? -1 : 0;
    if (!before.l2_known)
        before.l2 = read_l2();
    before.l2_known = 1;
    write_l2((uint64_t)value);
    return 1;
}

void fxscope_sector_restore(void)
{
    if (before.l1_known)
        write_l1(before.l1);
    if (before.l2_known)
        write_l2(before.l2);
    before.l1_known = before.l2_known = 0;
}

void *fxscope_sector_pointer(const void *data, int sector)
{
    uintptr_t address = (uintptr_t)data;
    if (sector >= 0 && sector < SECTORS)
        address = (address & ~((uintptr_t)(SECTORS - 1) << TAG_AT)) | (uintptr_t)sector << TAG_AT;
    return (void *)address;
}

#else

static int are_ways(const int *ways, int count, int most)
{
    for (int sector = 0; sector < count; sector++)
        if (ways[sector] < 0 || ways[sector] > most)
            return 0;
    return 1;
}

int fxscope_sector_l1_ways(int ways0, int ways1, int ways2, int ways3)
{
    const int ways[] = {ways0, ways1, ways2, ways3};
    return are_ways(ways, 4, 4) ? 0 : -1;
}

int fxscope_sector_l2_ways(int ways0, int ways1)
{
    const int ways[] = {ways0, ways1};
    return are_ways(ways, 2, 16) ? 0 : -1;
}

void fxscope_sector_restore(void)
{
}

void *fxscope_sector_pointer(const void *data, int sector)
{
    (void)sector;
    return (void *)(uintptr_t)data;
}

#endif
