/* Text and white space, constants, operators and members. */
#include "tests/unit/gguf/jinja/jinja_cases.h"

#include <criterion/criterion.h>

Test(jinja_language, white_space_is_trimmed_as_in_jinja2)
{
    static const struct jinja_case cases[] = {
        {"a\n {% if 1 %}\n  b\n {%- endif %}  c\n", "a\n  b  c", 0},
        {"x{# c #}\ny{#- d -#}  z", "xyz", 0},
        {"{{ 1 -}}   2 {{- 3 }} ", "123 ", 0},
        {"  {%- set x = 1 +%}\n{{ x }}", "\n1", 0},
        {"{%+ if 1 %} a {%+ endif %}b", " a b", 0},
        {"{% raw %}{{ x }}{% if %}{% endraw %}!", "{{ x }}{% if %}!", 0},
        {"  {% raw -%}  a  {%- endraw %}\nb", "ab", 0},
        {"{{ \"a\" }}\n{{ \"b\" }}\n", "a\nb", 0},
        {"{% if 1 -%}   a   {%- endif %}", "a", 0},
        {"a {#- c #}\nb", "ab", 0},
        {"{%- if 1 %}x{% endif -%}  y", "xy", 0},
        {"{% for i in l %}\n{{ i }}\n{% endfor %}\n", "3\n1\n2\n", 0},
        {"a\n   {#- x -#}\n b", "ab", 0},
        {"\t{% if 1 %}\tt\t{% endif %}\t", "\tt\t\t", 0},
        {"{{ '{{' }}{{ \"}}\" }}{{ '%}' }}", "{{}}%}", 0},
        {"{%if 1%}x{%endif%}", "x", 0},
        {"a{% raw %} b {% endraw %}\nc", "a b c", 0},
        {"{% if true %}{% endif %}\n\nx", "\nx", 0},
        {"{##}a{#-#}b{# - -#} c", "abc", 0},
        {"{% raw %}\n x\n {% endraw %}\n\nz", "\n x\n\nz", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_language, constants_print_as_in_python)
{
    static const struct jinja_case cases[] = {
        {"{{ 1e3 }} {{ 1.5E-3 }} {{ 0 }} {{ 1.5 }}", "1000.0 0.0015 0 1.5", 0},
        {"{{ \"a\\x41\\u00e9\\101\\q\\n'\" 'b\"' }}", "aA\303\251A\\q\n'b\"", 0},
        {"{{ 'a\nb' }}", "a\nb", 0},
        {"{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}", "TrueTrueNoneNoneFalse", 0},
        {"{{ [1, \"a\", [2]] }}{{ (1,) }}{{ () }}{{ (1, 2) }}", "[1, 'a', [2]](1,)()(1, 2)", 0},
        {"{{ {\"a\": 1, 2: [3], none: 4.0} }}", "{'a': 1, 2: [3], None: 4.0}", 0},
        {"{{ 1, 2 }}", "(1, 2)", 0},
        {"{{ [1,2,] }}{{ {\"a\":1,} }}", "[1, 2]{'a': 1}", 0},
        {"{{ 1e16 }} {{ 123456789.0 }} {{ 1e-5 }} {{ 0.0001 }} {{ 1e22 }} {{ 1.0e100 }} {{ 5e-324 "
         "}} {{ 0.1 + 0.2 }} {{ -0.0 }}",
         "1e+16 123456789.0 1e-05 0.0001 1e+22 1e+100 5e-324 0.30000000000000004 -0.0", 0},
        {"{{ 9223372036854775807 }} {{ -9223372036854775807 }}",
         "9223372036854775807 -9223372036854775807", 0},
        {"{{ big }} {{ big|tojson }} {{ [big] }} {{ big is number }}",
         "12345678901234567890 12345678901234567890 [12345678901234567890] True", 0},
        {"{{ {\"a\": {\"b\": [1, {\"c\": none}]}} }}", "{'a': {'b': [1, {'c': None}]}}", 0},
        {"{{ {1: \"a\", 1.0: \"b\", true: \"c\"} }}", "{1: 'c'}", 0},
        {"{{ \"\\U0001F600\" }}{{ \"tab\\tq\\\"\" }}", "\360\237\230\200tab\tq\"", 0},
        {"{{ \"\\a\\b\\f\\v\\0\"|tojson }}", "\"\\u0007\\b\\f\\u000b\\u0000\"", 0},
        {"{{ [\"\\a\\b\\f\\v\\0\\x7f\\xa0\\u200b\\ud7ff\"] }}",
         "['\\x07\\x08\\x0c\\x0b\\x00\\x7f\\xa0\\u200b\\ud7ff']", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_language, operators_bind_and_convert_as_in_jinja2)
{
    static const struct jinja_case cases[] = {
        {"{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 7 / 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7.5 % 2 "
         "}} "
         "{{ 6 / 3 }} {{ 5 % 5.0 }} {{ 5 % -1 }}",
         "3 9 3.5 -2 2 1.5 2.0 0.0 0", 0},
        {"{{ - 3 }} {{ +3 }} {{ --3 }} {{ 1 / 4 }} {{ 1.0 * 3 }} {{ 3 - 1.5 }}",
         "-3 3 3 0.25 3.0 1.5", 0},
        {"{{ \"a\" ~ 1 ~ 2.0 ~ none ~ [1] ~ true }}", "a12.0None[1]True", 0},
        {"{{ \"ab\" * 3 }} {{ 2 * \"x\" }} {{ [1] * 2 }} {{ (1,) * 2 }}[{{ \"x\" * 0 }}{{ \"x\" * "
         "-1 }}]",
         "ababab xx [1, 1] (1, 1)[]", 0},
        {"{{ \"a\" + \"b\" }} {{ [1] + [2] }} {{ (1,) + (2,) }}", "ab [1, 2] (1, 2)", 0},
        {"{{ 1 < 2 }} {{ 1 <= 1 }} {{ 2 > 3 }} {{ 2 >= 2 }} {{ 1 == 1.0 }} {{ 1 != 2 }} {{ \"a\" < "
         "\"b\" }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 2) }}",
         "True True False True True True True True True", 0},
        {"{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 in [1, 2] in [[1, 2]] }}", "True False True", 0},
        {"{{ \"a\" in \"abc\" }} {{ 3 in l }} {{ \"b\" in d }} {{ \"x\" not in \"abc\" }} {{ 9 not "
         "in l }} {{ 1 in (1, 2) }} {{ 1 in range(3) }} {{ 1 in d.values() }}",
         "True True True True True True True True", 0},
        {"{{ true and 0 }} {{ 1 or 2 }} {{ 0 or \"\" or \"z\" }} {{ not 1 }} {{ not not 1 }} {{ 1 "
         "and 2 }}",
         "0 1 z False True 2", 0},
        {"{{ 1 if true else 2 }} {{ 1 if false else 2 if false else 3 }}[{{ 1 if false }}]",
         "1 3[]", 0},
        {"{{ true + true }} {{ true == 1 }} {{ 1 == \"1\" }} {{ none == none }} {{ [1, [2]] == [1, "
         "[2]] }} {{ {\"a\": 1, \"b\": 2} == {\"b\": 2, \"a\": 1} }} {{ (1,) == [1] }}",
         "2 True False True True True False", 0},
        {"{{ 1 + 2 is odd }} {{ 5 is odd and 4 is even }}", "1 True", 0},
        {"{{ -5|string ~ 1 }} {{ 2 + 3|string|length }}", "-51 3", 0},
        {"{{ \"%s %d\" % (\"a\", 3) }} {{ \"%s\" % 5 }} {{ \"100%%\" % () }}", "a 3 5 100%", 0},
        {"{{ 4 in \"a4\" if false else 0 }}", "0", 0},
        {"{{ not 1 == 2 }} {{ not (1 == 2) and false }}", "True False", 0},
        {"{{ \"a\" \"b\" ~ \"c\" }}", "abc", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_language, members_are_found_as_in_jinja2)
{
    static const struct jinja_case cases[] = {
        {"{{ d.b }} {{ d[\"b\"] }} {{ d.items()|list }} {{ d[\"items\"] }} {{ d.get(\"b\") }} {{ "
         "d.get(\"x\") }} {{ d.get(\"x\", 5) }} {{ d.keys() }} {{ d.values() }}",
         "1 1 [('b', 1), ('A', 2), ('items', [7])] [7] 1 None 5 dict_keys(['b', 'A', 'items']) "
         "dict_values([1, 2, [7]])",
         0},
        {"{{ l[0] }} {{ l[-1] }} {{ l.0 }}[{{ l[9] }}{{ l[-9] }}{{ l.x }}{{ d.x }}{{ d[5] }}{{ "
         "\"a\".x }}{{ n.x }}{{ f.x }}]",
         "3 2 3[]", 0},
        {"{{ l[1:] }} {{ l[:1] }} {{ l[:-1] }} {{ l[::2] }} {{ l[::-1] }} {{ l[5:] }} {{ l[-2:] }} "
         "{{ l[2:0:-1] }} {{ l[:] }}",
         "[1, 2] [3] [3, 1] [3, 2] [2, 1, 3] [] [1, 2] [2, 1] [3, 1, 2]", 0},
        {"{{ t[0] }} {{ t[5] }} {{ t[4:6] }} {{ t[::-1] }} {{ t[-3:] }} {{ t[100:] }}|{{ t[:4] }} "
         "{{ t[1:8:2] }}",
         "S e \303\237e x edo\303\247 \303\257n\303\234 e\303\237artS e x |Stra tae\303\234", 0},
        {"{{ (1, 2, 3)[1:] }} {{ range(5)[1:3]|list }} {{ range(5)[2] }}", "(2, 3) [1, 2] 2", 0},
        {"{{ d[[\"a\"]] }}{{ d[u] }}{{ l[\"a\"] }}{{ l[1.0] }}{{ l[true] }}", "1", 0},
        {"{{ people[0].tags[1] }} {{ people[2].job.title }} {{ people[2][\"job\"][\"title\"] }}",
         "y cook cook", 0},
        {"{{ \"abc\".upper() }} {{ \"a-b\".split(\"-\")[1] }} {{ (\"x\" ~ \"y\").upper() }}",
         "ABC b XY", 0},
        {"{{ \"a\".upper is defined }}", "True", 0},
        {"{{ d.__class__ }}{{ \"\".__class__ is defined }}", "False", 0},
        {"{{ l.append }}", "", 0},
        {"{{ {\"a b\": 1}[\"a b\"] }} {{ {1: 2}[1] }} {{ {1: 2}[1.0] }} {{ {\"1\": 2}[1] is "
         "defined }}",
         "1 2 2 False", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}
