/* Loops the compiler turns into SVE code, and the vector length as reported by the system. */
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>

#define N 1003
static double a[N], b[N], c[N];
static float f[N];
static int32_t k[N];
static uint8_t bytes[N];

static unsigned long vector_length(void)
{
    unsigned long n;
    __asm__ volatile("rdvl %0, #1" : "=r"(n));
    return n;
}

int main(void)
{
    printf("vector length %lu %d\n", vector_length(), prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK);
    for (int i = 0; i < N; i++) {
        b[i] = i * 0.25;
        c[i] = N - i;
        k[i] = (i * 7919) % N;
        bytes[i] = (uint8_t)(i * 31);
    }
    for (int i = 0; i < N; i++)
        a[i] = b[i] + 3.0 * c[i];
    for (int i = 0; i < N; i++)
        f[i] = (float)a[k[i]] * 0.5f;
    double largest = 0;
    long positive = 0, sum = 0;
    uint32_t mixed = 0;
    for (int i = 0; i < N; i++) {
        largest = a[i] > largest ? a[i] : largest;
        positive += f[i] > 700.0f;
        sum += k[i] & bytes[i];
        mixed ^= (uint32_t)bytes[i] << (i & 15);
    }
    for (int i = 0; i < N; i++)
        if (a[i] > 2000)
            c[k[i]] = a[i] / b[i + 0];
    printf("%.17g %ld %ld %u %.17g %.9g\n", largest, positive, sum, mixed, c[500], (double)f[77]);
    printf("set to 16: %d", prctl(PR_SVE_SET_VL, 16) & PR_SVE_VL_LEN_MASK);
    printf(", now %lu\n", vector_length());
    double total = 0;
    for (int i = 0; i < N; i++)
        total += a[i] * b[i];
    printf("%.17g\n", total);
    return 0;
}
