#!/usr/bin/env python3
"""The ids that the libraries raise are those that `remesh explain` does not call reserved, and a test sees each of them.

    explain_ids_test.py PROGRAM SOURCE_DIR
"""

import json
import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = ["runtime", "format", "reshard", "verify", "cli"]
# They name ids without raising them.
TABLES = re.compile(r"(explain_\w+_pages|finding)\.cpp$")


def raised_in(source):
    ids = set()
    for library in LIBRARIES:
        for path in Path(source, library).glob("**/src/**/*.[ch]pp"):
            if not TABLES.search(path.name):
                ids |= set(re.findall(r'"(RM[1-7]\d\d)"', path.read_text()))
    return ids


# They name ids that nothing raised: words of pages, and what is to be ignored.
NO_WITNESSES = {"explain.test", "explain_ids_test.py", "ignores_test.cpp", "finding_test.cpp"}
ID = re.compile(r"RM[1-7]\d\d")


def lines_that_expect(path):
    """What a test file expects: of a .test file what is printed, of sources all but comments."""
    lines = path.read_text().splitlines()
    if path.suffix == ".test":
        return [line for line in lines if line.startswith(("out:", "err:"))]
    return [line for line in lines if not line.lstrip().startswith(("//", "#"))]


def seen_by_tests(source):
    ids = set()
    for path in Path(source, "tests").glob("**/*"):
        is_test = path.suffix in (".test", ".cpp", ".hpp", ".py") and "fuzz" not in path.parts
        if is_test and path.name not in NO_WITNESSES:
            ids |= {id for line in lines_that_expect(path) for id in ID.findall(line)}
    return ids


def main(program, source):
    listed = subprocess.run([program, "explain", "--list", "--json"], check=True,
                            capture_output=True, text=True).stdout
    pages = json.loads(listed)["pages"]
    known = {page["id"] for page in pages}
    raised = raised_in(source)
    explained = {page["id"] for page in pages if not page["reserved"]}
    problems = [f"{id} is raised, but has no page" for id in sorted(raised - known)]
    problems += [f"{id} is raised, but called reserved" for id in sorted((raised & known) - explained)]
    problems += [f"{id} is not raised, but not called reserved" for id in sorted(explained - raised)]
    problems += [f"{id} is raised, but no test expects it" for id in sorted(explained - seen_by_tests(source))]
    if [page["id"] for page in pages] != sorted(known):
        problems.append("the pages are not ordered by id, or one is there twice")
    print("\n".join(problems) or f"{len(raised)} of {len(known)} ids are raised, as explained")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
