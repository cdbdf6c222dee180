#!/bin/bash
# Submits the job array, and the job that seals after it. What follows is handed to `obygaze extract`:
#   ./submit.sh films.csv stores/films --backbone xclip --backbone vivit
set -eu
case ${1:--}:${2:--} in
    -*:* | *:-*)
        echo "usage: $0 MANIFEST STORE [options of obygaze extract]" >&2
        exit 2
        ;;
esac
here=$(dirname "$0")
array=$(sbatch --parsable "$here/array.sbatch" "$@")
array=${array%%;*}                  # on several clusters the name of the cluster follows
ARRAY=$array sbatch --dependency=afterany:"$array" "$here/seal.sbatch" "$2" --licence NOASSERTION
echo "Job array $array: a task writes extract-${array}_TASK.log into $PWD, and the job after it seal-JOB.log"
