#!/bin/sh
# Stands in for terraform and tofu in a site of units that use outputs of each other. What units have made is in a place
# of its own, so that nobody's belief counts: a unit's outputs follow from its salt and from what it uses, and a plan has
# changes if those are not what the unit was made from. Whatever it does it tells in a ledger.
#
# A configuration says `# salt 0`, and `# uses u0001 digest handle` for each producer.
place='@PLACE@'
run=${TFC_RUN_ID:-none}
unit=${TF_WORKSPACE:-none}

tell() {
    echo "$1 $run $$ $unit" >> "$place/ledger"
}

step() {
    tell "$1"
    while [ -e "$place/hold-$1" ]; do
        sleep 0.05
    done
}

# An output of a unit as it is now.
value() {
    sed -n "s/^$2 //p" "$place/made/$1"
}

# All that a unit is made from now: a line for its salt, and one for each producer with its outputs and the used names.
inputs() {
    sed -n 's/^# salt /salt /p' main.tf
    sed -n 's/^# uses //p' main.tf | while read -r producer names; do
        [ -e "$place/made/$producer" ] || { echo "$producer was never applied" >&2; exit 1; }
        echo "uses $producer $(value "$producer" digest) $(value "$producer" endpoint) $(value "$producer" handle) $names"
    done
}

# What of it counts: values that are not used may change.
counting() {
    while read -r word producer digest endpoint handle names; do
        case "$word" in
        salt) echo "salt $producer" ;;
        uses)
            for name in $names; do
                case "$name" in
                digest) echo "$producer.digest $digest" ;;
                endpoint) echo "$producer.endpoint $endpoint" ;;
                handle) echo "$producer.handle $handle" ;;
                esac
            done
            ;;
        esac
    done | sha256sum | cut -c1-64
}

# Data blocks for the lines of a plan: `$1` comes before their values and `$2` after.
blocks() {
    while read -r word producer digest endpoint handle names; do
        [ "$word" = uses ] || continue
        printf '{"address":"data.terraform_remote_state.%s","mode":"data","type":"terraform_remote_state","name":"%s",' "$producer" "$producer"
        printf '"provider":"provider[\\"terraform.io/builtin/terraform\\"]",%s' "$1"
        printf '"backend":"remote","workspace":null,"defaults":null,'
        if [ "$3" = typed ]; then
            printf '"config":{"value":{"hostname":"localterraform.com","organization":"acme","workspaces":{"name":"%s"}},' "$producer"
            printf '"type":["object",{"hostname":"string","organization":"string","workspaces":["object",{"name":"string"}]}]},'
            printf '"outputs":{"value":{"digest":"%s","endpoint":"%s","handle":"%s"},' "$digest" "$endpoint" "$handle"
            printf '"type":["object",{"digest":"string","endpoint":"string","handle":"string"}]}'
        else
            printf '"config":{"hostname":"localterraform.com","organization":"acme","workspaces":{"name":"%s"}},' "$producer"
            printf '"outputs":{"digest":"%s","endpoint":"%s","handle":"%s"}' "$digest" "$endpoint" "$handle"
        fi
        printf '%s},' "$2"
    done
}

declarations() {
    while read -r word producer _ _ _ _; do
        [ "$word" = uses ] || continue
        printf '{"address":"data.terraform_remote_state.%s","mode":"data","type":"terraform_remote_state","name":"%s",' "$producer" "$producer"
        printf '"expressions":{"backend":{"constant_value":"remote"}}},'
    done
}

references() {
    while read -r word producer _ _ _ names; do
        [ "$word" = uses ] || continue
        for name in $names; do
            printf '"data.terraform_remote_state.%s.outputs.%s","data.terraform_remote_state.%s.outputs",' "$producer" "$name" "$producer"
            printf '"data.terraform_remote_state.%s",' "$producer"
        done
    done
}

dependencies() {
    while read -r word producer _ _ _ _; do
        [ "$word" != uses ] || printf '"data.terraform_remote_state.%s",' "$producer"
    done
}

# A list without its last comma.
list() {
    printf '[%s]' "${1%,}"
}

trap 'tell interrupted; exit 1' INT

case "$1" in
version)
    echo '{"terraform_version":"1.11.4"}'
    ;;
init)
    ;;
plan)
    for word in "$@"; do
        case "$word" in -out=*) plan=${word#-out=} ;; esac
    done
    step plan
    inputs > "$plan" || exit 1
    before=$(sed -n 's/^made_from //p' "$place/made/$unit" 2> /dev/null)
    [ "$(counting < "$plan")" != "$before" ] || exit 0
    exit 2
    ;;
show)
    for plan in "$@"; do :; done
    printf '{"format_version":"1.2","terraform_version":"1.11.4","resource_changes":[],"output_changes":{},"complete":true,'
    printf '"prior_state":{"format_version":"1.0","values":{"root_module":{"resources":%s}}},' \
        "$(list "$(blocks '"values":{' '}' < "$plan")")"
    printf '"configuration":{"root_module":{"resources":%s}}}\n' \
        "$(list "$(declarations < "$plan"){\"address\":\"terraform_data.main\",\"mode\":\"managed\",\"type\":\"terraform_data\",\"name\":\"main\",\"expressions\":{\"input\":{\"references\":$(list "$(references < "$plan")")}}}")"
    ;;
apply)
    for plan in "$@"; do :; done
    state=.terraform/taco/workspaces/$TF_WORKSPACE/terraform.tfstate
    before=$(sed -n 's/.*"serial":\([0-9]*\).*/\1/p' "$state" 2> /dev/null || true)
    step apply-begins
    made_from=$(counting < "$plan")
    digest=$(echo "$unit $made_from" | sha256sum | cut -c1-64)
    printf 'made_from %s\ndigest %s\nendpoint %s.internal\nhandle id-of-%s\n' "$made_from" "$digest" "$unit" "$unit" > "$place/made/$unit.new"
    mv "$place/made/$unit.new" "$place/made/$unit"
    main=$(printf '{"mode":"managed","type":"terraform_data","name":"main","provider":"provider[\\"terraform.io/builtin/terraform\\"]","instances":[{"schema_version":0,"attributes":{"id":"id-of-%s","input":{"value":"%s","type":"string"}},"dependencies":%s}]}' \
        "$unit" "$made_from" "$(list "$(dependencies < "$plan")")")
    printf '{"version":4,"terraform_version":"1.11.4","serial":%d,"lineage":"%s","outputs":{"digest":{"value":"%s","type":"string"},"endpoint":{"value":"%s","type":"string"},"handle":{"value":"%s","type":"string"}},"resources":%s}' \
        "$((1 + ${before:-0}))" "$unit" "$digest" "$unit.internal" "id-of-$unit" \
        "$(list "$(blocks '"instances":[{"schema_version":0,"attributes":{' '}}]' typed < "$plan")$main")" > "$state.new"
    mv "$state.new" "$state"
    step apply-ends
    ;;
*)
    echo "the stand-in does not know: $*" >&2
    exit 1
    ;;
esac
