/*
 * What the regular expressions of pre-tokenizers are made of. A pattern matches at a place or does
 * not; what is between two matches is a word as well.
 */
#ifndef GGUFS_RUNNER_WORD_PATTERNS_H
#define GGUFS_RUNNER_WORD_PATTERNS_H

#include "contrib/runner/tokenizer/text_scan.h"

/* The end of the match at `at`, or `at` itself if there is none. */
typedef size_t run_match(struct run_scan *scan, size_t at, const void *rule);

struct run_pattern {
    run_match *match;
    const void *rule; /* of the type that `match` wants */
};

/* ---- a run of characters of a set, as in [...]{min,max} ---- */

struct run_range {
    uint32_t first, last;
};

enum run_lead { RUN_LEAD_NONE, RUN_LEAD_SPACE, RUN_LEAD_ANY_SPACE };

struct run_set_rule {
    unsigned classes;               /* any of these, or */
    const char *ascii;              /* any of these, or */
    const struct run_range *ranges; /* any of these */
    size_t n_ranges;
    uint32_t min, max;  /* characters; a max of 0: any number */
    enum run_lead lead; /* what may stand before them: " ?" or "\s?" */
    bool is_negated;    /* [^...] */
};

run_match run_match_set; /* rule: struct run_set_rule */

/* ---- words, as in the patterns of GPT-2 and all that came from it ---- */

enum run_letters {
    RUN_LETTERS_AFTER_SPACE, /*  ?\p{L}+ */
    RUN_LETTERS_PREFIXED,    /* [^\r\n\p{L}\p{N}]?\p{L}+ */
    RUN_LETTERS_AND_MARKS,   /* [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ */
    RUN_LETTERS_CASED,       /* the same in two parts, see run_match_words */
    RUN_LETTERS_CASED_NO_HAN,
    RUN_LETTERS_JOINED, /* [^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+ */
    RUN_LETTERS_TAGGED, /* [!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ */
};

enum run_contractions {
    RUN_CONTRACTIONS_NONE,
    RUN_CONTRACTIONS_FIRST,          /* 's|'t|'re|'ve|'m|'ll|'d before anything else */
    RUN_CONTRACTIONS_FIRST_ANY_CASE, /* (?i:...) */
    RUN_CONTRACTIONS_BEHIND,         /* (?i:...)? behind letters */
};

enum run_numbers {
    RUN_NUMBERS_NONE,
    RUN_NUMBERS_ONE,         /* \p{N} */
    RUN_NUMBERS_THREE,       /* \p{N}{1,3} */
    RUN_NUMBERS_ALL,         /* \p{N}+ */
    RUN_NUMBERS_AFTER_SPACE, /*  ?\p{N}+ */
};

/* What may follow punctuation. */
enum run_tail {
    RUN_TAIL_NONE,
    RUN_TAIL_LINE_ENDS,           /* [\r\n]* */
    RUN_TAIL_LINE_ENDS_AND_SLASH, /* [\r\n/]* */
    RUN_TAIL_A_LINE_END_OR_SLASH, /* [\r\n/]? */
};

struct run_words_rule {
    enum run_contractions contractions;
    enum run_letters letters;
    enum run_numbers numbers;
    unsigned no_punctuation; /* classes that  ?[^...]+ leaves out; 0: it is  ?[\p{P}\p{S}]+ */
    enum run_tail tail;
    bool has_line_ends;   /* \s*[\r\n]+ */
    bool is_space_halved; /* \s{512}(?!\S)|\s{256}(?!\S)|...|\s{1,2}(?!\S)|\s{1} */
    bool has_han;         /* [\p{Han}]+ first */
};

/*
 * Alternatives in the order of the rule's members, and last \s+(?!\S)|\s+. RUN_LETTERS_CASED is
 * [^\r\n\p{L}\p{N}]?U*L+|[^\r\n\p{L}\p{N}]?U+L* with U and L the classes RUN_UPPER and RUN_LOWER.
 */
run_match run_match_words; /* rule: struct run_words_rule */

/* ---- others; rule: NULL ---- */

run_match run_match_last_spaces;       /* \s+$ */
run_match run_match_digits_from_right; /* \p{N}: groups of three, the first is what is left over */
run_match run_match_number_from_right; /* \d{1,3}(?=(?:\d{3})*\b): the same if a word ends there */

/* What tokenizer.json of Chameleon has before its words. */
run_match run_match_sentinel; /* <sentinel:[0-9]+> */
run_match run_match_image;    /* IMGIMG[A-I]{1,4}Z */
run_match run_match_indent;   /* [\t\n]|    |   */

#endif
