#!/usr/bin/env python3
"""What `cmake --install` leaves behind is enough for others: their programs compile, link and run.

    install_test.py BUILD_DIR SOURCE_DIR

BUILD_DIR is a finished build, of static or of shared libraries. All is installed into an empty directory, moved
elsewhere, and used from there by find_package and by pkg-config.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command, code=0, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != code:
        raise SystemExit(f"FAILED   {' '.join(map(str, command))}: exit {done.returncode}, expected {code}\n"
                         f"{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        raise SystemExit(f"FAILED   {what}")


def installed(build, scratch):
    """The prefix, at another place than it was installed to."""
    run("cmake", "--install", build, "--prefix", scratch / "first")
    (scratch / "first").rename(scratch / "prefix")
    return scratch / "prefix"


def check_files(prefix, source):
    headers = {path.relative_to(prefix / "include").as_posix() for path in prefix.glob("include/**/*.hpp")}
    public = {path.as_posix().rpartition("/include/")[2] for path in source.glob("*/*/include/**/*.hpp")}
    public |= {path.as_posix().rpartition("/include/")[2] for path in source.glob("*/include/**/*.hpp")}
    expect(headers == public, f"the headers that are installed are not the public ones: {headers ^ public}")
    schemas = {path.name for path in prefix.glob("share/remesh/schema/*.json")}
    expect(schemas == {path.name for path in source.glob("cli/command/schema/*.json")}, f"schemas: {schemas}")
    formats = {path.name for path in prefix.glob("share/remesh/format/*.json")}
    expect(formats == {path.name for path in source.glob("format/*.json")}, f"schemas of files: {formats}")
    for name in ("bash-completion/completions/remesh", "zsh/site-functions/_remesh",
                 "fish/vendor_completions.d/remesh.fish", "doc/remesh/LICENSE"):
        expect((prefix / "share" / name).stat().st_size > 0, f"{name} is empty")
    for path in prefix.glob("lib*/**/*"):
        if path.suffix in (".cmake", ".pc"):
            expect(str(source) not in path.read_text(), f"{path.name} names the source directory")


def check_program(prefix, checkpoint):
    facts = run(prefix / "bin/remesh", "env")
    for place in ("share/remesh/schema", "hdf5/plugin"):
        expect(any(line.startswith(("schemas", "HDF5 plugin")) and str(prefix) in line and line.endswith(place)
                   for line in facts.splitlines()), f"`remesh env` does not say where {place} is:\n{facts}")
    run(prefix / "bin/remesh", "verify", checkpoint)


def check_consumer(program, checkpoint, damaged):
    lines = run(program, checkpoint).splitlines()
    expect(lines[-1] == "66 tensors, 0 errors" and len(lines) == 67, f"{program.name} printed {lines[-1]}")
    expect("model.norm.weight bf16 128" in lines, f"{program.name} did not print the tensors")
    run(program, damaged, code=1)
    run(program, checkpoint / "none", code=2)


def check_cmake(prefix, consumer, scratch):
    build = scratch / "build"
    run("cmake", "-S", consumer, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    return [build / "whole", build / "whole_by_components"]


def check_refusals(prefix, scratch):
    """A version or a component that there is not is said to be missing, and not linked around."""
    for number, wanted in enumerate(("0.2", "1.0", "0.1 COMPONENTS nonsense")):
        project = scratch / f"refused{number}"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(refused LANGUAGES CXX)\n"
            f"find_package(remesh {wanted} CONFIG REQUIRED)\n")
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", code=1)


def check_pkg_config(prefix, consumer, scratch):
    found = next(prefix.glob("lib*/**/remesh.pc"))
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found.parent)}
    expect(run("pkg-config", "--modversion", "remesh", env=environment).strip() == "0.1.0", "the version of remesh.pc")
    program = scratch / "by_pkg_config"
    run("sh", "-c", f"c++ -std=c++20 '{consumer}/whole.cpp' -o '{program}' $(pkg-config --cflags --libs remesh) "
        f"-Wl,-rpath,'{found.parent.parent}'", env=environment)
    return program


def main(build, source):
    build, source = Path(build).resolve(), Path(source).resolve()
    with tempfile.TemporaryDirectory(prefix="remesh-install-") as scratch:
        scratch = Path(scratch)
        prefix = installed(build, scratch)
        check_files(prefix, source)
        consumer = scratch / "consumer"
        shutil.copytree(source / "tests/install/consumer", consumer)
        checkpoint = scratch / "checkpoint"
        run(prefix / "bin/remesh", "convert", source / "fixtures/llama-gqa", checkpoint, "--mesh", "tp=2")
        damaged = scratch / "damaged"
        shutil.copytree(checkpoint, damaged)
        with open(next(damaged.glob("shard-*")), "r+b") as shard:
            shard.seek(-1, os.SEEK_END)
            last = shard.read(1)[0]
            shard.seek(-1, os.SEEK_END)
            shard.write(bytes([last ^ 1]))
        check_program(prefix, checkpoint)
        for program in [*check_cmake(prefix, consumer, scratch), check_pkg_config(prefix, consumer, scratch)]:
            check_consumer(program, checkpoint, damaged)
        check_refusals(prefix, scratch)
    print("installed, moved, and used by CMake and by pkg-config")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
