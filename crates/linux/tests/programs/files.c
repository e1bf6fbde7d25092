/* Files and directories below the directory named by the first argument. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) != 0)
        return 1;
    char here[4096];
    printf("in the right place: %d\n", getcwd(here, sizeof here) && strcmp(here, argv[1]) == 0);
    FILE *f = fopen("data.txt", "w+");
    for (int i = 0; i < 20000; i++)
        fprintf(f, "line %d\n", i);
    printf("length %ld\n", ftell(f));
    fseek(f, 1000, SEEK_SET);
    char line[100];
    printf("%s", fgets(line, sizeof line, f) ? line : "none\n");
    fseek(f, -6, SEEK_END);
    printf("%s", fgets(line, sizeof line, f) ? line : "none\n");
    fclose(f);

    struct stat s;
    printf("stat %d %lld %o %d\n", stat("data.txt", &s), (long long)s.st_size, s.st_mode & 0170000, (int)s.st_nlink);
    printf("missing %d %d\n", stat("missing", &s), errno == ENOENT);
    printf("access %d %d\n", access("data.txt", R_OK), access("missing", F_OK));
    int fd = open("data.txt", O_RDWR | O_APPEND);
    printf("pwrite %zd pread %zd %.4s\n", pwrite(fd, "XXXX", 4, 0), pread(fd, line, 4, 0), line);
    printf("flags %o\n", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
    printf("truncate %d\n", ftruncate(fd, 100000));
    printf("fstat %d %lld\n", fstat(fd, &s), (long long)s.st_size);
    char *map = mmap(NULL, 100000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    map[5] = '!';
    printf("map %.8s|%.8s\n", map, map + 65536);
    printf("read-only map %d\n", mmap(NULL, 100000, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
    munmap(map, 100000);
    close(fd);
    printf("exclusive %d %d\n", open("data.txt", O_CREAT | O_EXCL | O_WRONLY, 0600), errno == EEXIST);
    printf("not a directory %d %d\n", open("data.txt", O_DIRECTORY), errno == ENOTDIR);

    printf("mkdir %d %d\n", mkdir("dir", 0755), mkdir("dir", 0755));
    printf("rename %d\n", rename("data.txt", "dir/moved.txt"));
    printf("symlink %d %zd %.9s\n", symlink("moved.txt", "dir/link"), readlink("dir/link", line, 100), line);
    printf("nofollow %d %d\n", open("dir/link", O_NOFOLLOW), errno == ELOOP);
    for (int i = 0; i < 300; i++) {
        snprintf(line, sizeof line, "dir/file-with-a-rather-long-name-%03d", i);
        close(open(line, O_CREAT | O_WRONLY, 0644));
    }
    DIR *d = opendir("dir");
    char *names[400];
    int n = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            if (n % 100 == 0)
                printf("type %d\n", e->d_type == DT_REG || e->d_type == DT_LNK);
            names[n++] = strdup(e->d_name);
        }
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, by_name);
    printf("%d entries: %s %s %s\n", n, names[0], names[150], names[n - 1]);
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof line, "dir/%s", names[i]);
        unlink(line);
    }
    printf("rmdir %d\n", rmdir("dir"));
    int p[2];
    printf("pipe %d %zd", pipe(p), write(p[1], "through", 7));
    printf(" %zd %.7s\n", read(p[0], line, 100), line);
    close(p[0]);
    printf("exit\n");
    fflush(stdout);
    write(p[1], "nobody reads", 12); /* SIGPIPE */
    return 0;
}
