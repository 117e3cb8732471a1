"""Prints a table of a TOML file as the elements of a C++ array, each row with its members in the order of the file; meson runs it.

Usage: tables.py FILE TABLE [MEMBER=ENUMERATION | MEMBER]. In a row, MEMBER is the name of an enumerator; alone, only these names are
printed, each once. A text that begins with '=' is an expression of C++, any other is text.
"""

import json
import sys
import tomllib


def written(value, enumerations):
    if isinstance(value, dict):
        members = (f".{name} = " + (f"{enumerations[name]}::{one}" if name in enumerations else written(one, enumerations)) for name, one in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(written(one, enumerations) for one in value) + "}"
    if isinstance(value, str) and value.startswith("="):
        return value[1:]
    return json.dumps(value, ensure_ascii=False)


def main():
    file, table, *members = sys.argv[1:]
    with open(file, "rb") as stream:
        rows = tomllib.load(stream)[table]
    if members and "=" not in members[0]:
        return print(*dict.fromkeys(row[members[0]] for row in rows), sep=",\n", end=",\n")
    enumerations = dict(member.split("=") for member in members)
    for row in rows:
        print(written(row, enumerations) + ",")


if __name__ == "__main__":
    main()
