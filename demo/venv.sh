# Sourced by demo/run.sh and tests/run.sh, in the root of the project.

die() {
  echo "$*" >&2
  exit 1
}

# make_venv: a virtual environment in .venv, unless it is there. Sets $python.
make_venv() {
  python="$PWD/.venv/bin/python"
  if "$python" -m pip --version >/dev/null 2>&1; then
    return
  fi
  local base="" candidate newest
  for newest in 13 99; do # TensorFlow, which the demo trains with, has no packages for the newest Python yet
    for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
      if [ -z "$base" ] && "$candidate" -c "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null; then
        base="$candidate"
      fi
    done
  done
  [ -n "$base" ] || die "There is no Python 3.10 or newer on PATH."
  if ! "$base" -c 'import ensurepip' 2>/dev/null; then
    local version
    version="$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    die "$base cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python$version-venv"
  fi
  "$base" -m venv --clear .venv
  "$python" -m pip install --quiet --disable-pip-version-check --upgrade pip # pip 23 searches for ten minutes what newer ones find at once
}

# install EXTRAS: this project with its extras, for example "[demo]", from the sources here.
install() {
  echo "Installing tb_advisor$1 into .venv (minutes the first time)"
  # setuptools has a long warning for every editable install
  PYTHONWARNINGS=ignore "$python" -m pip install --quiet --disable-pip-version-check --editable ".$1"
}
