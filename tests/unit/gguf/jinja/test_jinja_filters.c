/* Filters and tests. */
#include "tests/unit/gguf/jinja/jinja_cases.h"

#include <criterion/criterion.h>

Test(jinja_filters, filters_of_strings)
{
    static const struct jinja_case cases[] = {
        {"{{ \"a\303\251\" | upper }}{{ \"A\303\211\"|lower }}{{ \"hello wORLD\"|capitalize }}{{ "
         "\"hello-world foo_bar (baz) it's\"|title }}",
         "A\303\211a\303\251Hello worldHello-World Foo_bar (Baz) It's", 0},
        {"[{{ \"  a b \\n\"|trim }}][{{ \"xxaxx\"|trim(\"x\") }}]", "[a b][a]", 0},
        {"{{ \"aaa\"|replace(\"a\", \"b\") }}{{ \"aaa\"|replace(\"a\", \"b\", 2) }}{{ "
         "112|replace(1, \"x\") }}",
         "bbbbbaxx2", 0},
        {"{{ 5|string }}{{ [1]|string }}{{ none|string }}{{ 1.0|string ~ \"x\" }}", "5[1]None1.0x",
         0},
        {"{{ \"<a>&'\\\"\"|escape }}{{ \"<a>\"|e }}{{ \"<a>\"|safe }}{{ \"<a>\"|e|e }}{{ "
         "[\"<a>\"|safe] }}",
         "&lt;a&gt;&amp;&#39;&#34;&lt;a&gt;<a>&lt;a&gt;[Markup('<a>')]", 0},
        {"{{ \"<a>\"|safe + \"<b>\" }}{{ (\"<a>\"|safe) ~ \"<b>\" }}{{ \"<a>\"|safe|upper + \"<\" "
         "}}{{ \"<a>\"|safe|trim + \"<\" }}",
         "<a>&lt;b&gt;<a><b><A>&lt;<a>&lt;", 0},
        {"{{ \"a\\nb\\n\\nc\"|indent }}|{{ \"a\\nb\"|indent(2) }}|{{ \"a\\nb\"|indent(2, true) "
         "}}",
         "a\n    b\n\n    c|a\n  b|  a\n  b", 0},
        {"{{ \"%s-%s\"|format(1, \"b\") }}", "1-b", 0},
        {"{{ none|upper }}{{ 5|title }}{{ true|lower }}", "NONE5true", 0},
        {"{{ u|upper }}{{ u|trim }}{{ u|string }}", "", 0},
        {"|{{ \"\303\237\"|upper }}{{ \"\316\221\316\243 \316\221\316\243\316\221 \316\243\"|lower "
         "}}{{ \"\307\206\"|title }}",
         "|SS\316\261\317\202 \316\261\317\203\316\261 \317\203\307\204", 0},
        {"{{ \"a\"|default(\"b\") }}{{ u|default(\"b\") }}{{ u|default }}{{ \"\"|default(\"c\", "
         "true) }}{{ none|default(\"d\") }}{{ 0|d(5, boolean=true) }}{{ u.x|default(\"z\") if "
         "false }}",
         "abcNone5", 0},
        {"{{ \"abc\"|first }}{{ \"abc\"|last }}{{ \"abc\"|list }}{{ "
         "\"abc\"|length }}{{ \"a\303\251\"|length }}",
         "ac['a', 'b', 'c']32", 0},
        {"{{ \"a,b\"|join(\"-\") }}{{ [1, [2], none]|join(\"|\") }}{{ l|join }}{{ people|join(\", "
         "\", attribute=\"name\") }}",
         "a-,-b1|[2]|None312Bo, al, Cy", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_filters, filters_of_lists)
{
    static const struct jinja_case cases[] = {
        {"{{ l|length }}{{ d|length }}{{ \"abc\"|count }}{{ u|length }}", "3330", 0},
        {"{{ l|first }}{{ l|last }}{{ d|first }}[{{ []|first }}{{ []|last }}]", "32b[]", 0},
        {"{{ l|sort }}{{ l|sort(reverse=true) }}{{ [\"b\", \"A\", \"a\"]|sort }}{{ [\"b\", \"A\", "
         "\"a\"]|sort(case_sensitive=true) }}{{ "
         "people|sort(attribute=\"age\")|map(attribute=\"name\")|list }}",
         "[1, 2, 3][3, 2, 1]['A', 'a', 'b']['A', 'a', 'b']['al', 'Bo', 'Cy']", 0},
        {"{{ people|sort(reverse=true, attribute=\"age\")|map(attribute=\"name\")|list }}",
         "['Bo', 'Cy', 'al']", 0},
        {"{{ d|dictsort }}{{ d|dictsort(true) }}",
         "[('A', 2), ('b', 1), ('items', [7])][('A', 2), ('b', 1), ('items', [7])]", 0},
        {"{{ l|min }}{{ l|max }}{{ [\"b\", \"A\"]|min }}[{{ []|min }}]", "13A[]", 0},
        {"{{ l|select(\"gt\", 1)|list }}{{ l|reject(\"odd\")|list }}{{ [0, 1, \"\", "
         "\"a\"]|select|list }}{{ [0, 1]|reject|list }}{{ l|select(\"in\", [1, 2])|list }}",
         "[3, 2][2][1, 'a'][0][1, 2]", 0},
        {"{{ d|items|list }}{{ u|items|list }}{{ {}|items|list }}",
         "[('b', 1), ('A', 2), ('items', [7])][][]", 0},
        {"{{ range(2, 8, 3)|list }}{{ range(3, 0, -1)|list }}{{ range(0)|list }}",
         "[2, 5][3, 2, 1][]", 0},
        {"{{ l|map(\"string\")|join(\"-\") }}{{ l|map(\"string\")|first }}", "3-1-23", 0},
        {"{% set g = l|map(\"string\") %}{{ g|list }}{{ g|list }}", "['3', '1', '2'][]", 0},
        {"{{ l|select(\"gt\", 9)|list or \"none\" }}{{ \"y\" if l|select(\"gt\", 9) else \"n\" }}",
         "noney", 0},
        {"{{ dict(a=1, b=2) }}{{ dict(u) }}{{ dict({\"a\": 1}, c=3) }}",
         "{'a': 1, 'b': 2}{}{'a': 1, 'c': 3}", 0},
        {"{{ [[1, 2], [3, 4]]|map(attribute=1)|list }}{{ [[1, 2]]|map(\"first\")|list }}{{ [[3, "
         "1]]|map(\"sort\")|list }}{{ [{\"a\": 1}]|map(\"tojson\")|list }}",
         "[2, 4][1][[1, 3]]['{\"a\": 1}']", 0},
        {"{{ [3, 1]|map(\"float\")|list }}{{ [\"1\", \"x\"]|map(\"int\", default=7)|list }}",
         "[3.0, 1.0][1, 7]", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_filters, filters_of_numbers_and_json)
{
    static const struct jinja_case cases[] = {
        {"{{ \"12\"|int }} {{ \"12.7\"|int }} {{ \"x\"|int }} {{ \"x\"|int(5) }} {{ 3.9|int }} {{ "
         "-3.9|int }} {{ none|int }} {{ \" 42 \"|int }} {{ true|int }} {{ \"-5\"|int }} {{ "
         "\"--5\"|int }} {{ \"\"|int }} {{ \"+5\"|int }} {{ \"1e3\"|int }}",
         "12 12 0 5 3 -3 0 42 1 -5 0 0 5 1000", 0},
        {"{{ \"1.5\"|float }} {{ \"x\"|float }} {{ \"x\"|float(2.5) }} {{ 3|float }} {{ "
         "\"1e3\"|float }} {{ \"inf\"|float }} {{ \" 2 \"|float }} {{ none|float }} {{ "
         "\"0x10\"|float }} {{ \"nan\"|float }} {{ \"-.5\"|float }}",
         "1.5 0.0 2.5 3.0 1000.0 inf 2.0 0.0 0.0 nan -0.5", 0},
        {"{{ j|tojson }}",
         "{\"k\": [1, 2.0, true, null, "
         "\"\303\251\\\"\\\\\\n\\t\\u0001\342\200\250\360\237\230\200\"], \"o\": {}}",
         0},
        {"{{ j|tojson(indent=2) }}",
         "{\n  \"k\": [\n    1,\n    2.0,\n    true,\n    null,\n    "
         "\"\303\251\\\"\\\\\\n\\t\\u0001\342\200\250\360\237\230\200\"\n  ],\n  \"o\": {}\n}",
         0},
        {"{{ j|tojson(ensure_ascii=true) }}",
         "{\"k\": [1, 2.0, true, null, \"\\u00e9\\\"\\\\\\n\\t\\u0001\\u2028\\ud83d\\ude00\"], "
         "\"o\": {}}",
         0},
        {"{{ {\"b\": 1, \"a\": [1, {\"d\": 2, \"c\": 3}]}|tojson(sort_keys=true) }}",
         "{\"a\": [1, {\"c\": 3, \"d\": 2}], \"b\": 1}", 0},
        {"{{ [1, {\"a\": 2}]|tojson(separators=(\",\", \":\")) }}", "[1,{\"a\":2}]", 0},
        {"{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}", "{\"1\": 4, \"null\": 3, \"1.5\": 5}", 0},
        {"{{ \"\303\251<>&'\"|tojson }} {{ 1.0|tojson }} {{ none|tojson }} {{ true|tojson }} {{ "
         "(1, 2)|tojson }} {{ []|tojson(indent=2) }} {{ {}|tojson(indent=2) }}",
         "\"\303\251<>&'\" 1.0 null true [1, 2] [] {}", 0},
        {"{{ [1, [2, []]]|tojson(indent=\"--\") }}", "[\n--1,\n--[\n----2,\n----[]\n--]\n]", 0},
        {"{{ [1]|tojson(indent=0) }}", "[\n1\n]", 0},
        {"{{ 1e400|tojson }} {{ -1e400|tojson }}", "Infinity -Infinity", 0},
        {"{{ \"\\x7f\\u0080\"|tojson(true) }}", "\"\\u007f\\u0080\"", 0},
        {"{{ strftime_now(\"%d %b %Y\") }} {{ strftime_now(\"%H:%M:%S %A %B %-d %j %p\") }} {{ "
         "strftime_now(\"\") }}",
         "26 Jul 2026 13:05:09 Sunday July 26 207 PM ", 0},
        {"{{ [1, 2]|tojson(indent=2, separators=(\", \", \": \")) }}", "[\n  1, \n  2\n]", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}

Test(jinja_filters, tests_of_types_and_order)
{
    static const struct jinja_case cases[] = {
        {"{{ 1 is defined }} {{ u is defined }} {{ u is undefined }} {{ n is none }} {{ u is none "
         "}} {{ true is boolean }} {{ 1 is boolean }} {{ true is true }} {{ 1 is true }} {{ false "
         "is false }} {{ 0 is false }}",
         "True False True True False True False True False True False", 0},
        {"{{ 1 is integer }} {{ true is integer }} {{ 1.0 is integer }} {{ 1.0 is float }} {{ 1 is "
         "float }} {{ true is number }} {{ \"1\" is number }}",
         "True False False True False True False", 0},
        {"{{ \"a\" is string }} {{ 1 is string }} {{ d is mapping }} {{ l is mapping }} {{ l is "
         "sequence }} {{ \"a\" is sequence }} {{ d is sequence }} {{ 1 is sequence }} {{ n is "
         "sequence }} {{ u is sequence }} {{ (1,) is sequence }}",
         "True False True False True True True False False True True", 0},
        {"{{ l is iterable }} {{ \"a\" is iterable }} {{ 1 is iterable }} {{ n is iterable }} {{ u "
         "is iterable }} {{ d is iterable }} {{ d.items() is iterable }} {{ l|map(\"string\") is "
         "iterable }} {{ range(2) is iterable }} {{ d.items() is sequence }} {{ l|map(\"string\") "
         "is sequence }}",
         "True True False False True True True True True False False", 0},
        {"{{ 3 is odd }} {{ 4 is even }}", "True True", 0},
        {"{{ 1 is eq 1 }} {{ 1 is equalto 2 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is le 1 }} {{ "
         "2 is gt 1 }} {{ 2 is ge 3 }} {{ 1 is lessthan 2 }} {{ 2 is greaterthan 1 }}",
         "True False True True True True False True True", 0},
        {"{{ 1 is in [1] }} {{ \"a\" is in \"abc\" }} {{ 5 is not in l }} {{ 1 is not none }}",
         "True True True True", 0},
        {"{{ not 1 is odd }} {{ 1 is odd and 2 is odd }} {{ 1 is odd or 2 is odd }} {{ 1 is not "
         "odd }}",
         "False False True False", 0},
        {"{{ 5 is gt 3 and \"y\" or \"n\" }} {{ [1] is eq [1] }} {{ d.b is eq 1 }} {{ \"a\" is eq "
         "\"a\" ~ \"\" }}",
         "y True True True", 0},
        {"{% if u is not defined and d is mapping %}ok{% endif %}", "ok", 0},
        {NULL, NULL, 0},
    };

    jinja_check_texts(cases);
}
