# shellcheck shell=bash
# Completion of pi-agentctl in bash: the program says what may come next; where it says nothing, bash offers paths.

_pi_agentctl() {
    mapfile -t COMPREPLY < <(pi-agentctl complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
}
complete -o default -F _pi_agentctl pi-agentctl
