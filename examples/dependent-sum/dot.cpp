// A dot product. The compiler uses vectors (-ffast-math), but adds all products to one vector of sums: each addition waits for the one
// before. -DCURED has eight sums, of an eighth of the elements each.
#include <cstdio>
#include <vector>

#include "fxscope.h"

[[gnu::noipa]] static double dot(const double *a, const double *b, long n)
{
#ifdef CURED
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    long m = n / 8;
    for (long i = 0; i < m; i++) {
        s0 += a[i] * b[i], s1 += a[i + m] * b[i + m];
        s2 += a[i + 2 * m] * b[i + 2 * m], s3 += a[i + 3 * m] * b[i + 3 * m];
        s4 += a[i + 4 * m] * b[i + 4 * m], s5 += a[i + 5 * m] * b[i + 5 * m];
        s6 += a[i + 6 * m] * b[i + 6 * m], s7 += a[i + 7 * m] * b[i + 7 * m];
    }
    return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
#else
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
#endif
}

int main()
{
    std::vector<double> a(2048, 2), b(2048, 0.5);
    double sum = 0;
    FXSCOPE_BEGIN("dot");
    for (int pass = 0; pass < 50; pass++)
        sum += dot(a.data(), b.data(), 2048);
    FXSCOPE_END("dot");
    std::printf("sum %.0f\n", sum);
    return sum != 50 * 2048;
}
