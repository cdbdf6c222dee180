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
licence=NOASSERTION before=
for word in "$@"; do                # a licence that is typed here is that of the store
    case $before:$word in
        --licence:*) licence=$word ;;
        *:--licence=*) licence=${word#*=} ;;
    esac
    before=$word
done
array=$(sbatch --parsable "$here/array.sbatch" "$@")
array=${array%%;*}                  # on several clusters the name of the cluster follows
echo "Job array $array: a task writes extract-${array}_TASK.log into $PWD"
ARRAY=$array sbatch --dependency=afterany:"$array" "$here/seal.sbatch" "$2" --licence "$licence" || {
    echo "$here/seal.sbatch was not submitted; the job array was: once it has ended, obygaze store seal $2" >&2
    exit 1
}
echo "The job after it seals the store, and writes seal-JOB.log"
