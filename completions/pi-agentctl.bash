# shellcheck shell=bash
# Completion of pi-agentctl in bash: the program says what may come next, and asks for paths.

# What a word with backslashes means to the shell. Nothing is expanded.
_pi_agentctl_plain() {
    local rest=$1
    plain=
    while [[ $rest == *\\?* ]]; do
        plain+=${rest%%\\*}
        rest=${rest#*\\}
        plain+=${rest:0:1}
        rest=${rest:1}
    done
    plain+=$rest
}

_pi_agentctl() {
    local word plain words=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        _pi_agentctl_plain "$word"
        words+=("$plain")
    done
    local line cur=${COMP_WORDS[COMP_CWORD]}
    [[ $cur != = ]] || cur=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :paths | :directories)
            compopt -o filenames
            local kind=-f
            [[ $line != :directories ]] || kind=-d
            mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$kind" -- "$cur")
            ;;
        # Names of users may hold spaces and backslashes.
        *) COMPREPLY+=("$(printf %q "${line%%$'\t'*}")") ;;
        esac
    done < <(pi-agentctl complete "${words[@]}" 2>/dev/null)
}
complete -F _pi_agentctl pi-agentctl
