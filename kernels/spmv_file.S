// System calls that read a file.

        .text

// long linux_openat(int folder, const char *path, int flags, int mode): a descriptor; negative: an error of Linux
        .globl  linux_openat
        .type   linux_openat, %function
linux_openat:
        mov     x8, #56
        svc     #0
        ret
        .size   linux_openat, .-linux_openat

// long linux_read(int fd, void *bytes, unsigned long count): bytes read; negative: an error of Linux
        .globl  linux_read
        .type   linux_read, %function
linux_read:
        mov     x8, #63
        svc     #0
        ret
        .size   linux_read, .-linux_read
