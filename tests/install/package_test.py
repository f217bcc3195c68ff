#!/usr/bin/env python3
"""The packages of `./dev package` hold what they should, and run where nothing else of remesh is.

    package_test.py PACKAGE_DIR SOURCE_DIR BUILD_DIR

The .deb is looked through and unpacked; the tarball is unpacked in an empty directory, and the steps of action.yml and
the hooks of .pre-commit-hooks.yaml run with it there. Then all is packed once more, to the same bytes.

Needs dpkg-dev, binutils and python3-yaml.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import yaml

CLEAN = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def run(*command, code=0, env=None, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env or CLEAN, **more)
    if done.returncode != code:
        raise SystemExit(f"FAILED   {' '.join(map(str, command))}: exit {done.returncode}, expected {code}\n"
                         f"{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect(condition, what):
    if not condition:
        raise SystemExit(f"FAILED   {what}")


def the_one(directory, pattern):
    found = list(directory.glob(pattern))
    expect(len(found) == 1, f"{directory} has {len(found)} of {pattern}")
    return found[0]


def check_digest_file(path):
    run("sha256sum", "--check", "--quiet", f"{path.name}.sha256", cwd=path.parent)


# ---- The .deb

def check_deb(package, checkpoint, scratch):
    check_digest_file(package)
    version, architecture = re.fullmatch(r"remesh_(.+)_(.+)\.deb", package.name).groups()
    fields = run("dpkg-deb", "--field", package)
    for line in (f"Version: {version}", f"Architecture: {architecture}"):
        expect(line in fields, f"the .deb does not say '{line}'")
    depends = re.search("^Depends: (.*)$", fields, re.MULTILINE)[1]
    for library in ("libc6 (>= ", "libfmt", "libhdf5-", "libsodium", "libzstd1 (>= ", "libisal", "libsimdjson"):
        expect(library in depends, f"the .deb does not depend on {library}: {depends}")
    for line in run("dpkg-deb", "--contents", package).splitlines():
        mode, owner, name = line.split()[0], line.split()[1], line.split()[-1]
        expect(owner == "root/root", f"not root's: {line}")
        expect(name == "./" or name.startswith("./usr/"), f"not below usr: {line}")
        wanted = "drwxr-xr-x" if mode[0] == "d" else "-rwxr-xr-x" if "/bin/" in name else "-rw-r--r--"
        expect(mode == wanted, f"its mode is not {wanted}: {line}")
    root = scratch / "deb"
    run("dpkg-deb", "--extract", package, root)
    run("dpkg-deb", "--control", package, scratch / "control")
    run("md5sum", "--check", "--quiet", scratch / "control/md5sums", cwd=root)
    expect("RUNPATH" not in run("readelf", "--dynamic", root / "usr/bin/remesh"), "the program of the .deb has a RUNPATH")
    check_program(root / "usr/bin/remesh", version, checkpoint)
    if os.geteuid() == 0:
        install_deb(package, scratch / "root", version)


def install_deb(package, root, version):
    """As `dpkg -i` does, into a system of its own, which has none of the libraries."""
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/updates").mkdir()
    (root / "var/lib/dpkg/status").touch()
    run("dpkg", f"--root={root}", "--force-depends,not-root,script-chrootless", "--log=/dev/null", "--install", package,
        env={**CLEAN, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    status = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show", "--showformat=${db:Status-Status} ${Version}",
                 "remesh")
    expect(status == f"installed {version}", f"dpkg says: {status}")


# ---- The tarball

def check_program(program, version, checkpoint):
    expect(run(program, "--version").strip() == f"remesh {version}", f"the version of {program}")
    facts = run(program, "env")
    for place in ("share/remesh/schema", "hdf5/plugin"):
        expect(f"{program.parent.parent}/" in facts and place in facts, f"{program} does not find {place}:\n{facts}")
    run(program, "verify", checkpoint, "--level", "deep")


def check_tarball(tarball, checkpoint, scratch):
    check_digest_file(tarball)
    version = re.match(r"remesh-([0-9.]+)-linux-", tarball.name)[1]
    with tarfile.open(tarball) as archive:
        for member in archive.getmembers():
            expect(member.isfile() or member.isdir(), f"neither a file nor a directory: {member.name}")
            expect(member.name.split("/")[0] == tarball.name.removesuffix(".tar.gz"), f"outside: {member.name}")
    home = scratch / "some where else"
    home.mkdir()
    run("tar", "-xzf", tarball, "-C", home, "--strip-components", "1")
    program = home / "bin/remesh"
    for binary in (program, the_one(home, "lib*/hdf5/plugin/*.so")):
        for line in run("ldd", binary).splitlines():
            is_own = str(home) in line
            is_systems = re.match(r"\s*(linux-vdso|/lib|lib(c|m|dl|pthread|rt|resolv|stdc\+\+|gcc_s)\.so)", line)
            expect(is_own or is_systems, f"{binary.name} takes a library from elsewhere: {line.strip()}")
    check_program(program, version, checkpoint)
    licences = {path.name for path in home.glob("share/doc/remesh/licences/*")}
    for package in ("libhdf5-103-1", "nlohmann-json3-dev", "libcli11-dev", "libgmp10"):
        expect(package in licences, f"the licence of {package} is not there")
    return version


# ---- action.yml

class Runner:
    """What of a runner of composite actions these steps need."""

    def __init__(self, action, scratch):
        self.steps = action["runs"]["steps"]
        self.inputs = action["inputs"]
        self.scratch = scratch
        self.count = 0

    def value(self, text, given):
        defaults = {name: str(value.get("default", "")) for name, value in self.inputs.items()}
        known = {f"inputs.{name}": value for name, value in {**defaults, **given}.items()}
        known |= {"github.server_url": f"file://{self.scratch}/server", "github.action_repository": "owner/remesh"}
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: known[found[1]], text)

    def run(self, code=0, toml=None, **given):
        """Runs all steps in a directory that has at most a remesh.toml; returns what was said. Only the last may fail."""
        given = {name.replace("_", "-"): str(value) for name, value in given.items()}
        expect(set(given) <= set(self.inputs), f"action.yml has not all of the inputs {sorted(given)}")
        self.count += 1
        home = self.scratch / f"runner{self.count}"
        for part in ("work", "temp"):
            (home / part).mkdir(parents=True)
        if toml:
            (home / "work/remesh.toml").write_text(toml)
        path_file = home / "path"
        path_file.touch()
        said = ""
        for step in self.steps:
            expect(step["shell"] == "bash" and "${{" not in step["run"], f"'{step['name']}' puts inputs into a script")
            added = [line for line in reversed(path_file.read_text().splitlines()) if line]
            env = {"LC_ALL": "C.UTF-8", "PATH": ":".join([*added, CLEAN["PATH"]]), "RUNNER_TEMP": str(home / "temp"),
                   "GITHUB_PATH": str(path_file), **{name: self.value(text, given) for name, text in step["env"].items()}}
            said += run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"], env=env, cwd=home / "work",
                        code=code if step is self.steps[-1] else 0)
        return said


def fake_tarball(path):
    """A remesh that says how it was called, one argument a line."""
    home = path.parent / "fake"
    (home / "bin").mkdir(parents=True)
    (home / "bin/remesh").write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    (home / "bin/remesh").chmod(0o755)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(home, arcname="fake-1.2.3")


def check_action(action, tarball, version, places, scratch):
    expect(action["inputs"]["version"]["default"] == version, "action.yml downloads another version than this one")
    runner = Runner(action, scratch)
    said = runner.run(path=places["good"], tarball=tarball)
    expect("digests were recomputed from every byte" in said, f"the action did not verify at level full:\n{said}")
    said = runner.run(path=places["good"], tarball=tarball, against=places["hf"], level="quick")
    expect("66 of 66 tensors equal" in said, f"the action did not compare:\n{said}")
    expect("RM207" in runner.run(code=1, path=places["damaged"], tarball=tarball), "the damage has no id")
    runner.run(code=4, path=scratch / "none", tarball=tarball)
    release = scratch / f"server/owner/remesh/releases/download/v{version}"
    release.mkdir(parents=True)
    shutil.copy(tarball, release)
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    runner.run(path=places["good"], sha256=digest)  # downloaded
    runner.run(path=places["good"], tarball=(release / tarball.name).as_uri())
    check_config(runner, tarball, places)
    check_arguments(runner, scratch)
    for wrong in ({"sha256": "0" * 64}, {"version": "9.9.9", "tarball": ""}):
        try:
            runner.run(path=places["good"], **{"tarball": tarball, **wrong})
        except SystemExit:
            continue
        raise SystemExit(f"FAILED   the action accepts {wrong}")


def check_config(runner, tarball, places):
    """What a remesh.toml says holds where no input says otherwise."""
    given = {"path": places["warned"], "tarball": tarball}
    every_byte = "digests were recomputed from every byte"
    said = runner.run(**given)
    expect("warn  RM111" in said and every_byte in said, f"no file that came later was told:\n{said}")
    said = runner.run(toml='level = "quick"\n', **given)
    expect(every_byte not in said, f"the action overrides the level of remesh.toml:\n{said}")
    toml = 'fail_on = "warn"\nlevel = "quick"\n'
    runner.run(code=1, toml=toml, **given)
    said = runner.run(toml=toml, level="full", fail_on="error", **given)
    expect(every_byte in said, f"an input does not win over remesh.toml:\n{said}")
    runner.run(toml=toml, config="none", **given)
    runner.run(toml=toml, ignore="RM541\nRM111:later.json\n", **given)


def check_arguments(runner, scratch):
    fake = scratch / "fake.tar.gz"
    fake_tarball(fake)

    def expect_call(wanted, **given):
        said = runner.run(tarball=fake, **given)
        expect(said == f"<verify>{wanted}", f"the action called {said}")

    expect_call("<--><$(touch here)>", path="$(touch here)")
    expect_call("<--level><deep><--against><c><--previous><p><--fail-on><warn><--ignore><RM541><--ignore><RM111:a b*>"
                "<--config><none><--key><k><--seal><s><--subset><3/7><--sarif><d><--junit><e><--html><f>"
                "<--quiet><--memory><1G><--><a b>",
                path="a b", level="deep", against="c", previous="p", fail_on="warn", ignore="RM541\n\nRM111:a b*\n",
                config="none", key="k", seal="s", subset="3/7", sarif="d", junit="e", html="f",
                args="--quiet\n\n--memory\n1G\n")
    odd = """a  'b' "c" `touch here` $(touch here) ${HOME} ; touch here # \\ *"""
    for name in sorted(set(runner.inputs) - {"path", "version", "tarball", "sha256"}):
        flag = "" if name == "args" else f"<--{name}>"
        expect_call(f"{flag}<{odd}><--><m>", path="m", **{name: odd})
    expect(not list(scratch.rglob("here")), "the action ran what stands in an input")


