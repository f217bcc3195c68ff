#!/usr/bin/env python3
"""The ids that the libraries raise are those that `remesh explain` does not call reserved.

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
    if [page["id"] for page in pages] != sorted(known):
        problems.append("the pages are not ordered by id, or one is there twice")
    print("\n".join(problems) or f"{len(raised)} of {len(known)} ids are raised, as explained")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
