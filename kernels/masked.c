/* A conditional access that a compiler has converted to a mask: `if (used) z(row) = …`, with z that was never allocated,
 * allocated but never touched, or in use. If the condition is false, no element is active. */
#include "runtime.h"

enum { MAX_INNER = 256, MAX_VECTOR = 32, MAX_SPAN = 1 << 30 };

struct shape {
    uint64_t rows, inner, step, active;
};

typedef uint64_t kernel(double *y, const double *x1, const double *x2, uint64_t *z, const struct shape *shape, double c);
kernel masked_store_kernel, masked_load_kernel, masked_gather_kernel, masked_scatter_kernel, masked_branch_kernel;

/* mmap and munmap of private, writable memory. */
void *linux_map(size_t bytes);
long linux_unmap(void *block, size_t bytes);

enum { ABSENT, UNTOUCHED, USED };
enum { STORE, LOAD, SCATTER, GATHER };
enum { MASK, BRANCH };
enum { STATE, FORM, ACCESS, ACTIVE, ROWS, INNER, STEP };

static struct option options[] = {
    [STATE] = {"state", ABSENT, 0, 0, "absent|untouched|used"},
    [FORM] = {"form", MASK, 0, 0, "mask|branch"},
    [ACCESS] = {"access", STORE, 0, 0, "store|load|scatter|gather"},
    [ACTIVE] = {"active", 0, 0, MAX_VECTOR, NULL},
    [ROWS] = {"rows", 4096, 1, 1000000, NULL},
    [INNER] = {"inner", 24, 1, MAX_INNER, NULL},
    [STEP] = {"step", 0, 0, 1 << 24, NULL},
};

static kernel *const KERNELS[] = {
    [STORE] = masked_store_kernel,
    [LOAD] = masked_load_kernel,
    [SCATTER] = masked_scatter_kernel,
    [GATHER] = masked_gather_kernel,
};

enum { INITIAL = 3 };

static _Alignas(LINE) double y[MAX_INNER * MAX_VECTOR], x1[MAX_INNER * MAX_VECTOR], x2[MAX_INNER * MAX_VECTOR];

/* Address of z: whole pages. A missing z was mapped and unmapped before, so that nothing else is there. */
static uint64_t *place(uint64_t bytes)
{
    bytes = (bytes + 0xffff) & ~(uint64_t)0xffff;
    uint64_t *z = linux_map(bytes);
    /* Errors are the highest addresses. */
    if ((uintptr_t)z > UINTPTR_MAX - 4096)
        cannot_run("the system gives no more memory");
    if (options[STATE].value == ABSENT)
        linux_unmap(z, bytes);
    return z;
}

int program(int argc, char **argv)
{
    parse_options(argc, argv, options, COUNT_OF(options));
    uint64_t elements = svcntd(), active = options[ACTIVE].value, state = options[STATE].value;
    bool stores = options[ACCESS].value == STORE || options[ACCESS].value == SCATTER;
    if (!options[STEP].value)
        options[STEP].value = svcntb();
    struct shape shape = {options[ROWS].value, options[INNER].value, options[STEP].value, active};
    if (shape.step % svcntb())
        cannot_run("step must be a multiple of the bytes of a vector (0: one vector)");
    if (active > elements)
        cannot_run("active is larger than a vector of this length");
    if (active && state == ABSENT)
        cannot_run("active elements need memory: state=untouched or state=used");
    if (options[FORM].value == BRANCH && options[ACCESS].value != STORE)
        cannot_run("form=branch is for access=store");
    if (shape.rows * shape.step > MAX_SPAN)
        cannot_run("rows times step must be at most 1 GiB");
    for (uint64_t i = 0; i < shape.inner * elements; i++) {
        x1[i] = (double)(i % 1021);
        x2[i] = (double)(i % 509);
    }
    uint64_t *z = place(shape.rows * shape.step), initial = 0;
    const uint64_t words = shape.step / sizeof *z;
    if (state == USED) {
        initial = INITIAL;
        for (uint64_t i = 0; i < shape.rows * elements; i++)
            z[i / elements * words + i % elements] = initial;
    }
    kernel *run = options[FORM].value == BRANCH ? masked_branch_kernel : KERNELS[options[ACCESS].value];
    struct shape one = {1, shape.inner, shape.step, active};
    run(y, x1, x2, z, &one, 2);

    measure_begin("masked");
    uint64_t sum = run(y, x1, x2, z, &shape, 2);
    measure_end();

    /* All values are integers, hence exact. Inactive elements must be unchanged. */
    bool ok = sum == (stores ? 0 : shape.rows * active * initial);
    for (uint64_t i = 0; i < shape.inner * elements; i++)
        ok &= y[i] == x1[i] + 2 * x2[i];
    const double *last = y + (shape.inner - 1) * elements;
    for (uint64_t i = 0; state != ABSENT && i < shape.rows * elements; i++) {
        union {
            double value;
            uint64_t word;
        } expected = {.word = initial};
        if (stores && i % elements < active)
            expected.value = last[i % elements];
        ok &= z[i / elements * words + i % elements] == expected.word;
    }
    return finish(ok, options, COUNT_OF(options));
}