# ---- .pre-commit-hooks.yaml

def check_hooks(hooks, home, places, scratch):
    env = {**CLEAN, "PATH": f"{home / 'bin'}:{CLEAN['PATH']}"}
    empty = scratch / "repository"
    empty.mkdir()
    entries = {hook["id"]: shlex.split(hook["entry"]) for hook in hooks}
    expect(set(entries) == {"remesh-verify", "remesh-fingerprint"}, f"the hooks are {sorted(entries)}")
    for hook in hooks:
        expect(hook["language"] == "system" and not hook["pass_filenames"], f"{hook['id']} is called with files")
    run(*entries["remesh-verify"], places["good"], env=env, cwd=empty)
    run(*entries["remesh-verify"], places["damaged"], env=env, cwd=empty, code=1)
    lock = scratch / "lock"
    run("remesh", "fingerprint", places["good"], "-o", lock, env=env)
    run(*entries["remesh-fingerprint"], lock, places["hf"], env=env, cwd=empty)
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join(lines[:-1]) + "\n")
    run(*entries["remesh-fingerprint"], lock, places["hf"], env=env, cwd=empty, code=1)
    wanted = re.compile(next(hook["files"] for hook in hooks if hook["id"] == "remesh-verify"))
    for name, matches in (("m/model.safetensors", True), ("c/COMMIT", True), ("manifest.json", True),
                          ("c/shard-00000-of-00002.h5", True), ("README.md", False), ("package/manifest.jsonl", False)):
        expect(bool(wanted.search(name)) == matches, f"remesh-verify and {name}")


