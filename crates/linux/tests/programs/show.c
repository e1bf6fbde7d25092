// Prints files and lists folders.

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static int plain(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        struct stat s;
        printf("== %s\n", argv[i]);
        if (stat(argv[i], &s)) {
            perror(argv[i]);
        } else if (S_ISDIR(s.st_mode)) {
            struct dirent **list;
            int count = scandir(argv[i], &list, plain, alphasort);
            for (int j = 0; j < count; j++)
                puts(list[j]->d_name);
        } else {
            FILE *file = fopen(argv[i], "r");
            for (int c; file && (c = getc(file)) != EOF;)
                putchar(c ? c : '\n');
        }
    }
    return 0;
}
