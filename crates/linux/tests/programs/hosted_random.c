// Random bytes from the devices.

#include <stdio.h>

int main(void) {
    unsigned char bytes[2][16];
    const char *names[] = {"/dev/random", "/dev/urandom"};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(names[i], "r");
        if (!file || fread(bytes[i], 1, 16, file) != 16)
            return 1;
        for (int j = 0; j < 16; j++)
            printf("%02x", bytes[i][j]);
        puts("");
    }
    return 0;
}
