#!/usr/bin/env bash
# On a bare machine: install smoothctl into a throw-away environment, measure, and write DIR/gpu.json and DIR/gpu.md.
#   tests/benchmarks/gpu.sh [DIR] [SECONDS]
# SECONDS (400) bound the measuring; what there was no time for is named. Without a GPU it measures a few things on the CPU.
# SMOOTHCTL_PYTHON: a Python that has smoothctl already, so that nothing is installed.
set -euo pipefail
out=$(mkdir -p "${1:-gpu-benchmark}" && cd "${1:-gpu-benchmark}" && pwd)
seconds=${2:-400}
cd "$(dirname "$0")/../.."
python=${SMOOTHCTL_PYTHON:-}
if [ -z "$python" ]; then
  environment=$(mktemp -d)
  trap 'rm -rf "$environment"' EXIT
  # A torch that the machine has is likely to be the one that its driver can run.
  python3 -m venv --system-site-packages "$environment"
  python=$environment/bin/python
  "$python" -m pip install --quiet --editable '.[onnx]'
fi
"$python" -m tests.benchmarks.gpu "$out" --seconds "$seconds"
