/* Text of the measuring program: the result file, messages, files of the system. */
#include "collect.h"

long linux_write(int fd, const void *bytes, unsigned long count);

enum { READ = 63, RENAME_AT = 38, SYNC = 82, UNLINK_AT = 35 };
enum { STANDARD_OUTPUT = 1, STANDARD_ERROR = 2, CURRENT_FOLDER = -100 };
enum { WRITE_ONLY = 1, CREATE = 0100, TRUNCATE = 01000 };
enum { PATH_BYTES = 4096 };

static char text[4 << 20];
static size_t length;

static void put_byte(char c)
{
    if (length == sizeof text)
        cannot_run("the result is too long");
    text[length++] = c;
}

void put(const char *more)
{
    while (*more)
        put_byte(*more++);
}

void put_decimal(uint64_t value)
{
    char digits[20];
    unsigned n = 0;
    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n)
        put_byte(digits[--n]);
}

/* A string of JSON. Bytes that are not printable ASCII become question marks. */
void put_quoted(const char *more)
{
    put_byte('"');
    for (; *more; more++) {
        if (*more == '"' || *more == '\\')
            put_byte('\\');
        put_byte(*more >= ' ' && *more <= '~' ? *more : '?');
    }
    put_byte('"');
}

static bool write_all(int fd)
{
    for (size_t done = 0; done < length;) {
        long written = linux_write(fd, text + done, length - done);
        if (written <= 0)
            return false;
        done += (size_t)written;
    }
    return true;
}

bool write_text(const char *path)
{
    char part[PATH_BYTES];
    unsigned n = 0;
    if (!path)
        return write_all(STANDARD_OUTPUT);
    for (; path[n] && n < sizeof part - sizeof ".part"; n++)
        part[n] = path[n];
    if (path[n])
        return false;
    for (const char *end = ".part"; *end; end++)
        part[n++] = *end;
    part[n] = 0;
    long fd = linux_call(CURRENT_FOLDER, (long)part, WRITE_ONLY | CREATE | TRUNCATE, 0666, 0, 0, OPENAT);
    if (fd < 0)
        return false;
    bool whole = write_all((int)fd) && linux_call(fd, 0, 0, 0, 0, 0, SYNC) == 0;
    whole &= linux_call(fd, 0, 0, 0, 0, 0, CLOSE) == 0;
    whole = whole && linux_call(CURRENT_FOLDER, (long)part, CURRENT_FOLDER, (long)path, 0, 0, RENAME_AT) == 0;
    if (!whole)
        linux_call(CURRENT_FOLDER, (long)part, 0, 0, 0, 0, UNLINK_AT);
    return whole;
}

static size_t text_length(const char *t)
{
    size_t n = 0;
    while (t[n])
        n++;
    return n;
}

void say(const char *what, const char *more)
{
    linux_write(STANDARD_ERROR, PROGRAM ": ", sizeof PROGRAM ": " - 1);
    linux_write(STANDARD_ERROR, what, text_length(what));
    linux_write(STANDARD_ERROR, more, text_length(more));
    linux_write(STANDARD_ERROR, "\n", 1);
}

bool read_text(const char *path, char *into, unsigned room)
{
    long fd = linux_call(CURRENT_FOLDER, (long)path, 0, 0, 0, 0, OPENAT);
    into[0] = 0;
    if (fd < 0)
        return false;
    unsigned n = 0;
    for (long got = 1; got > 0 && n < room - 1; n += got > 0 ? (unsigned)got : 0)
        got = linux_call(fd, (long)(into + n), room - 1 - n, 0, 0, 0, READ);
    linux_call(fd, 0, 0, 0, 0, 0, CLOSE);
    while (n && into[n - 1] == '\n')
        n--;
    into[n] = 0;
    return true;
}
