// Scales an array on two CMGs. The vector sets its elements to 0 on the thread that makes it, so that all pages are on its CMG. -DCURED leaves
// the elements as they are when the vector is made: the threads that use them set them, each on its own CMG.
#include <cstdio>
#include <memory>
#include <vector>

#include "fxscope.h"

constexpr long ELEMENTS = 3 << 20;

template <class T> struct Untouched : std::allocator<T> {
    template <class U> struct rebind { using other = Untouched<U>; };
    template <class U> void construct(U *) {}
};

#ifdef CURED
using Array = std::vector<double, Untouched<double>>;
#else
using Array = std::vector<double>;
#endif

int main()
{
    Array array(ELEMENTS);
    double *a = array.data();
    #pragma omp parallel for
    for (long i = 0; i < ELEMENTS; i++)
        a[i] = 1;

    FXSCOPE_BEGIN("scale");
    for (int pass = 0; pass < 2; pass++) {
        #pragma omp parallel for
        for (long i = 0; i < ELEMENTS; i++)
            a[i] *= 2;
    }
    FXSCOPE_END("scale");
    std::printf("%.0f %.0f\n", a[0], a[ELEMENTS - 1]);
    return a[ELEMENTS / 2] != 4;
}
