/* Appends lines to a file, and reads them through a second descriptor that it has opened under the same name. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 2000 };

int main(int argc, char **argv) {
    int log = open(argv[argc - 1], O_WRONLY | O_CREAT | O_APPEND, 0600), reader = open(argv[argc - 1], O_RDONLY);
    for (int line = 0; line < LINES; line++) {
        char text[32], seen[32] = "";
        int bytes = snprintf(text, sizeof text, "line %d\n", line);
        if (write(log, text, bytes) != bytes || read(reader, seen, sizeof seen) != bytes || strcmp(text, seen) != 0)
            return 1;
    }
    return 0;
}
