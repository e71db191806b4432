/* Statements and macros. */
#include "tests/unit/gguf/jinja/jinja_cases.h"

#include <criterion/criterion.h>

Test(jinja_statements, statements_scope_their_variables)
{
    static const struct jinja_case cases[] = {
        {"{% set x = 1 %}{{ x }}{% set x, y = 2, 3 %}{{ x }}{{ y }}{% set (a, b) = \"pq\" %}{{ a "
         "}}{{ b }}",
         "123pq", 0},
        {"{% set x %}a{{ 1 }}{% endset %}[{{ x }}]{% set y | upper | trim %} b {% endset %}[{{ y "
         "}}]",
         "[a1][B]", 0},
        {"{% set ns = namespace(a=1, b=\"x\") %}{% set ns.c = 3 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ "
         "ns.d is defined }}",
         "1x3False", 0},
        {"{% set ns = namespace({\"a\": 5}) %}{{ ns.a }}{% for i in l %}{% set ns.a = ns.a + i "
         "%}{% endfor %}{{ ns.a }}",
         "511", 0},
        {"{% if 0 %}a{% elif 0 %}b{% elif 1 %}c{% else %}d{% endif %}{% if 0 %}{% else %}e{% endif "
         "%}{% if \"\" or [] or {} or none %}x{% endif %}",
         "ce", 0},
        {"{% for i in l %}{{ loop.index }}{{ loop.index0 "
         "}}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem "
         "}};{% endfor %}",
         "10TrueFalse31;21FalseFalse332;32FalseTrue31;", 0},
        {"{% for i in [] %}a{% else %}b{% endfor %}{% for i in [1] %}a{% else %}b{% endfor %}",
         "ba", 0},
        {"{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor "
         "%}",
         "b=1,A=2,items=[7],bAitems", 0},
        {"{% for i in range(10) if i is odd %}{{ loop.index }}:{{ i }}{% if not loop.last %},{% "
         "endif %}{% endfor %}",
         "1:1,2:3,3:5,4:7,5:9", 0},
        {"{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break "
         "%}{% endif %}{{ i }}{% endfor %}",
         "0134", 0},
        {"{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123", 0},
        {"{% for c in \"a\303\251\" %}[{{ c }}]{% endfor %}{% for i in u %}x{% else %}empty{% "
         "endfor %}",
         "[a][\303\251]empty", 0},
        {"{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor "
         "%}",
         "1231 1232 1233 ", 0},
        {"{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "4231", 0},
        {"{% filter upper %}a{{ \"b\" }}{% endfilter %}{% filter replace(\"a\", \"b\")|upper "
         "%}aa{% endfilter %}",
         "ABBB", 0},
        {"{% generation %}x{% set q = 1 %}{% endgeneration %}{{ q is defined }}", "xFalse", 0},
        {"{% for i in l if i > 9 %}{% else %}none{% endfor %}", "none", 0},
        {"{% if 1: %}a{% endif %}", "a", 0},
        {"{% for i in l|sort %}{{ i }}{% endfor %}{% for p in people if p.age > 10 %}{{ p.name "
         "}}{% endfor %}",
         "123BoCy", 0},
        {"{% set ns = namespace(x=0) %}{% for i in l if ns.x < 3 %}{% set ns.x = ns.x + i %}{{ i "
         "}}{% endfor %}",
         "3", 0},
        {"{% for i in (1, 2) %}{{ i }}{% endfor %}{% for i in 1, 2 %}{{ i }}{% endfor %}", "1212",
         0},
        {"{% set x = 5 %}{% if true %}{% set x = 6 %}{% endif %}{{ x }}", "6", 0},
        {"{% for x in l %}{% if loop.first %}{% set z = 1 %}{% endif %}{{ z is defined }}{% endfor "
         "%}",
         "TrueFalseFalse", 0},
        {"{% set ns = namespace() %}{% set ns.l = [] %}{% for i in l %}{% set ns.l = ns.l + [i] "
         "%}{% endfor %}{{ ns.l }}",
         "[3, 1, 2]", 0},
        {"{{ self is defined }}", "True", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_statements, macros_take_arguments)
{
    static const struct jinja_case cases[] = {
        {"{% macro m(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) "
         "}}{{ m() }}",
         "[12][13][54][2]", 0},
        {"{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(7) }}", "7", 0},
        {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in{% endcall %}", "<in>", 0},
        {"{% macro m(x) %}{% for i in x %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% "
         "call(a, b) m(l) %}({{ a }}{{ b }}){% endcall %}",
         "(31)(12)(23)", 0},
        {"{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
         "3210", 0},
        {"{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{{ x "
         "}}",
         "151", 0},
        {"{% macro m() %}{{ z is defined }}{% endmacro %}{% for z in l %}{{ m() }}{% endfor %}",
         "FalseFalseFalse", 0},
        {"{% macro m() %}a{% endmacro %}{{ m() ~ \"b\" }}{{ m()|upper }}{{ m() + \"c\" }}{{ m.name "
         "}}",
         "abAacm", 0},
        {"{% for i in l %}{% macro q() %}{{ i }}{% endmacro %}{{ q() }}{% endfor %}", "312", 0},
        {"{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(none) }}", "FalseTrue", 0},
        {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "B", 0},
        {"{% macro m(x, y) %}{{ x }}{{ y }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{\"x\": 3, \"y\": "
         "4}) }}",
         "1234", 0},
        {"{% macro m(caller=none) %}{{ caller is none }}{% endmacro %}{{ m() }}", "True", 0},
        {"{% macro m(l=[1]) %}{{ l }}{% endmacro %}{{ m() }}{{ m(l) }}", "[1][3, 1, 2]", 0},
        {"{% macro a(x) %}{% if x %}{{ x.v }}{% for y in x.c %}{{ a(y) }}{% endfor %}{% endif %}{% "
         "endmacro %}{{ a(tree[0]) }}",
         "1234", 0},
        {"{% macro m() %}\n  x\n{% endmacro %}[{{ m() }}]", "[  x\n]", 0},
        {"{{ m() if m is defined else \"later\" }}{% macro m() %}M{% endmacro %}{{ m() }}",
         "laterM", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}