# ---- Once more

def check_repeated(packages, source, build, scratch):
    licences = the_one(packages, "*.tar.gz")
    with tarfile.open(licences) as archive:
        names = [Path(member.name) for member in archive.getmembers()]
    headers = [name.name for name in names if name.parent.name == "licences" and name.name.endswith("-dev")]
    again = scratch / "again"
    epoch = {"SOURCE_DATE_EPOCH": os.environ["SOURCE_DATE_EPOCH"]} if "SOURCE_DATE_EPOCH" in os.environ else {}
    run(sys.executable, source / "packaging/package.py", build, again, *headers, env={**os.environ, **epoch})
    for path in sorted(packages.glob("*.sha256")):
        expect(path.read_text() == (again / path.name).read_text(), f"{path.stem} has other bytes when it is packed again")


def main(packages, source, build):
    packages, source, build = (Path(path).resolve() for path in (packages, source, build))
    with tempfile.TemporaryDirectory(prefix="remesh-package-") as scratch:
        scratch = Path(scratch)
        tarball = the_one(packages, "*.tar.gz")
        unpacked = scratch / "tools"
        unpacked.mkdir()
        run("tar", "-xzf", tarball, "-C", unpacked, "--strip-components", "1")
        places = {"hf": source / "fixtures/llama-gqa", "good": scratch / "good", "damaged": scratch / "damaged",
                  "warned": scratch / "warned"}
        run(unpacked / "bin/remesh", "convert", places["hf"], places["good"], "--mesh", "tp=2")
        shutil.copytree(places["good"], places["damaged"])
        shard = sorted(places["damaged"].glob("shard-*"))[0]
        content = bytearray(shard.read_bytes())
        content[-1] ^= 1
        shard.write_bytes(content)
        shutil.copytree(places["hf"], places["warned"])
        run(unpacked / "bin/remesh", "seal", places["warned"])
        (places["warned"] / "later.json").write_text("{}")
        check_deb(the_one(packages, "*.deb"), places["good"], scratch)
        version = check_tarball(tarball, places["good"], scratch)
        check_action(yaml.safe_load((source / "action.yml").read_text()), tarball, version, places, scratch)
        check_hooks(yaml.safe_load((source / ".pre-commit-hooks.yaml").read_text()), unpacked, places, scratch)
        check_repeated(packages, source, build, scratch)
    print("the .deb, the tarball, the action and the hooks do what they should")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
