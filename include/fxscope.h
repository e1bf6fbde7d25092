/* Marks parts of a program for fxscope: what is counted between FXSCOPE_BEGIN("name") and FXSCOPE_END("name") is a region
 * of that name in reports.
 *
 *     #include <fxscope.h>
 *     FXSCOPE_BEGIN("solver");
 *     ...
 *     FXSCOPE_END("solver");
 *
 * Names are string literals without quotes and backslashes. Regions may nest and overlap, and threads may each mark their
 * own. A mark is one instruction, a hint that AArch64 processors pass over as they do NOP, and a note in the file
 * (`.note.stapsdt`), which is kept by `strip` and costs nothing at run time. Tools that know SystemTap's static probes
 * (perf, gdb, bpftrace) find the marks as well, as probes of the providers fxscope_begin and fxscope_end. On other
 * processors marks are empty. Fortran programs use include/fxscope.f90.
 */
#ifndef FXSCOPE_H
#define FXSCOPE_H

#if defined(__aarch64__) && defined(__ELF__)
/* The section group and .stapsdt.base are what readers of the format expect. */
#define FXSCOPE_MARK(provider, name)                                                                                    \
    __asm__ volatile("990: hint #127\n"                                                                                 \
                     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                      \
                     ".balign 4\n"                                                                                      \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                                                 \
                     "991: .asciz \"stapsdt\"\n"                                                                        \
                     "992: .balign 4\n"                                                                                 \
                     "993: .8byte 990b\n"                                                                               \
                     ".8byte _.stapsdt.base\n"                                                                          \
                     ".8byte 0\n"                                                                                       \
                     ".asciz \"" provider "\"\n"                                                                        \
                     ".asciz \"" name "\"\n"                                                                            \
                     ".asciz \"\"\n"                                                                                    \
                     "994: .balign 4\n"                                                                                 \
                     ".popsection\n"                                                                                    \
                     ".ifndef _.stapsdt.base\n"                                                                         \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                            \
                     ".weak _.stapsdt.base\n"                                                                           \
                     ".hidden _.stapsdt.base\n"                                                                         \
                     "_.stapsdt.base: .space 1\n"                                                                       \
                     ".size _.stapsdt.base, 1\n"                                                                        \
                     ".popsection\n"                                                                                    \
                     ".endif\n"                                                                                         \
                     : : : "memory")
#else
#define FXSCOPE_MARK(provider, name) ((void)(provider name))
#endif

/* The region begins, or ends, here. */
#define FXSCOPE_BEGIN(name) FXSCOPE_MARK("fxscope_begin", name)
#define FXSCOPE_END(name) FXSCOPE_MARK("fxscope_end", name)

#endif
