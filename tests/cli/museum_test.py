#!/usr/bin/env python3
"""Every exhibit of fixtures/museum is told of exactly as index.toml says, and its README lists them all.

    museum_test.py PROGRAM SOURCE_DIR [--update]

--update writes what is found into index.toml, and the list into README.md. Read the difference before you keep it.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path



def read_index(museum):
    return tomllib.loads((museum / "index.toml").read_text())["incident"]


def found_by(program, command, place):
    """Every finding as the index writes it, sorted, and the ids of errors that do not say what to do next."""
    verb, *words = command.split()
    done = subprocess.run([program, verb, *words, "--json"], cwd=place, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stderr}")
    findings = json.loads(done.stdout)["findings"]
    mute = {f["id"] for f in findings if f["severity"] == "error" and not f["next_step"]}
    return sorted(" ".join((f["id"], f["severity"], f["file"] or "-", f["tensor"] or "-")) for f in findings), mute


def ids(incident):
    """Those that are more than notes, each once."""
    lines = [line.split() for lines in incident["check"].values() for line in lines]
    return ", ".join(sorted({words[0] for words in lines if words[1] != "note"}))


def listing(index):
    """The table of README.md."""
    lines = ["| | incident | what happened | the exhibit shows | it is told by |", "|---|---|---|---|---|"]
    for one in index:
        told = f"`{'`, `'.join(one['check'])}`: {ids(one)}" if "check" in one else ""
        waits = f"waits for: {one['waits']}" if "waits" in one else ""
        lines.append(f"| {one['number']} | {one['thread']} | {one['happened']} | "
                     f"{one.get('shows', 'the same' if told else '')} | {'; '.join(filter(None, (told, waits)))} |")
    return "\n".join(lines) + "\n"


def short_listing(index):
    """The list of the project's README: exhibits alone, and what tells of them."""
    lines = ["| | what happened | told by |", "|---|---|---|"]
    lines += [f"| {one['number']} | {one['happened']} | {ids(one)} |" for one in index if "check" in one]
    return "\n".join(lines) + "\n"


def put_list(readme, text):
    begin, end = "<!-- list -->\n", "<!-- end of list -->\n"
    parts = readme.read_text().partition(begin)
    readme.write_text(parts[0] + begin + text + end + parts[2].partition(end)[2])


def update(museum, results):
    text = (museum / "index.toml").read_text()
    for incident in read_index(museum):
        checks = {command: results[incident["exhibit"], command] for command in incident.get("check", {})}
        if checks:
            body = "".join(f'"{command}" = [\n' + "".join(f'  "{line}",\n' for line in lines) + "]\n"
                           for command, lines in checks.items())
            start = text.index(f"number = {incident['number']}\n")
            head, tail = text[:start], text[start:]
            tail = re.sub(r"check = \{.*?\}\n|\[incident\.check\]\n.*?(?=\n\[\[|\Z)", lambda _: "[incident.check]\n" + body,
                          tail, count=1, flags=re.S)
            text = head + tail
    (museum / "index.toml").write_text(text)
    put_list(museum / "README.md", listing(read_index(museum)))
    put_list(museum.parent.parent / "README.md", short_listing(read_index(museum)))


def main(program, source, *flags):
    program, museum = str(Path(program).resolve()), Path(source, "fixtures/museum").resolve()
    sys.path.insert(0, str(museum))
    import make

    index, results, problems = read_index(museum), {}, []
    with tempfile.TemporaryDirectory(prefix="remesh-museum-") as scratch:
        for incident in index:
            if "exhibit" not in incident:
                if "waits" not in incident:
                    problems.append(f"{incident['number']} has neither an exhibit nor a reason")
                continue
            place = Path(scratch, incident["exhibit"])
            if not place.exists():
                make.make(program, place, incident["exhibit"])
            for command, wanted in incident["check"].items():
                found, mute = found_by(program, command, place)
                results[incident["exhibit"], command] = found
                if mute:
                    problems.append(f"{incident['number']}: {command}: {sorted(mute)} say not what to do next")
                if found != sorted(wanted) or not found:
                    lost, more = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
                    problems.append(f"{incident['number']}: {command}: missing {lost}, more {more}")
    if "--update" in flags:
        update(museum, results)
        return 0
    if [incident["number"] for incident in index] != list(range(1, 41)):
        problems.append("the index does not have incidents 1 to 40 in their order")
    if listing(index) not in (museum / "README.md").read_text():
        problems.append("README.md does not have the list that the index makes")
    if short_listing(index) not in (museum.parent.parent / "README.md").read_text():
        problems.append("the project's README.md does not have the short list that the index makes")
    unused = {name for name in vars(make.Maker) if not name.startswith("_")} - {i.get("exhibit") for i in index} - {"native"}
    problems += [f"nothing shows {name}" for name in sorted(unused)]
    print("\n".join(problems) or f"{len(results)} commands on {sum('exhibit' in i for i in index)} exhibits say what the index says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
