#include "options.h"

#include "system.h"
#include "text.h"

/* Reads the value of an option with the given text for messages; `rest` is what follows in the same argument, or NULL. */
static int with_value(struct options *o, const struct option *option, const char *rest, const char *shown)
{
    o->value = rest;
    if (option->has_value && !rest) {
        if (o->at >= o->argc) {
            COMPLAIN(o->command, ": option ", shown, " needs a value");
            return WRONG_OPTION;
        }
        o->value = o->argv[o->at++];
    }
    return option->letter;
}

static int next_letter(struct options *o)
{
    char shown[] = {'-', *o->letters++, 0};
    for (unsigned i = 0; i < o->count; i++) {
        const struct option *option = &o->known[i];
        if (option->letter != shown[1])
            continue;
        const char *rest = *o->letters ? o->letters : NULL;
        if (option->has_value || !rest)
            o->letters = NULL;
        return with_value(o, option, option->has_value ? rest : NULL, shown);
    }
    COMPLAIN(o->command, ": unknown option ", shown);
    return WRONG_OPTION;
}

/* Returns whether `given`, up to `length`, is a word or its beginning. */
static bool begins(const char *word, const char *given, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!word[i] || word[i] != given[i])
            return false;
    return true;
}

static int next_word(struct options *o, const char *shown)
{
    const char *given = shown + 2, *equals = find_char(given, '=');
    size_t length = equals ? (size_t)(equals - given) : length_of(given);
    const struct option *found = NULL;
    unsigned matches = 0;
    for (unsigned i = 0; i < o->count; i++) {
        const struct option *option = &o->known[i];
        if (!option->word || !begins(option->word, given, length))
            continue;
        bool is_exact = length_of(option->word) == length;
        found = option;
        matches = is_exact ? 1 : matches + 1;
        if (is_exact)
            break;
    }
    if (matches != 1) {
        COMPLAIN(o->command, matches ? ": option " : ": unknown option ", shown, matches ? " is ambiguous" : "");
        return WRONG_OPTION;
    }
    if (equals && !found->has_value) {
        COMPLAIN(o->command, ": option --", found->word, " takes no value");
        return WRONG_OPTION;
    }
    return with_value(o, found, equals ? equals + 1 : NULL, shown);
}

int next_option(struct options *o)
{
    if (o->letters)
        return next_letter(o);
    if (o->at >= o->argc || o->argv[o->at][0] != '-' || !o->argv[o->at][1])
        return NO_MORE_OPTIONS;
    const char *argument = o->argv[o->at++];
    if (equal(argument, "--"))
        return NO_MORE_OPTIONS;
    if (argument[1] == '-')
        return next_word(o, argument);
    o->letters = argument + 1;
    return next_letter(o);
}
