// OpenBLAS's DGEMM on small integers, whose products are exact in any order. Argument: rows and columns.

#include <stdio.h>
#include <stdlib.h>

void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc);

int main(int argc, char **argv) {
    enum { ROW_MAJOR = 101, PLAIN = 111 };
    int n = argc > 1 ? atoi(argv[1]) : 200;
    double *a = malloc(sizeof *a * n * n), *b = malloc(sizeof *b * n * n), *c = calloc(n * n, sizeof *c);
    if (!a || !b || !c)
        return 1;
    for (int i = 0; i < n * n; i++) {
        a[i] = i * 7 % 13 - 6;
        b[i] = i * 5 % 11 - 5;
    }
    cblas_dgemm(ROW_MAJOR, PLAIN, PLAIN, n, n, n, 2, a, n, b, n, 0, c, n);
    long wrong = 0;
    double checksum = 0;
    for (int i = 0; i < n; i += 17)
        for (int j = 0; j < n; j += 13) {
            double want = 0;
            for (int l = 0; l < n; l++)
                want += 2 * a[i * n + l] * b[l * n + j];
            wrong += want != c[i * n + j];
        }
    for (int i = 0; i < n * n; i++)
        checksum += c[i] * (i % 7 + 1);
    printf("wrong %ld, checksum %.0f\n", wrong, checksum);
    return wrong != 0;
}
