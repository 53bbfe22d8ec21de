#!/bin/sh
# Stands in for terraform and tofu. It changes nothing, tells in a ledger of its own what it was asked to do, and waits
# at each step for as long as a test holds it there.
place='@PLACE@'
run=${TFC_RUN_ID:-none}

tell() {
    echo "$1 $run $$" >> "$place/ledger"
}

step() {
    [ -z "$ZONE" ] || echo "$1 $run $ZONE" >> "$place/given"
    tell "$1"
    waited=0
    while [ -e "$place/hold-$1" ]; do
        waited=$((waited + 1))
        echo "$1 of $run has waited $waited times" >&2
        sleep 0.05
    done
}

keep() {
    printf '{"version":4,"terraform_version":"1.11.4","serial":%d,"lineage":"stand-in","outputs":{"work":{"value":"%s","type":"string"}},"resources":[]}' \
        "$(($1 + before))" "$2" > "$state.new"
    mv "$state.new" "$state"
}

trap 'tell interrupted; [ -e "$place/deaf" ] || exit 1' INT

case "$1" in
version)
    echo '{"terraform_version":"1.11.4"}'
    ;;
init)
    step init
    ;;
plan)
    for word in "$@"; do
        case "$word" in -out=*) echo "the plan of $run" > "${word#-out=}" ;; esac
    done
    echo "plans $run"
    step plan
    exit 2
    ;;
show)
    step show
    echo '{"format_version":"1.2","terraform_version":"1.11.4","resource_changes":[],"output_changes":{}}'
    ;;
apply)
    state=.terraform/taco/workspaces/$TF_WORKSPACE/terraform.tfstate
    before=$(sed -n 's/.*"serial":\([0-9]*\).*/\1/p' "$state" 2> /dev/null || true)
    before=${before:-0}
    step apply-begins
    keep 1 "half of $run"
    step apply-is-half-done
    if [ -e "$place/read-only" ]; then
        state=errored.tfstate
        keep 2 "all of $run"
        step apply-ends
        exit 1
    fi
    keep 2 "all of $run"
    step apply-ends
    ;;
*)
    echo "the stand-in does not know: $*" >&2
    exit 1
    ;;
esac
