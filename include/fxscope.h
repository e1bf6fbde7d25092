/* For programs that are measured with fxscope: marks of regions, and sectors of the caches.
 *
 * Marks: what is counted between FXSCOPE_BEGIN("name") and FXSCOPE_END("name") is a region of that name in reports.
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
 *
 * Sectors: data that are reused keep their part of a cache while others stream through. A sector has at most a number of ways of each
 * set, and a pointer says to which sector its accesses belong (A64FX specification, HPC extension 1.1 and 1.2):
 *
 *     fxscope_sector_l2_ways(4, 10);                       ten ways of L2 for sector 1, four for sector 0
 *     const double *reused = fxscope_sector_assign(b, 1);  b through this pointer is in sector 1
 *     ...
 *     fxscope_sector_restore();
 *
 * Compile include/fxscope_sector.c with the program. Where processor or operating system have no sectors for programs, the calls
 * change nothing. Pass only untagged pointers to the system and to `free`. docs/sector-cache.md has more.
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

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the most ways of each sector: of the L1 data cache of the core on which the thread runs (four sectors, 0 to 4 ways each), and of
 * the L2 cache of its CMG (two sectors, 0 to 16 ways each; where the CMG has an assistant core, 14 in all are usable). Each returns 1 if
 * they are set, 0 if programs cannot set them here, and -1 if a number is wrong. */
int fxscope_sector_l1_ways(int ways0, int ways1, int ways2, int ways3);
int fxscope_sector_l2_ways(int ways0, int ways1);

/* Sets the ways that the registers had before the thread first changed them. */
void fxscope_sector_restore(void);

/* Returns a pointer to the same data whose accesses belong to a sector of L1, 0 to 3, and in L2 to sector 0 or 1 (sectors 2 and 3 of L1
 * are 0 and 1 there). Another number returns the pointer unchanged, as do other processors. */
void *fxscope_sector_pointer(const void *data, int sector);

#ifdef __cplusplus
}
#endif

/* The same with the type of the pointer or array. */
#define fxscope_sector_assign(data, sector) ((__typeof__(&(data)[0]))fxscope_sector_pointer((data), (sector)))

#endif
