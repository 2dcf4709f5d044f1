#!/usr/bin/env bash
# Train the demo's jobs and show the Advisor tab on them.
set -euo pipefail

usage="usage: bash demo/run.sh [LOGDIR] [--port N] [--no-serve] [--reuse]

Trains the demo's jobs into demo/logs, starts TensorBoard and prints the address of its Advisor tab.

  LOGDIR      show these logs instead of the demo's
  --port N    serve at this port (else the first free one from 6006)
  --no-serve  stop before TensorBoard
  --reuse     keep the demo's logs of an earlier run"

misused() {
  echo "$1" >&2
  echo "$usage" >&2
  exit 2
}

logdir="" port="" serve=yes reuse=no
while [ $# -gt 0 ]; do
  case "$1" in
    --port)
      port="${2:-}"
      case "$port" in "" | *[!0-9]*) misused "--port needs a number." ;; esac
      shift
      ;;
    --no-serve) serve=no ;;
    --reuse) reuse=yes ;;
    -h | --help) echo "$usage"; exit ;;
    -*) misused "There is no option $1." ;;
    *)
      [ -d "$1" ] || misused "There is no directory $1."
      logdir="$(cd "$1" && pwd)"
      ;;
  esac
  shift
done

cd "$(dirname "$0")/.."
source demo/venv.sh

make_venv
if [ -n "$logdir" ] || { [ "$reuse" = yes ] && [ -d demo/logs ]; }; then
  install ""
else
  install "[demo]"
  "$python" demo/train.py
fi
logdir="${logdir:-$PWD/demo/logs}"

if [ "$serve" = no ]; then
  echo "To see what is wrong in these runs: .venv/bin/tb-advisor check \"$logdir\""
  exit
fi

listens() { # listens PORT: whether someone does
  "$python" -c 'import socket, sys; sys.exit(socket.socket().connect_ex(("localhost", int(sys.argv[1]))))' "$1"
}
if [ -z "$port" ]; then
  port=6006
  while listens "$port"; do port=$((port + 1)); done
elif listens "$port"; then
  die "Port $port is in use."
fi

( # tells the address as soon as TensorBoard, which takes over this process, answers there
  while kill -0 $$ 2>/dev/null && ! listens "$port"; do sleep 0.3; done
  if kill -0 $$ 2>/dev/null; then printf '\nThe Advisor tab: http://localhost:%s/#advisor   (Ctrl-C stops it)\n\n' "$port"; fi
) &
export TF_CPP_MIN_LOG_LEVEL=3
exec .venv/bin/tensorboard --logdir "$logdir" --port "$port"
