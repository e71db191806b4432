#!/usr/bin/env python3
"""Writes ggufs/_layouts.py, what ctypes needs to know of ggufs.h: make_layouts.py HEADER"""
import re
import sys
import textwrap

NUMBERS = {"int": "c_int", "bool": "c_bool", "double": "c_double", "size_t": "c_size_t", "char": "c_char",
           "ggufs_node": "c_uint32",
           **{f"{sign}int{bits}_t": f"c_{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)}}


def class_name(struct):
    return "".join(word.capitalize() for word in struct.removeprefix("ggufs_").split("_"))


def type_of(text, structs):
    """The ctypes of a C type, written without the name of what has it."""
    stars = text.count("*")
    words = [word for word in re.findall(r"\w+", text) if word not in ("const",)]
    if words[0] == "enum":
        base = "c_int"
    elif words[0] == "struct":
        base, stars = (class_name(words[1]), stars) if words[1] in structs else ("c_void_p", stars - 1)
    elif words == ["void"]:
        base, stars = ("c_void_p", stars - 1) if stars else ("None", 0)
    elif words == ["char"] and stars:
        base, stars = "c_char_p", stars - 1
    elif words == ["float"]:
        base, stars = "c_void_p", 0  # a buffer of any owner
    else:
        base = NUMBERS[words[0]]
    return "POINTER(" * stars + base + ")" * stars


def split(declaration):
    """(type, name, number of elements or None) of "const char *name[8]"."""
    return re.fullmatch(r"(.*?)(\w+)(?:\[(\w+)\])?", declaration.strip(), re.S).groups()


def layouts(header):
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    macros = dict(re.findall(r"^#define (GGUFS_\w+) (\d+)$", text, re.M))
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M)
    yield '"""What ctypes knows of ggufs.h. Written by make_layouts.py, do not edit."""\n'
    yield "from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int64,"
    yield "                    c_size_t, c_uint32, c_uint64, c_void_p)\n"
    for body in re.findall(r"^enum \w+ \{(.*?)\};", text, re.M | re.S):
        values = re.findall(r"GGUFS_(\w+)", body)
        yield f"{', '.join(values)} = range({len(values)})"
    structs = re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S)
    names = [name for name, _ in structs]
    for struct, body in structs:
        yield f"\n\nclass {class_name(struct)}(Structure):"
        fields = []
        for member in filter(str.strip, body.split(";")):
            kind, name, count = split(member)
            if struct == "ggufs_string" and name == "data":
                kind = "void *"  # it does not end with a NUL
            fields.append(f'("{name}",~{type_of(kind, names)}{f"~*~{macros.get(count, count)}" if count else ""})')
        yield textwrap.fill(f"_fields_ = [{', '.join(fields)}]", 110, initial_indent=" " * 4,
                            subsequent_indent=" " * 16).replace("~", " ")
    yield "\n\nEach = CFUNCTYPE(None, c_void_p, POINTER(Finding))"
    yield "\n# By function: the type of its result, and of its parameters."
    yield "FUNCTIONS = {"
    for result, name, parameters in re.findall(r"^([\w ]+[ *])(ggufs_\w+)\(([^;{]*)\);", text, re.M):
        parameters = re.sub(r"void \(\*each\)\([^()]*\)", "each each", parameters)
        kinds = ["Each" if one.split()[0] == "each" else type_of(split(one)[0], names)
                 for one in parameters.split(",") if one.strip() != "void"]
        yield f'    "{name}": ({type_of(result, names)}, [{", ".join(kinds)}]),'
    yield "}"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(layouts(file.read())))
