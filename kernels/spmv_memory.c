/* Memory for the matrices of spmv.c, with a limit that is checked before anything is allocated, and its messages. */
#include "spmv.h"

void *linux_map(size_t bytes);
long linux_write(int fd, const void *bytes, unsigned long count);
_Noreturn void linux_exit(int status);

static uint64_t limit = UINT64_MAX;

static const char ROWS[] = "CRS, which all formats are made from,";

static char message[640];
static size_t length;

void say(const char *text)
{
    while (*text && length < sizeof message - 1)
        message[length++] = *text++;
}

void say_number(uint64_t number)
{
    char digits[21];
    unsigned at = sizeof digits;
    digits[--at] = 0;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    say(digits + at);
}

/* Rounded up to tenths, so that a size above a limit never reads like the limit. */
void say_size(unsigned __int128 bytes)
{
    bool large = bytes >> 30;
    unsigned __int128 unit = large ? 1 << 30 : 1 << 20;
    uint64_t tenths = (uint64_t)((bytes * 10 + unit - 1) >> (large ? 30 : 20));
    say_number(tenths / 10);
    say(".");
    say_number(tenths % 10);
    say(large ? " GiB" : " MiB");
}

_Noreturn void leave(int status)
{
    message[length++] = '\n';
    linux_write(2, message, length);
    linux_exit(status);
}

void set_limit(uint64_t bytes)
{
    limit = bytes;
}

void claim(const char *who, unsigned __int128 bytes, const struct product *what)
{
    if (bytes <= limit)
        return;
    say(PROGRAM ": ");
    say(who);
    say(" needs ");
    say_size(bytes);
    say(" for this matrix (");
    say_number(what->first);
    say(what->times);
    say_number(what->second);
    say(what->unit);
    say("), limit is ");
    say_size(limit);
    say(" (limit=");
    say_number(limit >> 20);
    say(", in MiB)");
    leave(NO_MEMORY);
}

void *take(uint64_t count, size_t size)
{
    unsigned __int128 bytes = (unsigned __int128)count * size;
    void *memory = (void *)UINTPTR_MAX;
    if (bytes >> 48 == 0)
        memory = linux_map(bytes ? (size_t)bytes : 1);
    /* Errors are the highest addresses. */
    if ((uintptr_t)memory > UINTPTR_MAX - 4096) {
        say(PROGRAM ": the system has no ");
        say_size(bytes);
        say(" of memory left");
        leave(NO_MEMORY);
    }
    return memory;
}

struct matrix new_matrix(uint64_t n)
{
    struct matrix a = {.n = n};
    const struct product what = {n + 1, " row pointers of ", sizeof *a.ptr, " bytes"};
    claim(ROWS, (unsigned __int128)what.first * what.second, &what);
    a.ptr = take(n + 1, sizeof *a.ptr);
    return a;
}

void take_nonzeros(struct matrix *a, uint64_t nonzeros)
{
    const struct product what = {a->n, " rows, ", nonzeros, " nonzeros"};
    uint64_t each = sizeof *a->index + sizeof *a->value;
    claim(ROWS, (unsigned __int128)nonzeros * each + (a->n + 1) * sizeof *a->ptr, &what);
    if (nonzeros > MAX_INDEX) {
        say(PROGRAM ": ");
        say_number(nonzeros);
        say(" nonzeros are too many for indices of 32 bits");
        leave(NO_MEMORY);
    }
    a->nonzeros = nonzeros;
    a->index = take(nonzeros, sizeof *a->index);
    a->value = take(nonzeros, sizeof *a->value);
}

/* A counting sort by columns: rows are in ascending order in each. */
struct matrix transposed(const struct matrix *a)
{
    struct matrix t = new_matrix(a->n);
    take_nonzeros(&t, a->nonzeros);
    for (uint64_t k = 0; k < a->nonzeros; k++)
        t.ptr[a->index[k] + 1]++;
    for (uint64_t j = 0; j < a->n; j++)
        t.ptr[j + 1] += t.ptr[j];
    for (uint64_t i = 0; i < a->n; i++)
        for (int32_t k = a->ptr[i]; k < a->ptr[i + 1]; k++) {
            int32_t at = t.ptr[a->index[k]]++;
            t.index[at] = (int32_t)i;
            t.value[at] = a->value[k];
        }
    /* Each now points to the end of its column, the start of the next. */
    for (uint64_t j = a->n; j > 0; j--)
        t.ptr[j] = t.ptr[j - 1];
    t.ptr[0] = 0;
    return t;
}
