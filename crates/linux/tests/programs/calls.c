/* System calls whose results do not depend on the machine or on what else runs. */
#include "bare.h"

void begin(word *stack)
{
    char buffer[64];
    int pipe[2];
    word heap = CALL(214, 0, 0, 0);
    (void)stack;
    hex("brk grows", CALL(214, heap + 0x30000, 0, 0) - heap);
    *(volatile char *)(heap + 0x2ffff) = 5;
    hex("brk shrinks", CALL(214, heap, 0, 0) - heap);
    hex("brk below the heap", CALL(214, 0x1000, 0, 0) - heap);

    word map = call(222, 0, 0x40000, 3, 0x22, -1, 0);
    hex("mmap error", map > -4096UL);
    *(volatile word *)map = 0x55;
    *(volatile word *)(map + 0x3fff8) = 0x66;
    hex("mmap of nothing", call(222, 0, 0, 3, 0x22, -1, 0));
    hex("mmap without type", call(222, 0, 4096, 3, 0x20, -1, 0));
    hex("mmap of a bad file", call(222, 0, 4096, 1, 2, 77, 0));
    word moved = call(216, map, 0x40000, 0x80000, 1, 0, 0);
    hex("mremap keeps", *(volatile word *)moved + *(volatile word *)(moved + 0x3fff8));
    hex("mremap zero", *(volatile word *)(moved + 0x7fff8));
    hex("mremap shrinks", call(216, moved, 0x80000, 0x10000, 0, 0, 0) - moved);
    hex("mprotect", CALL(226, moved, 0x10000, 1));
    hex("mprotect beyond", CALL(226, moved + 0x10000, 0x10000, 1));
    hex("read into it", CALL(63, 0, moved, 4));
    hex("munmap", CALL(215, moved, 0x10000, 0));
    hex("munmap unaligned", CALL(215, moved + 1, 0x10000, 0));

    hex("read", CALL(63, 0, buffer, 4));
    CALL(64, 1, buffer, 4);
    hex("read from a bad file", CALL(63, 99, buffer, 4));
    hex("read to a bad address", CALL(63, 0, 8, 4));
    hex("write from a bad address", CALL(64, 1, 8, 4));
    hex("pipe", CALL(59, pipe, 0, 0));
    struct { const char *at; word n; } out[3] = { { "abc", 3 }, { "", 0 }, { "defg", 4 } };
    hex("writev", CALL(66, pipe[1], out, 3));
    struct { char *at; word n; } in[2] = { { buffer, 2 }, { buffer + 10, 20 } };
    hex("readv", CALL(65, pipe[0], in, 2));
    CALL(64, 1, buffer, 2);
    CALL(64, 1, buffer + 10, 5);
    hex("\nseek on a pipe", CALL(62, pipe[0], 0, 1));
    hex("close", CALL(57, pipe[1], 0, 0));
    hex("close again", CALL(57, pipe[1], 0, 0));
    hex("read at the end", CALL(63, pipe[0], buffer, 4));
    hex("dup", CALL(23, pipe[0], 0, 0) - pipe[1]);
    hex("dup3 same", CALL(24, 1, 1, 0));
    hex("dup3", CALL(24, 1, 9, 0));
    CALL(64, 9, "nine\n", 5);
    hex("fcntl flags", CALL(25, pipe[0], 3, 0));
    hex("fcntl cloexec", CALL(25, 9, 2, 1));
    hex("fcntl cloexec", CALL(25, 9, 1, 0));
    hex("open", call(56, -100, (word)"/nonexistent/file", 0, 0, 0, 0));
    hex("open bad path", call(56, -100, 16, 0, 0, 0, 0));
    hex("open bad directory", call(56, 55, (word)"x", 0, 0, 0, 0));
    hex("ioctl", CALL(29, pipe[0], 0x5401, buffer));
    hex("kill nobody", CALL(129, 0x3ffffff, 0, 0));
    hex("kill badly", CALL(129, 0, 65, 0));
    hex("futex changed", CALL(98, buffer, 0, 0x7f7f7f7f));
    hex("futex wake", CALL(98, buffer, 1, 1));
    hex("clock", CALL(113, 99, buffer, 0));
    hex("clock", CALL(113, 1, 8, 0));
    hex("clock", CALL(113, 1, buffer, 0));
    hex("name too long", call(48, -100, heap - 1, 0, 0, 0, 0) ? 1 : 0);
    CALL(425, 0, 0, 0); /* io_uring_setup */
    hex("no such call", CALL(999, 0, 0, 0));
    CALL(93, 0x1ff, 0, 0);
}
