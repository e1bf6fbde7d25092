#include "system.h"

#include "text.h"

char **environment;

enum { AT_FDCWD = -100, MOST_PATH = 4096 };

long open_to_read(const char *path)
{
    return call(CALL_OPENAT, AT_FDCWD, (long)path, 0, 0, 0, 0);
}

long read_file(const char *path, char *text, size_t room)
{
    long file = open_to_read(path);
    if (file < 0)
        return file;
    size_t length = 0;
    long got = 1;
    while (got > 0 && length < room - 1) {
        got = call3(CALL_READ, file, (long)(text + length), (long)(room - 1 - length));
        length += got > 0 ? (size_t)got : 0;
    }
    call1(CALL_CLOSE, file);
    text[length] = 0;
    return got < 0 ? got : (long)length;
}

const char *variable(const char *name)
{
    for (char **entry = environment; *entry; entry++) {
        const char *rest = after_prefix(*entry, name);
        if (rest && *rest == '=')
            return rest + 1;
    }
    return NULL;
}

const char *error_text(long error)
{
    static const struct {
        int number;
        const char *text;
    } texts[] = {
        {E_PERM, "Operation not permitted"}, {E_NOENT, "No such file or directory"}, {E_SRCH, "No such process"},
        {E_IO, "Input/output error"},        {E_2BIG, "Argument list too long"},     {E_NOEXEC, "Exec format error"},
        {E_ACCES, "Permission denied"},      {E_NOTDIR, "Not a directory"},          {E_ISDIR, "Is a directory"},
        {E_INVAL, "Invalid argument"},       {E_MFILE, "Too many open files"},
    };
    for (unsigned i = 0; i < COUNT_OF(texts); i++)
        if (texts[i].number == error)
            return texts[i].text;
    return "the kernel refused it";
}

/* Executes the file `folder/name`, where the folder has `length` bytes; an empty one is the current directory. */
static long execute_in(const char *folder, size_t length, char **command)
{
    static char path[MOST_PATH];
    size_t name = length_of(command[0]);
    if (length + name + 2 > sizeof path)
        return E_NOENT;
    size_t at = 0;
    for (; at < length; at++)
        path[at] = folder[at];
    if (length)
        path[at++] = '/';
    for (size_t i = 0; i <= name; i++)
        path[at + i] = command[0][i];
    return -call3(CALL_EXECVE, (long)path, (long)command, (long)environment);
}

long execute(char **command)
{
    if (find_char(command[0], '/'))
        return -call3(CALL_EXECVE, (long)command[0], (long)command, (long)environment);
    const char *folders = variable("PATH");
    long error = E_NOENT;
    for (const char *folder = folders ? folders : "/bin:/usr/bin"; folder;) {
        const char *end = find_char(folder, ':');
        size_t length = end ? (size_t)(end - folder) : length_of(folder);
        long now = execute_in(folder, length, command);
        if (now != E_NOENT && now != E_NOTDIR)
            error = now;
        folder = end ? end + 1 : NULL;
    }
    return error;
}
