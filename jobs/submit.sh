#!/bin/bash
# Looks what would stop the jobs, then submits the job array, and the job that seals after it. What follows is handed
# to `obygaze extract`:
#   ./submit.sh films.csv stores/films --backbone xclip --backbone vivit

# ---- What your site needs: modules, the virtual environment ----
export PATH=/tmp/wt/kill/.venv/bin:$PATH
[ -n "${HF_HUB_CACHE:-}${HF_HOME:-}" ] || export HF_HUB_CACHE=/root/.cache/huggingface/hub
export HF_HUB_OFFLINE=${HF_HUB_OFFLINE:-1}  # every task loads what was fetched before
set -eu

case ${1:--}:${2:--} in
    -*:* | *:-*)
        echo "usage: $0 MANIFEST STORE [options of obygaze extract]" >&2
        exit 2
        ;;
esac
here=$(dirname "$0")
seal=(--licence CC-BY-4.0)        # what the store is sealed with: of these options the last one counts
before=
for word in "$@"; do
    case $before:$word in
        --licence:* | --citation:* | --store-version:*) seal+=("$before" "$word") ;;
        *:--licence=* | *:--citation=* | *:--store-version=*) seal+=("$word") ;;
    esac
    before=$word
done

numbers=$(sed -n 's/^#SBATCH --array=\([0-9]*-[0-9]*\).*/\1/p' "$here/array.sbatch")
first=${numbers%-*}
last=${numbers#*-}
cluster=$(scontrol show config 2>/dev/null | sed -n 's/^ClusterName *= *//p')
looks() {                           # as the array's first task would, on this machine: see obygaze extract --help
    SLURM_CLUSTER_NAME=$cluster SLURM_ARRAY_TASK_ID=${first:-0} SLURM_ARRAY_TASK_MIN=${first:-0} \
        SLURM_ARRAY_TASK_MAX=${last:-0} SLURM_ARRAY_TASK_COUNT=$((${last:-0} - ${first:-0} + 1)) obygaze extract "$@" "${seal[@]}" --check || return
    # What Slurm itself refuses, such as memory, a partition or an account, it says of both before one is queued.
    sbatch --test-only "$here/array.sbatch" "$@" && sbatch --test-only "$here/seal.sbatch" "$2" "${seal[@]}"
}
[ "${CHECK:-yes}" = no ] || looks "$@" || {
    echo "$0: nothing was submitted. Mend what is said above; CHECK=no $0 ... submits without looking" >&2
    exit 1
}

array=$(sbatch --parsable "$here/array.sbatch" "$@")
array=${array%%;*}                  # on several clusters the name of the cluster follows
echo "Job array $array: a task writes extract-${array}_TASK.log into $PWD"
ARRAY=$array sbatch --dependency=afterany:"$array" "$here/seal.sbatch" "$2" "${seal[@]}" || {
    printf '%s was not submitted; the job array was: once it has ended, obygaze store seal' "$here/seal.sbatch" >&2
    printf ' %q' "$2" "${seal[@]}" >&2
    echo >&2
    exit 1
}
echo "The job after it seals the store, and writes seal-JOB.log"
