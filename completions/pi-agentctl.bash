# shellcheck shell=bash
# Completion of pi-agentctl in bash: the program says what may come next, and asks for paths.

_pi_agentctl() {
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
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(pi-agentctl complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _pi_agentctl pi-agentctl
