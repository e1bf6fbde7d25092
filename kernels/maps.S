// System calls that map and unmap memory.

        .text

// void *linux_map(size_t bytes): private, zero, readable and writable; a negative error number otherwise
        .globl  linux_map
        .type   linux_map, %function
linux_map:
        mov     x1, x0
        mov     x0, #0
        mov     x2, #3                  // PROT_READ | PROT_WRITE
        mov     x3, #0x22               // MAP_PRIVATE | MAP_ANONYMOUS
        mov     x4, #-1
        mov     x5, #0
        mov     x8, #222
        svc     #0
        ret
        .size   linux_map, .-linux_map

// long linux_unmap(void *block, size_t bytes)
        .globl  linux_unmap
        .type   linux_unmap, %function
linux_unmap:
        mov     x8, #215
        svc     #0
        ret
        .size   linux_unmap, .-linux_unmap
