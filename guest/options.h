/* Options as getopt_long(3) reads them: letters that may stand together, words that may be shortened, values behind them or behind
 * an equals sign. Options end at the first other argument, or at `--`. */
#ifndef GUEST_OPTIONS_H
#define GUEST_OPTIONS_H

/* One option. Both names mean the same; either may be missing. */
struct option {
    int letter;       /* what `next_option` returns, also if the option has no letter of its own (then above 255) */
    const char *word; /* without the two dashes, or NULL */
    int has_value;
};

/* The state of reading. */
struct options {
    const char *command; /* for messages */
    const struct option *known;
    unsigned count;
    int argc;
    char **argv;
    int at;             /* the next argument */
    const char *letters; /* the rest of an argument with several letters, or NULL */
    const char *value;   /* of the option returned last */
};

/* What `next_option` returns apart from letters. */
enum { NO_MORE_OPTIONS = 0, WRONG_OPTION = -1 };

/* Returns the next option's letter. A wrong one is reported to standard error. */
int next_option(struct options *options);

#endif
