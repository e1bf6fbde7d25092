#include "tlb.h"

void *linux_map(size_t bytes);

unsigned char *tlb_map(size_t bytes)
{
    unsigned char *memory = linux_map(bytes);
    /* Errors are the highest addresses. */
    if ((uintptr_t)memory > UINTPTR_MAX - 4096)
        cannot_run("the system has not so much memory; choose a smaller stride, count or span");
    return memory;
}
