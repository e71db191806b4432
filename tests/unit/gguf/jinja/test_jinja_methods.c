/* Methods, and the two languages of formats. */
#include "tests/unit/gguf/jinja/jinja_cases.h"

#include <criterion/criterion.h>

Test(jinja_methods, methods_of_strings_and_dicts)
{
    static const struct jinja_case cases[] = {
        {"{{ \"aBc\".upper() }}{{ \"aBc\".lower() }}{{ \"abc def\".title() }}{{ "
         "\"aBC\".capitalize() "
         "}}",
         "ABCabcAbc DefAbc", 0},
        {"[{{ \"  a \".strip() }}][{{ \"  a \".lstrip() }}][{{ \"  a \".rstrip() }}][{{ "
         "\"xyaxy\".strip(\"xy\") }}][{{ \"xyaxy\".lstrip(\"yx\") }}][{{ \"xyaxy\".rstrip(\"y\") "
         "}}][{{ \"a\\n\".strip(\"\\n\") }}]",
         "[a][a ][  a][a][axy][xyax][a]", 0},
        {"{{ \" a  b \".split() }}{{ \"a,b,,c\".split(\",\") }}{{ \"a,b,c\".split(\",\", 1) }}{{ "
         "\"a b c\".split(none, 1) }}{{ \"a,b,c\".rsplit(\",\", 1) }}{{ \" a b  c \".rsplit(none, "
         "1) }}{{ \"\".split(\",\") }}{{ \"\".split() }}{{ \"aXXbXXc\".split(\"XX\") }}{{ \"a b "
         "c\".split(maxsplit=1) }}{{ \" a  b  c \".split(none, 2) }}{{ \"abc\".split(\"\") if "
         "false }}",
         "['a', 'b']['a', 'b', '', 'c']['a', 'b,c']['a', 'b c']['a,b', 'c'][' a b', "
         "'c'][''][]['a', 'b', 'c']['a', 'b c']['a', 'b', 'c ']",
         0},
        {"{{ \"a\\nb\\r\\nc\\n\".splitlines() }}{{ \"a\\nb\".splitlines(true) }}",
         "['a', 'b', 'c']['a\\n', 'b']", 0},
        {"{{ \"abcabc\".find(\"c\") }} {{ \"abcabc\".rfind(\"c\") }} {{ \"abc\".find(\"x\") }} {{ "
         "\"abcabc\".find(\"a\", 1) }} {{ \"abcabc\".find(\"c\", 0, 2) }} {{ "
         "\"\303\251ab\".find(\"b\") }} {{ \"\303\251ab\303\251\".rfind(\"\303\251\") }} {{ "
         "\"abc\".find(\"\") }} {{ \"abc\".rfind(\"\") }}",
         "2 5 -1 3 -1 2 3 0 3", 0},
        {"{{ \"abc\".startswith(\"a\") }} {{ \"abc\".endswith(\"bc\") }} {{ "
         "\"abc\".startswith((\"x\", \"a\")) }} {{ \"abc\".startswith(\"b\", 1) }} {{ "
         "\"abc\".endswith(\"b\", 0, 2) }} {{ \"\".startswith(\"\") }} {{ \"a\".endswith(\"\") }}",
         "True True True True True True True", 0},
        {"{{ \"aaa\".replace(\"a\", \"b\") }}{{ \"aaa\".replace(\"a\", \"b\", 1) }}{{ "
         "\"ab\".replace(\"\", \"-\") }}{{ \"ab\".replace(\"\", \"-\", 2) }}{{ "
         "\"abc\".replace(\"bc\", \"\") }}",
         "bbbbaa-a-b--a-ba", 0},
        {"{{ \",\".join([\"a\", \"b\"]) }}{{ \"\".join(\"abc\") }}{{ \"-\".join([]) }}", "a,babc",
         0},
        {"{{ \"{} {}\".format(1, \"b\") }} {{ \"{0}{1}{0}\".format(\"a\", \"b\") }} {{ "
         "\"{x:d}\".format(x=5) }} {{ \"{{}}\".format() }} {{ \"{}\".format(1.0) }} {{ "
         "\"{}\".format([1]) }} {{ \"{}\".format(none) }}",
         "1 b aba 5 {} 1.0 [1] None", 0},
        {"{{ \"%5s|%05d|%.2f|%%|%5.1f\" % (\"a\", 42, 3.14159, 2.25) }} {{ \"%s\" % "
         "[1] }} {{ \"%s\" % none }} {{ \"%d\" % 3.9 }} {{ \"%s %s\" % (\"a\", [1, \"b\"]) }} {{ "
         "\"%4d|\" % 5 }} {{ \"%d\" % 9223372036854775807 }} {{ \"%d%f\" % (-7, true) }}",
         "    a|00042|3.14|%|  2.2 [1] None 3 a [1, 'b']    5| 9223372036854775807 -71.000000", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}
