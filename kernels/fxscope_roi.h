/* Marks the region of interest of a program for fxscope.
 *
 * The simulator recognises calls of these two functions by their symbols, so that a program needs no library and runs
 * unchanged elsewhere, where each call costs one `ret`. Include this header in any C or C++ file that is compiled with
 * optimisation, and keep the symbol table (do not strip) when linking.
 */
#ifndef FXSCOPE_ROI_H
#define FXSCOPE_ROI_H

#ifdef __cplusplus
extern "C" {
#endif

/* Weak: several files of one program may include this header. The empty assembly keeps the call, its argument, and the
 * order of memory accesses around it. */
#define FXSCOPE_ROI_MARK __attribute__((weak, noinline))

/* Starts the region called `name` (a constant string; shown in reports). */
FXSCOPE_ROI_MARK void fxscope_roi_begin(const char *name);

/* Ends the region that the last `fxscope_roi_begin` started. */
FXSCOPE_ROI_MARK void fxscope_roi_end(void);

void fxscope_roi_begin(const char *name)
{
    __asm__ volatile("" : : "r"(name) : "memory");
}

void fxscope_roi_end(void)
{
    __asm__ volatile("" : : : "memory");
}

#ifdef __cplusplus
}
#endif

#endif
