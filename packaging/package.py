#!/usr/bin/env python3
"""Packs a finished build of static libraries: a .deb, and a tarball that runs wherever it is unpacked.

    package.py BUILD_DIR OUT_DIR HEADER_PACKAGE...

The .deb depends on Debian's libraries. The tarball carries those that the program needs, but for libc, libm and those
of the compiler. HEADER_PACKAGEs are the Debian packages that the build used: their licences go along, since what stands
in headers is compiled in. The same build gives the same bytes; times are SOURCE_DATE_EPOCH, or else the last commit's.

Needs cmake, dpkg-dev and patchelf.
"""

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
# What every system has, in a version of its own; in whole names, without the version.
OF_THE_SYSTEM = {"linux-vdso", "ld-linux-x86-64", "ld-linux-aarch64", "libc", "libm", "libdl", "libpthread", "librt", "libresolv",
                 "libstdc++", "libgcc_s"}


def output_of(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **more).stdout


def time_of_release():
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    try:
        return int(output_of("git", "-C", SOURCE, "log", "-1", "--format=%ct"))
    except (OSError, subprocess.CalledProcessError):
        return int((SOURCE / "CHANGELOG.md").stat().st_mtime)


def install(build, prefix):
    shutil.rmtree(prefix, ignore_errors=True)
    output_of("cmake", "--install", build, "--prefix", prefix, "--strip")


def owner_of(path):
    """The Debian package that a file is from, which the package lists under one of two names."""
    real = Path(path).resolve()
    for name in (real, Path("/", *real.parts[2:])):
        found = subprocess.run(["dpkg-query", "-S", str(name)], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise SystemExit(f"no Debian package has {real}, so nobody knows its licence")


def copy_licences(packages, doc):
    (doc / "licences").mkdir()
    common = set()
    for package in sorted(packages):
        text = Path(f"/usr/share/doc/{package}/copyright").read_bytes()
        (doc / "licences" / package).write_bytes(text)
        common |= set(re.findall(rb"/usr/share/common-licenses/([A-Za-z]+[A-Za-z0-9.-]*[A-Za-z0-9])", text))
    for name in sorted(name.decode() for name in common):  # those that the others name instead of quoting them
        shutil.copyfile(f"/usr/share/common-licenses/{name}", doc / "licences" / name)


def files_below(root):
    return sorted(path for path in root.rglob("*"))


# ---- The .deb

def shlibs_of(binaries, scratch):
    """What dpkg-shlibdeps says that they depend on."""
    (scratch / "debian").mkdir(parents=True, exist_ok=True)
    (scratch / "debian/control").write_text("Source: remesh\n\nPackage: remesh\nArchitecture: any\n")
    line = output_of("dpkg-shlibdeps", "-O", *(f"-e{binary}" for binary in binaries), cwd=scratch)
    return re.search(r"^shlibs:Depends=(.*)$", line, re.MULTILINE)[1]


def control_text(version, architecture, depends, suggests, root):
    kib = sum(path.stat().st_size for path in files_below(root) if path.is_file()) // 1024
    return "\n".join([
        "Package: remesh", f"Version: {version}", f"Architecture: {architecture}", "Section: science", "Priority: optional",
        "Maintainer: The remesh developers <developers@remesh.invalid>", f"Installed-Size: {kib}",
        f"Depends: {depends}", f"Suggests: {', '.join(sorted(suggests))}",
        "Description: change the mesh of LLM checkpoints and prove that no number changed",
        " remesh reads a distributed checkpoint, writes it for another mesh or another",
        " framework, and proves of every tensor that no number changed. It verifies,",
        " compares, seals, signs and repairs checkpoints, too.", " .",
        " With it come its libraries and headers for C++ and a plugin for HDF5.", ""])


def make_deb(build, out, header_packages, version, seconds):
    root = out / "deb"
    shutil.rmtree(root, ignore_errors=True)
    install(build, root / "usr")
    doc = root / "usr/share/doc/remesh"
    (doc / "LICENSE").rename(doc / "copyright")
    copy_licences(header_packages, doc)
    zsh = root / "usr/share/zsh"
    (zsh / "site-functions").rename(zsh / "vendor-completions")  # where Debian looks
    depends = shlibs_of([root / "usr/bin/remesh", next(root.glob("usr/lib*/**/libh5remesh_zstd.so"))], out / "shlibs")
    architecture = output_of("dpkg", "--print-architecture").strip()
    control = root / "DEBIAN"
    files = [path for path in files_below(root) if path.is_file()]
    text = control_text(version, architecture, depends, header_packages, root)
    control.mkdir()
    (control / "control").write_text(text)
    (control / "md5sums").write_text("".join(
        f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files))
    for path in [root, *files_below(root)]:
        is_program = path.is_dir() or path.parent.name == "bin"
        path.chmod(0o755 if is_program else 0o644)
        os.utime(path, (seconds, seconds))
    package = out / f"remesh_{version}_{architecture}.deb"
    output_of("dpkg-deb", "--root-owner-group", "--uniform-compression", "-Zxz", "-z3", "--build", root, package,
              env={**os.environ, "SOURCE_DATE_EPOCH": str(seconds)})
    return package


# ---- The tarball

def libraries_of(binary):
    """{name: path} of the shared libraries that come along."""
    found = re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", binary), re.MULTILINE)
    return {name: path for name, path in found if name.partition(".so")[0] not in OF_THE_SYSTEM}


def bundle(root):
    """Puts the libraries beside the program, and lets both find them there and nowhere else."""
    program, plugin = root / "bin/remesh", next(root.glob("lib*/**/libh5remesh_zstd.so"))
    needed = libraries_of(program) | libraries_of(plugin)
    place = plugin.parent.parent.parent / "remesh"
    place.mkdir()
    for name, path in sorted(needed.items()):
        shutil.copyfile(path, place / name)
        output_of("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", place / name)
    for binary in (program, plugin):
        to_place = os.path.relpath(place, binary.parent)
        output_of("patchelf", "--force-rpath", "--set-rpath", f"$ORIGIN/{to_place}", binary)
    return {owner_of(path) for path in needed.values()}


def plain(seconds):
    def of(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = seconds
        is_program = member.isdir() or "/bin/" in member.name
        member.mode = 0o755 if is_program else 0o644
        return member
    return of


def make_tarball(build, out, header_packages, version, seconds):
    machine = os.uname().machine
    name = f"remesh-{version}-linux-{machine}"
    root = out / name
    install(build, root)
    copy_licences(set(header_packages) | bundle(root), root / "share/doc/remesh")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in [root, *files_below(root)]:
            archive.add(path, arcname=f"{name}/{path.relative_to(root)}".removesuffix("/."), recursive=False,
                        filter=plain(seconds))
    tarball = out / f"{name}.tar.gz"
    with open(tarball, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=seconds) as packed:
        packed.write(buffer.getvalue())
    return tarball


def main(build, out, *header_packages):
    build, out = Path(build).resolve(), Path(out).resolve()
    cache = (build / "CMakeCache.txt").read_text()
    if re.search(r"^BUILD_SHARED_LIBS:BOOL=ON$", cache, re.MULTILINE):
        raise SystemExit("package.py packs builds of static libraries")
    version = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache, re.MULTILINE)[1]
    seconds = time_of_release()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path in (make_deb(build, out, header_packages, version, seconds),
                 make_tarball(build, out, header_packages, version, seconds)):
        (path.parent / f"{path.name}.sha256").write_text(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
