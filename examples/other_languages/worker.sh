#!/usr/bin/env bash
# A runner in bash, curl and jq: worker.sh URL FOLDER, with its token in $FENCELINE_TOKEN. One job at a time: start several.
# FOLDER has a program per kind. It reads the args as JSON and prints the result as JSON; what it writes to standard error is
# the job's log. Exit code 0: succeeded; 65: failed for good; any other: failed, and tried again. SIGTERM asks it to stop.
set -u
url=$1 folder=$2 token=$FENCELINE_TOKEN beat_seconds=${BEAT_SECONDS:-5} attempt='' pid='' work=$(mktemp -d)
unset FENCELINE_TOKEN

call() { # METHOD PATH BODY. Every call may be sent again: a repeat of what was done is answered like the first.
    curl -sS --retry 8 --retry-all-errors --max-time 90 -K <(printf 'header = "Authorization: Bearer %s"\n' "$token") \
        -H 'Content-Type: application/json' -H "Fenceline-Attempt: $attempt" -X "$1" "$url$2" -d "$3"
}
register() {
    kinds=$(find "$folder" -maxdepth 1 -type f -executable -printf '%f\n' | jq -Rsc 'split("\n") | map(select(. != ""))')
    runner=$(call POST /v1/runners "{\"name\": \"bash-$HOSTNAME-$$\", \"kinds\": $kinds}" | jq -r .id)
}
stop() { # The server gives back what this runner still holds; it costs the job no attempt.
    [ -n "$pid" ] && kill -- "-$pid"
    call POST "/v1/runners/$runner/stop" '{}' >"$work/stopped"
    rm -rf "$work"
    exit 0
}
watch() { # Keeps the lease while the program runs, and stops it when the job is cancelled or somebody else's. Sets code.
    while :; do
        sleep "$beat_seconds" & wait -n -p ended "$pid" $!
        code=$?
        [ "$ended" = "$pid" ] && return
        beat=$(call POST "/v1/runners/$runner/heartbeat" "{\"attempts\": [\"$attempt\"]}")
        word=$(jq -r --arg mine "$attempt" 'if .stale? | index($mine) then "stale" elif .cancel? | index($mine) then "cancelled" else "" end' <<<"$beat")
        [ -n "$word" ] && { verdict=$word; kill -- "-$pid"; }
    done
}
run() {
    IFS=$'\t' read -r attempt job kind number fence < <(jq -r '.attempts[0] | [.attempt_id, .job.id, .job.kind, .number, .token] | @tsv' "$work/claim")
    jq -c '.attempts[0].job.args' "$work/claim" >"$work/args"
    call PUT "/v1/jobs/$job/status" '{"status": "running"}' >"$work/started"
    FENCELINE_JOB=$job FENCELINE_ATTEMPT=$number FENCELINE_FENCE=$fence \
        setsid "$folder/$kind" <"$work/args" >"$work/result" 2>"$work/log" & pid=$! verdict=''
    watch
    pid='' lines=$(jq -Rsc '{lines: split("\n") | map(select(. != "") | {message: .}), offset: 0}' "$work/log")
    [ -s "$work/log" ] && [ "$verdict" != stale ] && call POST "/v1/jobs/$job/logs" "$lines"
    case ${verdict:-$code} in
        stale) return ;;
        cancelled) end='{"status": "cancelled"}' ;;
        0) end=$(jq -sc '{status: "succeeded", result: .[0]}' "$work/result") || end='{"status": "failed", "error": {"message": "the result is no JSON"}, "retry": false}' ;;
        *) end=$(jq -Rsc --argjson code "$code" '{status: "failed", error: {message: .[-2000:], code: "exit_\($code)"}, retry: ($code != 65)}' "$work/log") ;;
    esac
    call PUT "/v1/jobs/$job/status" "$end" >"$work/ended"
}
trap stop TERM INT
register
while :; do
    attempt=''
    call POST "/v1/runners/$runner/heartbeat" '{"attempts": []}' >"$work/beat" & wait $!
    claim="{\"runner_id\": $runner, \"count\": 1, \"wait\": 20, \"request_id\": \"$(</proc/sys/kernel/random/uuid)\"}"
    call POST /v1/jobs/claim "$claim" >"$work/claim" & wait $!
    jq -e '.attempts' "$work/claim" >"$work/none" || { sleep 1 & wait $!; register; continue; } # taken for dead, or a fault
    jq -e '.attempts[0]' "$work/claim" >"$work/none" && run
done
