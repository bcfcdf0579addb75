#!/usr/bin/env bash
# From a folder of images to a network that needs PyTorch alone; docs/own_images.md explains each step.
#
#   docs/own_images.sh IMAGES WORK [options of vitnas search]
#
# IMAGES holds train/<class>/<image> and test/<class>/<image>; without test/ the network is scored on the
# images that are held out of train/. WORK is where all results go. The same command goes on where a stopped
# one was.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 IMAGES WORK [options of vitnas search]" >&2; exit 2; }
[ -d "$1/train" ] || { echo "$1: has no train/<class>/<image>" >&2; exit 2; }
images=$(cd "$1" && pwd) work=$2
shift 2
part=test
[ -d "$images/test" ] || part=val
some=("$images"/test/*/*)
[ $part = test ] || some=("$images"/train/*/*)
cores=$(python -c 'from vitnas.cores import cores; print(cores())')
mkdir -p "$work"

step() { printf '\n== %s\n' "$1"; }

step "1. The space: which networks there are"
vitnas space images_64 --data "$images"

step "2. The search: three and a half minutes of short trainings, then baselines"
vitnas search images_64 --data "$images" --out "$work/run" --trials 18 --hours 0.06 "$@"

step "3. The choice"
vitnas pick "$work/run"
trial=$(vitnas pick "$work/run" --json | python -c 'import json, sys; print(json.load(sys.stdin)["trial"])')

step "4. The long training of trial $trial"
[ -d "$work/network" ] ||
  vitnas train --for "$work/run" --trial "$trial" --to "$work/network" --formats py,onnx --threads "$cores"
vitnas report "$work/run"

step "5. Its score, and what it sees in three images"
vitnas evaluate "$work/network" --data "$images" --score-on $part
vitnas predict "$work/network" "${some[@]:0:3}"

step "6. The same without vitnas"
python -I "$work/network/model.py" "${some[0]}"
